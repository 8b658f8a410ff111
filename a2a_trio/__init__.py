"""A Trio structured-concurrency peer for the Agent2Agent (A2A) protocol."""
