"""The files that a patch is about, before and after it."""

import os
from dataclasses import dataclass
from typing import Any

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.editing.texts import difference
from denizen.tools.files.changes import LoadedFile, NewContent, change, load, load_or_empty
from denizen.tools.files.text import Encoding, decode
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result
from denizen.tools.patching.apply import apply_hunks, create_text
from denizen.tools.patching.parse import FilePatch


@dataclass(slots=True)
class _PatchedFile:
    """A file before and after a patch: its contents (None: there is none), and where it came from.

    `link`: the patch names a link that leads to it.
    """

    was: LoadedFile
    data: bytes | None
    executable: bool
    link: str = ""
    origin: LoadedFile | None = None
    moved: str = ""

    def require_itself(self) -> None:
        """Raises ToolRefused if the file would go, and not the link that was named."""
        if self.link:
            raise ToolRefused(f"{self.link} is a link to {self.was.path}: name that one, or remove the link with bash")

    @property
    def changed(self) -> bool:
        """Whether anything has to be written."""
        return self.data != self.was.data or (self.data is not None and self.executable != self.was.executable)

    def report(self) -> tuple[str, dict[str, Any]]:
        """The change in words, for the model and for the screen."""
        before = self.origin or self.was
        old, new = (decoded[0] if (decoded := decode(data or b"")) else "" for data in (before.data, self.data))
        was = difference(old, new)
        did = self.moved or "Updated"
        if not self.moved and self.was.data is None:
            did = "Created"
        elif not self.moved and self.data is None:
            did = "Deleted"
        name = f"{before.path} → {self.was.path}" if self.origin else self.was.path
        details = {"path": self.was.path, "did": did.lower(), "from": before.path, **was.details()}
        return f"{did} {name} (+{was.added} −{was.removed})", details


class PatchedFiles:
    """The files as they will be after the patch; nothing is written until all of it has been understood."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: dict[str, _PatchedFile] = {}
        self._notes: list[str] = []

    def add(self, patch: FilePatch) -> None:
        """Take in what happens to one file. Raises ToolRefused when it can't be done."""
        old = self._meant(patch.old, patch) if patch.old is not None else None
        new = self._meant(patch.new, patch) if patch.new is not None else None
        if new and patch.executable is not None:
            new.executable = patch.executable
        if new and not old:
            if new.data is not None:
                raise ToolRefused(f"{new.was.path} is to be created, but it already exists; update it instead")
            new.data = Encoding().encode(create_text(new.was.path, patch.hunks), new.was.path)
        elif old and not new:
            if patch.hunks and self._patched(old, patch):
                raise ToolRefused(
                    f"{old.was.path} is to be deleted, but the patch leaves lines in it; "
                    f"to delete all of it: *** Delete File: {old.was.path}"
                )
            self._require(old)
            old.require_itself()
            old.data = None
        elif old and new and patch.move:
            self._move(old, new, patch)
        elif old and new:
            if new is not old and new.data is None and old.data is not None:
                raise ToolRefused(
                    f"the patch calls one file {old.was.path} and {new.was.path}; to rename it, "
                    "say so: `rename from` and `rename to`, or `*** Move to:`"
                )
            if not patch.hunks and patch.executable is None:
                raise ToolRefused(f"the patch has no changes for {new.was.path}")
            new.data = self._patched(new, patch)

    def write(self) -> ToolResult:
        """Write it all. Raises ToolRefused when a file can't be written, or was changed meanwhile."""
        files = [file for file in self._files.values() if file.changed]
        if not files:
            raise ToolRefused("the patch changes nothing: the files are already like that")
        contents = {file.was.path: NewContent(file.data, file.executable, replaces=file.was.version) for file in files}
        change(self._workspace, contents)
        gone = {file.origin.path for file in files if file.origin and file.moved == "Renamed"}
        done = [file.report() for file in files if file.data is not None or file.was.path not in gone]
        return result("\n".join([text for text, _ in done] + self._notes), files=[details for _, details in done])

    def _move(self, old: _PatchedFile, new: _PatchedFile, patch: FilePatch) -> None:
        if new.data is not None and new is not old:
            raise ToolRefused(f"{old.was.path} can't become {new.was.path}, which already exists")
        data = self._patched(old, patch)
        if patch.move == "rename":
            old.require_itself()
            old.data = None
        new.data, new.origin, new.moved = data, old.was, "Renamed" if patch.move == "rename" else "Copied"
        if patch.executable is None:
            new.executable = old.executable

    def _patched(self, file: _PatchedFile, patch: FilePatch) -> bytes:
        self._require(file)
        now = LoadedFile(file.was.path, file.data)
        if not patch.hunks:
            return file.data or b""
        text, notes = apply_hunks(now.path, now.text, patch.hunks)
        self._notes += [f"{now.path}, {note}" for note in notes]
        return now.encode(text)

    def _require(self, file: _PatchedFile) -> None:
        if file.data is None and file.was.data is not None:
            raise ToolRefused(f"{file.was.path} was removed by an earlier part of the patch")
        if file.data is None:
            load(self._workspace, file.was.path)  # says that it is missing, and what is nearest

    def _meant(self, name: str, patch: FilePatch) -> _PatchedFile:
        return self._file(patch.meant(name, lambda path: self._file(path).data is not None))

    def _file(self, path: str) -> _PatchedFile:
        source = load_or_empty(self._workspace, path)
        link = path if os.path.islink(f"{self._workspace.root}/{path}") else ""  # noqa: PTH114 (may be no path at all)
        return self._files.setdefault(source.path, _PatchedFile(source, source.data, source.executable, link))
