"""How much work reading is: counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from denizen.actions.recovery.source import Source


def steps(work: Callable[[], object], *, characters: bool = False) -> int:
    """Calls that the interpreter makes, of Python functions and of C functions.

    With `characters` also those of each text that is begun to be read, for whoever reads one again as it grows.
    """
    count = 0

    def tick(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}
        if characters and event == "call" and frame.f_code is Source.__init__.__code__:
            count += len(frame.f_locals["text"])

    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
