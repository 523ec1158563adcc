"""What edits have changed so far in a task, as one line for the model."""

from typing import Any

from denizen.messages import ToolResult
from denizen.plural import counted

MOST = 20
"""Files that are named."""


class Changed:
    """Adds up the edits that results report; a rollback takes it back to what it was at the checkpoint."""

    def __init__(self) -> None:
        self._files: dict[str, str | tuple[int, int]] = {}  # "new", "deleted", or the lines added and removed
        self._kept: dict[str, dict[str, str | tuple[int, int]]] = {}

    def take(self, result: ToolResult) -> None:
        """Take in one more result."""
        for edit in result.edits:
            self._edit(edit)
        match result.details:
            case {"checkpoint": str(snapshot)}:
                self._kept[snapshot] = {**self._files}
            case {"rollback": str(snapshot)}:
                self._files = {**self._kept.get(snapshot, {})}
            case _:
                pass

    @property
    def line(self) -> str:
        """`changed: a.py (+3 −1), tests/test_a.py (new)`; empty where nothing was."""
        named = [
            f"{path} ({how if isinstance(how, str) else f'+{how[0]} −{how[1]}'})" for path, how in self._files.items()
        ]
        more = [f"and {counted(len(named) - MOST, 'file')} more"] if len(named) > MOST else []
        return f"changed: {', '.join([*named[:MOST], *more])}" if named else ""

    def _edit(self, edit: dict[str, Any]) -> None:
        path, did = edit["path"], edit.get("did", "created" if edit.get("created") else "updated")
        if did == "renamed":
            self._delete(edit["from"])
        before = self._files.get(path, (0, 0))
        if did == "deleted":
            self._delete(path)
        elif did in {"created", "renamed", "copied"}:
            self._files[path] = "new" if isinstance(before, tuple) else (edit["added"], edit["removed"])
        elif isinstance(before, tuple):
            self._files[path] = (before[0] + edit["added"], before[1] + edit["removed"])

    def _delete(self, path: str) -> None:
        if self._files.pop(path, "") != "new":
            self._files[path] = "deleted"
