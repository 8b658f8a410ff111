"""How thoroughly properties are tried; ``HYPOTHESIS_PROFILE`` or ``--hypothesis-profile`` chooses.

No profile has a deadline: how long an example takes says something about the machine only.
"""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
# Other examples in every run; a failing one is printed so that it can be run again anywhere.
settings.register_profile("ci", deadline=None, derandomize=False, print_blob=True)
settings.register_profile(
    "deep", deadline=None, derandomize=False, print_blob=True, max_examples=3_000
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)
