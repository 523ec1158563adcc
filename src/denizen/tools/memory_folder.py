"""`memory`: Anthropic's memory tool, which its models know and a client runs: files in a folder of the agent's own.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from denizen.config.settings import CallOptions, Config
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.editing.texts import LineEnds
from denizen.tools.files.changes import LoadedFile, NewContent, change, load
from denizen.tools.files.text import printable, size
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

ROOT: Final = "/memories"
"""The folder's name for the model."""
NAME: Final = "memory"
_UNTRUSTED: Final = ".untrusted"
"""A file that is there once something was kept while untrusted text was in sight."""
_MAX_LEVELS: Final = 2
_CONTEXT_LINES: Final = 2  # lines shown before and after a replacement


def is_asked_for(config: Config) -> bool:
    """Whether a model is offered the tool, as its settings say: `extra_body = { tools = [{ type = "memory_…" }] }`."""
    settings: Iterable[CallOptions] = (config.agent, *config.providers.values(), *config.models.values())
    tools = [each for options in settings for each in options.extra_body.get("tools", ())]
    return any(isinstance(each, dict) and str(each.get("type", "")).startswith("memory_") for each in tools)


def memory_folder_tool(folder: Path) -> Tool:
    """The tool over a folder, which is made with the first call, and is private."""

    @tool(traits=Traits.WRITES | Traits.PRIVATE)
    async def memory(
        turn: ToolContext,
        command: Literal["view", "create", "str_replace", "insert", "delete", "rename"],
        path: str = "",
        *,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str = "",
        insert_line: int | None = None,
        insert_text: str | None = None,
        old_path: str = "",
        new_path: str = "",
    ) -> ToolResult:
        """Keep files in /memories for later conversations, and look at those kept before.

        Args:
            path: In /memories; of every command but rename
            view_range: First and last line, -1 for the end
            file_text: The content to create
            old_str: Text to replace, which is there once
            new_str: What replaces it
            insert_line: Line after which to insert
            insert_text: What to insert
            old_path: Path to rename
            new_path: Its new path
        """
        folder.mkdir(0o700, parents=True, exist_ok=True)
        files, untrusted = _Folder(Workspace(folder)), folder / _UNTRUSTED
        if command != "view" and Traits.UNTRUSTED in turn.in_sight:
            untrusted.touch(0o600)
        match command:
            case "view":
                work = partial(files.view, path, view_range)
            case "create":
                work = partial(files.create, path, _given(command, file_text=file_text)[0])
            case "str_replace":
                work = partial(files.replace, path, _given(command, old_str=old_str)[0], new_str)
            case "insert":
                _given(command, insert_line=insert_line, insert_text=insert_text)
                work = partial(files.insert, path, insert_line or 0, insert_text or "")
            case "delete":
                work = partial(files.delete, path)
            case "rename":
                work = partial(files.rename, old_path, new_path)
        text = await run_in_thread(None, work)
        return result(text, **({"untrusted": True} if untrusted.exists() else {}))

    return memory


def _given(command: str, **arguments: Any) -> list[Any]:
    """The arguments. Raises ToolRefused for those that are missing."""
    if missing := [name for name, value in arguments.items() if value is None]:
        raise ToolRefused(f"{command} needs {' and '.join(missing)}")
    return [*arguments.values()]


