"""How much of the kill and load suites runs: a tenth, or with DENIZEN_SOAK=1 (`make soak`) all of it."""

import os

IS_WHOLE = os.environ.get("DENIZEN_SOAK") == "1"


def share(count: int) -> int:
    """So many of `count` rounds, rows or messages."""
    return count if IS_WHOLE else max(count // 10, 1)
