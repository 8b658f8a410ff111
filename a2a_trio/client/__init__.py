"""Calling other agents."""
