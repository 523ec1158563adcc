"""The `shell` action format: `$(cmd …)` in text."""

from denizen.actions.shell.format import Shell, is_command
from denizen.actions.shell.help import Help

__all__ = ["Help", "Shell", "is_command"]
