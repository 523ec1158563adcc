"""git on the shadow repository alone: nothing of the user's settings, and no programs that files could name."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from denizen.errors import DenizenError

_SETTINGS = {
    "core.fsync": "none",
    "core.untrackedCache": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.quotePath": "false",
    "core.protectHFS": "false",
    "core.protectNTFS": "false",  # a backslash is a letter like others
    "gc.auto": "6700",  # for `gc --auto`: no other command that is used here does it
    "gc.autoDetach": "false",
    "status.showUntrackedFiles": "all",  # as a setting: as an option it would switch the cache off
    "color.ui": "never",
}
_OPTIONS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_AUTHOR_NAME": "denizen",
    "GIT_AUTHOR_EMAIL": "denizen",
    "GIT_COMMITTER_NAME": "denizen",
    "GIT_COMMITTER_EMAIL": "denizen",
}
_LAST_WORDS = 500
"""Characters of git's complaint that are told."""


_FULL = ("No space left on device", "Out of diskspace", "Disk quota exceeded")
"""What git says when there is no room, in its several places."""


class GitError(DenizenError):
    """git couldn't do what it was asked; `full`: there was no room on the disk."""

    def __init__(self, command: str, complaint: str, folder: Path) -> None:
        self.full = any(sign in complaint for sign in _FULL)
        said = " ".join(complaint.split())[-_LAST_WORDS:] or "it said nothing"
        advice = (
            "Free some space and try again; the checkpoints that were made are safe."
            if self.full
            else "Should it not go away: move that folder elsewhere, and checkpoints begin anew."
        )
        super().__init__(f"git {command} failed on the checkpoints in {folder}: {said}. {advice}")


@dataclass(frozen=True, slots=True)
class Git:
    """A git directory with a work tree and an index of its own, which is in the directory or has a whole path.

    `within` is the folder of the work tree that counts ("" for all of it). The file descriptor `held` is handed on to
    git, so that a lock on it lasts until git has ended, too.
    """

    folder: Path
    root: Path
    environ: Mapping[str, str]
    within: str = ""
    index: str = "index"
    held: int = -1

    async def run(
        self, *words: str, data: bytes = b"", also: Mapping[str, str] = {}, may_say_no: bool = False
    ) -> bytes:
        """What git answers; `data` is its input, `also` more of its environment, and 1 its "no" if it `may_say_no`.

        Raises DenizenError when it fails, isn't there, or has no folder.
        """
        if not self.root.is_dir():
            raise DenizenError(f"The folder {self.root} isn't there any more; without it there are no checkpoints.")
        process = await self._start(words, also)
        try:
            out, complaint = await process.communicate(data)
        finally:
            if process.returncode is None:  # cancelled; told to end, git takes its lock files away
                process.terminate()
                await process.wait()
        if process.returncode and not (may_say_no and process.returncode == 1):
            raise GitError(words[0], complaint.decode(errors="replace"), self.folder)
        return out

    def shown(self, path: str) -> str:
        """A path of the work tree as people know it: from the workspace on."""
        return path.removeprefix(f"{self.within}/")

    async def _start(self, words: tuple[str, ...], also: Mapping[str, str]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *("git", *_OPTIONS, *words),
                cwd=self.root,
                env=self._environment() | dict(also),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=[self.held] if self.held >= 0 else [],
                start_new_session=True,
            )
        except OSError as error:
            raise DenizenError(
                f"Checkpoints need git, which can't be started: {error.strerror}. Install it and put it on PATH."
            ) from error

    def _environment(self) -> dict[str, str]:
        foreign = {name: value for name, value in self.environ.items() if not name.startswith("GIT_")}
        places = {"GIT_DIR": self.folder, "GIT_WORK_TREE": self.root, "GIT_INDEX_FILE": self.folder / self.index}
        return foreign | _ENVIRONMENT | {name: str(path) for name, path in places.items()}
