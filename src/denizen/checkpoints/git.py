"""git on the shadow repository alone: none of the user's settings, no programs that files could name, one at a time."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from denizen.errors import DenizenError
from denizen.runtime.clock import Clock
from denizen.trusted.programs import find_program

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
_MAX_ERROR_CHARS = 500
"""Characters of git's complaint that are shown."""
_DISK_FULL = ("No space left on device", "Out of diskspace", "Disk quota exceeded")
"""Git's words when the disk is full."""
_LOCK_TIMEOUT_S = 60.0
"""How long another process may hold the repository."""
_LOCK_POLL_S = 0.02
_STALE_LOCKS = ("*.lock", "refs/heads/*.lock", "refs/checkpoints/*.lock")


class GitError(DenizenError):
    """git couldn't do what it was asked; `disk_full`: there was no room on the disk."""

    def __init__(self, command: str, complaint: str, folder: Path) -> None:
        self.disk_full = any(sign in complaint for sign in _DISK_FULL)
        said = " ".join(complaint.split())[-_MAX_ERROR_CHARS:] or "it said nothing"
        advice = (
            "Free some space and try again; the checkpoints that were made are safe."
            if self.disk_full
            else "If it doesn't go away: move that folder elsewhere, and checkpoints start afresh."
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

    @property
    def scope(self) -> list[str]:
        """The arguments that limit a command to the folder that counts."""
        return ["--", self.within] if self.within else []

    async def run(
        self, *args: str, data: bytes | Iterable[str] = b"", env: Mapping[str, str] = {}, may_fail: bool = False
    ) -> bytes:
        """Git's output; `data` is its input, as bytes or as items that end with NUL. It `may_fail` with status 1.

        Raises DenizenError when it fails, isn't there, or has no folder.
        """
        if not self.root.is_dir():
            raise DenizenError(f"The folder {self.root} isn't there any more; without it there are no checkpoints.")
        if not isinstance(data, bytes):
            data = b"".join(os.fsencode(item) + b"\0" for item in data)
        places = {"GIT_DIR": self.folder, "GIT_WORK_TREE": self.root, "GIT_INDEX_FILE": self.folder / self.index}
        foreign = {name: value for name, value in self.environ.items() if not name.startswith("GIT_")}
        try:
            process = await asyncio.create_subprocess_exec(
                find_program("git", self.environ, self.root),
                *_OPTIONS,
                *args,
                cwd=self.root,
                env=foreign | _ENVIRONMENT | {name: str(path) for name, path in places.items()} | dict(env),
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
        try:
            out, complaint = await process.communicate(data)
        finally:
            if process.returncode is None:  # cancelled; git removes its lock files when terminated
                process.terminate()
                await process.wait()
        if process.returncode and not (may_fail and process.returncode == 1):
            raise GitError(args[0], complaint.decode(errors="replace"), self.folder)
        return out

    async def items(
        self, *args: str, data: Iterable[str] = (), env: Mapping[str, str] = {}, may_fail: bool = False
    ) -> list[str]:
        """Like `run`, for output that is items that end with NUL."""
        return os.fsdecode(await self.run(*args, data=data, env=env, may_fail=may_fail)).split("\0")[:-1]

    async def write_tree(self) -> str:
        """The id of the tree that the index holds."""
        return (await self.run("write-tree")).decode().strip()

    def shown(self, path: str) -> str:
        """A path of the work tree as people know it: from the workspace on."""
        return path.removeprefix(f"{self.within}/")


@contextlib.asynccontextmanager
async def locked(folder: Path, clock: Clock) -> AsyncGenerator[int]:
    """Hold the repository in `folder`, waiting for others; gives the descriptor that holds it.

    Lock files that git left behind when it was killed are taken away: git itself holds our lock while it lives.
    Raises DenizenError when another doesn't let go for a minute.
    """
    fd = os.open(folder / "held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = clock.monotonic() + _LOCK_TIMEOUT_S
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if clock.monotonic() >= until:
                raise DenizenError(
                    f"Another process has held the checkpoints in {folder} for {_LOCK_TIMEOUT_S:g} s. "
                    "Wait until it is done, or end it."
                )
            await clock.sleep(_LOCK_POLL_S)
        for pattern in _STALE_LOCKS:
            for left in folder.glob(pattern):
                left.unlink(missing_ok=True)
        yield fd
    finally:
        os.close(fd)
