"""``python -m a2a_trio`` is the command ``a2a-trio``."""

import sys

from a2a_trio.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
