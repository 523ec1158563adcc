"""The `shell` action format: `$(cmd …)` in text."""

from denizen.actions.shell.format import Shell
from denizen.actions.shell.help import Help

__all__ = ["Help", "Shell"]