class _Folder:
    """The files, by the paths that the model gives; each method says what it did."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def view(self, path: str, lines: list[int] | None) -> str:
        inside = _inside(path)
        with self._workspace.at(inside) as place:
            if place.stat() and not self._is_file(inside):
                with place.folder() as fd:
                    rows = [f"{size}\t{path.rstrip('/')}{name}" for size, name in _listed(fd)]
                return "\n".join([f"The files and folders in {path}, {_MAX_LEVELS} levels of them:", *rows])
        text = load(self._workspace, inside).text.split("\n")
        first, last = lines if lines and len(lines) == 2 else (1, -1)
        first, last = max(first, 1), len(text) if last == -1 else last
        rows = _numbered(text, first, last)
        if not rows:
            raise ToolRefused(f"{path} has {len(text)} lines; there is none from {first} to {last}")
        return "\n".join([f"The content of {path} with line numbers:", *rows])

    def create(self, path: str, text: str) -> str:
        self._absent(path)
        change(
            self._workspace, {_inside(path, itself=False): NewContent(text.encode("utf-8", "replace"), replaces=None)}
        )
        return f"File created successfully at: {path}"

    def replace(self, path: str, old: str, new: str) -> str:
        file = load(self._workspace, _inside(path, itself=False))
        before, found, after = file.text.partition(old)
        if not (old and found):
            raise ToolRefused(f"No replacement was performed: old_str isn't in {path} in these very words")
        line = before.count("\n") + 1
        if old in after:
            others = line + (found + after.partition(old)[0]).count("\n")
            raise ToolRefused(
                f"No replacement was performed: old_str is in {path} several times, at lines {line}, {others}…; "
                "give more of the text around it"
            )
        text = before + new + after
        self._put(path, file, text)
        shown = _numbered(text.split("\n"), max(line - _CONTEXT_LINES, 1), line + new.count("\n") + _CONTEXT_LINES)
        return "\n".join(["The memory file has been edited. It is there now:", *shown])

    def insert(self, path: str, after: int, text: str) -> str:
        file = load(self._workspace, _inside(path, itself=False))
        line_ends = LineEnds(file.text)
        lines = re.findall(r".*\n|.+", line_ends.text)  # those that `view` numbers
        if not 0 <= after <= len(lines):
            raise ToolRefused(f"insert_line is {after}; it must be from 0 to {len(lines)}")
        place = sum(map(len, lines[:after]))
        before = "\n" if after and not lines[after - 1].endswith("\n") else ""
        text = before + text.replace("\r\n", "\n").removesuffix("\n") + "\n"
        self._put(path, file, line_ends.replace([((place, place), text)]))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        inside = _inside(path, itself=False)
        if self._is_file(inside):
            change(self._workspace, {inside: NewContent(None)})
        else:
            with self._workspace.at(inside) as place, place.folder():
                shutil.rmtree(place.name, dir_fd=place.fd)
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        self._absent(new)
        made: list[str] = []
        with (
            self._workspace.at(_inside(old, itself=False)) as there,
            self._workspace.at(_inside(new, itself=False), made) as to,
        ):
            os.rename(there.name, to.name, src_dir_fd=there.fd, dst_dir_fd=to.fd)
        return f"Successfully renamed {old} to {new}"

    def _put(self, path: str, file: LoadedFile, text: str) -> None:
        change(self._workspace, {_inside(path): NewContent(file.encode(text), replaces=file.version)})

    def _absent(self, path: str) -> None:
        """Raises ToolRefused if there is something already."""
        try:
            with self._workspace.at(_inside(path, itself=False)) as place:
                taken = place.stat()
        except ToolRefused:  # not even its folder; whatever else it is, who writes there hears of it
            return
        if taken:
            raise ToolRefused(f"{path} already exists")

    def _is_file(self, inside: str) -> bool:
        try:
            with self._workspace.at(inside) as place, place.open():
                return True
        except ToolRefused:
            return False


def _inside(path: str, *, itself: bool = True) -> str:
    """The path below the folder; the folder's own only if `itself`. Raises ToolRefused."""
    names = path.strip().split("/")
    inside = [name for name in names[2:] if name]
    if names[:2] != ROOT.split("/") or any(name.startswith(".") for name in inside):
        raise ToolRefused(f"{printable(path)!r} isn't in {ROOT}: paths begin with it, and no part of them with a dot")
    if not (inside or itself):
        raise ToolRefused(f"{ROOT} itself stays as it is: name a file or folder in it")
    return "/".join(inside) or "."


def _listed(fd: int) -> Iterator[tuple[str, str]]:
    """The sizes and paths of what is in an open folder; folders end with a slash."""
    for folder, folders, files, at in os.fwalk(".", dir_fd=fd):
        below = folder.removeprefix(".")
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield size(os.stat(name, dir_fd=at, follow_symlinks=False).st_size), f"{below}/{name}"
        for name in folders:
            yield "folder", f"{below}/{name}/"
        if below.count("/") + 1 >= _MAX_LEVELS:
            folders.clear()


def _numbered(lines: list[str], first: int, last: int) -> list[str]:
    return [f"{number:6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)]
