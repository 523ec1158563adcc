"""The `shell` action format: `$(cmd …)` in text."""

from denizen.actions.shell.commands import Help
from denizen.actions.shell.format import Shell

__all__ = ["Help", "Shell"]
