"""Calls other agents: one client per peer, typed calls, streams that can be waited on and left."""
