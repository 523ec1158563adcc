"""Files that are open in the editor: unsaved text is saved before a call names its file, and edits reach the editor."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import acp
from acp.interfaces import Client

from denizen.errors import ToolRefused
from denizen.messages import ToolCall, ToolResult
from denizen.tools.files.changes import LoadedFile, NewContent, change, load, load_or_empty
from denizen.tools.files.workspace import Workspace
from denizen.tools.policy.call_files import files_of
from denizen.worlds.world import AgentHandle

TIMEOUT_S = 10.0
"""For one file; the call then works with the saved text."""

MAX_BUFFER_BYTES = 1_000_000
"""Larger files aren't compared with the editor's."""

_FAILURES = (ToolRefused, acp.RequestError, OSError, ValueError)
"""The call goes on without the editor: it has no such file, its answer is malformed, or comes too late."""


class Buffers:
    """The text that the editor shows of files, during one turn that began at `began`.

    A difference between buffer and file is the person's typing only if the file hasn't changed since both were the
    same, or since the turn began. Any other means that the editor hasn't reloaded the file yet.
    """

    def __init__(self, client: Client, session_id: str, agent: AgentHandle, began: datetime) -> None:
        self._client = client
        self._session_id = session_id
        self._began = began.timestamp()
        self._folder = agent.workspace
        record = agent.record
        self._files = Workspace(agent.workspace, restricted=record.restricted, private=record.home)
        self._in_step: dict[str, LoadedFile] = {}  # by path, the files as they were when the buffer held the same

    async def save(self, calls: Sequence[ToolCall]) -> None:
        """Have the editor save what the person typed into files that the calls name."""
        for path in dict.fromkeys(path for call in calls for path in files_of(call, self._folder)):
            with suppress(*_FAILURES):
                async with asyncio.timeout(TIMEOUT_S):
                    await self._save(path)

    async def _save(self, path: str) -> None:
        saved = load_or_empty(self._files, path)
        data = saved.data or b""
        if len(data) > MAX_BUFFER_BYTES or saved.text.encode() != data:  # editors show other encodings in their own way
            return
        shown = await self._shown(saved.path)
        if not _same(shown, saved.text):
            if not self._is_typed(saved):
                return
            await self._client.write_text_file(self._session_id, self._absolute(saved.path), shown)
            with suppress(ToolRefused):  # the usual case: the editor has written the file
                change(self._files, {path: NewContent(saved.encode(shown), replaces=saved.version)})
            saved = load(self._files, path)
        self._in_step[saved.path] = saved

    def _is_typed(self, saved: LoadedFile) -> bool:
        if saved.path in self._in_step:
            return saved.version == self._in_step[saved.path].version
        return saved.version is None or (self._folder / saved.path).stat().st_ctime <= self._began

    async def update(self, result: ToolResult) -> Sequence[str]:
        """Show the edits of a call in the buffers; returns the files whose buffers the person changed meanwhile."""
        changed: list[str] = []
        for path in [edit["path"] for edit in result.edits if edit["path"] in self._in_step]:
            with suppress(*_FAILURES):
                async with asyncio.timeout(TIMEOUT_S):
                    saved, shown = load(self._files, path), await self._shown(path)
                    if _same(shown, self._in_step[path].text):
                        await self._client.write_text_file(self._session_id, self._absolute(path), saved.text)
                        saved = load(self._files, path)
                    elif not _same(shown, saved.text):
                        changed.append(path)
                        continue
                    self._in_step[path] = saved
        return changed

    async def _shown(self, path: str) -> str:
        return (await self._client.read_text_file(self._session_id, self._absolute(path))).content

    def _absolute(self, path: str) -> str:
        return str(self._folder / path)


def _same(one: str, other: str) -> bool:
    """Whether the lines are the same: editors have line ends of their own."""
    return one.splitlines() == other.splitlines()
