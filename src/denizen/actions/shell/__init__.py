"""The `shell` action format: `$(cmd …)` in text."""

from denizen.actions.shell.format import Shell

__all__ = ["Shell"]
