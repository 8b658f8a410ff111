"""The agent contract and the agents that come with the package."""
