"""Runs a command for Denizen in a terminal that an editor made, and ends it when Denizen says so, or has died.

A program of its own, of the standard library alone so that it starts quickly:

    python -I -S supervisor.py FILE TITLE

FILE holds the command as JSON: `argv`, `environ`, `folder`. It is deleted once read, so that no command runs twice;
Denizen locks it for as long as the command may run. TITLE is for editors, which show the arguments.
"""

# pathlib takes its time to import
# ruff: noqa: PTH108, PTH123

import _thread
import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from typing import NoReturn

GRACE_S = 5.0
"""For the command, or the sandbox around it, to end all that it started."""

NOT_RUN = 126


def main(path: str) -> int:
    """Run the command to its end; its exit status, or 128 + n after signal n."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(os.dup(file), "rb") as content:
            command = json.loads(content.read())
        os.unlink(path)
    except FileNotFoundError:  # Denizen no longer wants it
        return NOT_RUN
    if not _is_wanted(file):
        return NOT_RUN
    child = os.fork()
    if child == 0:
        _become(**command)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: _terminate(child))
    _thread.start_new_thread(_end_when_unlocked, (file, child))
    _, status = os.waitpid(child, 0)
    _kill_group(child)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _is_wanted(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _become(argv: list[str], environ: dict[str, str], folder: str) -> NoReturn:
    """Run the command in this process: in a session of its own, so that it can't type into the terminal."""
    try:
        os.chdir(folder)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvpe(argv[0], argv, environ)  # noqa: S606
    except BaseException as error:  # noqa: BLE001 (nothing of the copied process may run on)
        os.write(2, f"{argv[0]} can't be run: {error}\n".encode(errors="replace"))
    os._exit(NOT_RUN)


def _end_when_unlocked(file: int, child: int) -> None:
    fcntl.flock(file, fcntl.LOCK_SH)
    _terminate(child)
    time.sleep(GRACE_S)
    _kill_group(child)


def _terminate(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)


def _kill_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
