"""How much work reading is: counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from denizen.actions.recovery.streaming import HoldCalls


def steps(work: Callable[[], object], *, characters: bool = False) -> int:
    """Calls that the interpreter makes, of Python functions and of C functions.

    With `characters` also those of what is looked at while it streams, each time that it is.
    """
    count = 0

    def tick(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}
        if characters and event == "call" and frame.f_code is HoldCalls.feed.__code__:
            count += len(frame.f_locals["self"].held) + len(frame.f_locals["piece"])

    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
