"""Serving an agent: the endpoint, the runs, the store, and the listener."""
