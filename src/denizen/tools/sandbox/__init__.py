"""Where commands run: in the strongest sandbox that works on this machine."""

from denizen.tools.sandbox.sandboxes import (
    Bubblewrap,
    GuardedSandbox,
    Landlock,
    LandlockAlone,
    LandlockSharingProcesses,
    Unconfined,
    choose_sandbox,
    problem_with,
)

__all__ = [
    "Bubblewrap",
    "GuardedSandbox",
    "Landlock",
    "LandlockAlone",
    "LandlockSharingProcesses",
    "Unconfined",
    "choose_sandbox",
    "problem_with",
]
