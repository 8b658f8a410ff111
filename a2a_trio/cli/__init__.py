"""The command ``a2a-trio``: serve an agent, call other agents, look after settings.

Importing this package, printing help and completing a command line load no HTTP library and no
event loop: each command imports what it needs when it runs.
"""

from a2a_trio.cli.entry import main

__all__ = ["main"]
