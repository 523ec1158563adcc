"""What a program asks of the disk."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def disk_calls(*calls: object) -> Generator[list[str]]:
    """The writes and syncs of this thread, and of all that begin from now on, as the interpreter sees them.

    With `calls`, those builtin functions instead.
    """
    counted = calls or (os.write, os.fsync)
    seen: list[str] = []

    def watch(_: FrameType, event: str, what: Any) -> None:
        if event == "c_call" and what in counted:
            seen.append(what.__name__)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
