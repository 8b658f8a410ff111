"""Run the fuzz targets: ``python fuzz/run.py [target ...] [--seconds N] [--seed S]``.

How to write a target is told in ``fuzz/harness.py``.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from fuzz.harness import main

    sys.exit(main())
