"""Where commands run: in the strongest sandbox that works on this machine."""

from denizen.tools.sandbox.sandboxes import (
    Bubblewrap,
    Landlock,
    LandlockAlone,
    LandlockSharingProcesses,
    Unconfined,
    Watched,
    choose_sandbox,
    problem_with,
)

__all__ = [
    "Bubblewrap",
    "Landlock",
    "LandlockAlone",
    "LandlockSharingProcesses",
    "Unconfined",
    "Watched",
    "choose_sandbox",
    "problem_with",
]
