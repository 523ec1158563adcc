"""Hooks as programs: each gets its event as JSON on standard input, and refuses by the exit status 2."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.settings import HookSettings
from denizen.errors import ConfigError
from denizen.ports import HookAnswer, HookEvent
from denizen.trusted.programs import trusted_environ
from denizen.trusted.session_files import SessionFiles

_REFUSED_STATUS = 2
_MAY_REFUSE = {"turn_start", "before_tool"}
_MAX_ERROR_BYTES = 4000
"""Bytes of a hook's standard error that are read."""


class CommandHooks(msgspec.Struct, frozen=True):
    """The hooks of the settings, run in `folder` by the shell, in this environment; one after the other.

    What they change in `session_files` is set aside.
    """

    settings: Sequence[HookSettings]
    folder: Path
    environ: Mapping[str, str]
    session_files: SessionFiles

    async def call(self, event: HookEvent, data: Mapping[str, Any], tool: str = "") -> HookAnswer:
        """Run the hooks of the event, up to the first that refuses."""
        problems: list[str] = []
        sent = msgspec.json.encode({"event": event, **data}, enc_hook=str)
        for hook in self.settings:
            if hook.event != event or not fnmatchcase(tool, hook.match):
                continue
            try:
                with self.session_files.watch(problems.append):
                    status, words = await self._run(hook, sent)
            except TimeoutError:
                problems.append(f"The hook `{hook.command}` took longer than {hook.timeout:g} s, and was ended.")
            except (OSError, ConfigError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                problems.append(f"The hook `{hook.command}` can't be run: {why}.")
            else:
                if status == _REFUSED_STATUS and event in _MAY_REFUSE:
                    return HookAnswer(words or f"the user's hook `{hook.command}` refuses it", problems)
                if status:
                    problems.append(f"The hook `{hook.command}` failed with status {status}: {words or 'no words'}")
        return HookAnswer("", problems)

    async def _run(self, hook: HookSettings, sent: bytes) -> tuple[int, str]:
        """The exit status and the words on standard error. Raises OSError, and TimeoutError once it is ended."""
        # files, not pipes: what a hook leaves in the background may hold them open
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            stdin.write(sent)
            stdin.seek(0)
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                hook.command,
                stdin=stdin,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                cwd=self.folder,
                env=trusted_environ(self.environ, self.folder),
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(hook.timeout):
                    status = await process.wait()
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
            stderr.seek(0)
            return status, stderr.read(_MAX_ERROR_BYTES).decode(errors="replace").strip()
