"""A program on a pseudo-terminal, used as a person would."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

PATIENCE = 90.0
"""Seconds after which what should appear won't."""

_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[ -/]*[0-~]")
_AT_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


AT_TERMINAL = (sys.executable, "-ISc", _AT_TERMINAL)
"""Begins the command of a program that is to have the terminal; who was started by `warm.py` has it anyway."""


class Screen:
    """Runs `argv` with a terminal of 24 rows as its standard streams, or with another `stdin`."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        *,
        stdin: int | None = None,
        columns: int = 80,
        start: Sequence[str] = AT_TERMINAL,
    ) -> None:
        self._fd, terminal = pty.openpty()
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.modes_before = self.modes
        self.process = subprocess.Popen(
            [*start, *argv],
            cwd=cwd,
            env=environ,
            stdin=terminal if stdin is None else stdin,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self.raw = ""
        self._seen = 0
        self._rows = pyte.Screen(columns, 24)
        self._terminal = pyte.ByteStream(self._rows)

    @property
    def text(self) -> str:
        """All that was shown, without colours and cursor movements."""
        return _CODES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def rows(self) -> list[str]:
        """What is on the screen now."""
        return [row.rstrip() for row in self._rows.display]

    def expect(self, wanted: str) -> str:
        """Wait until that is shown after what was expected before; what was shown up to there."""
        end = time.monotonic() + PATIENCE
        while (place := self.text.find(wanted, self._seen)) < 0:
            assert self._read(end - time.monotonic()), f"{wanted!r} was not shown in {self.text[self._seen :]!r}"
        shown = self.text[self._seen : place]
        self._seen = place + len(wanted)
        return shown

    def shows(self, wanted: str) -> None:
        """Wait until that is on the screen, whichever of its characters were drawn when."""
        self._until(lambda rows: any(wanted in row for row in rows), f"{wanted!r} is not on the screen")

    def gone(self, unwanted: str) -> None:
        """Wait until that isn't on the screen."""
        self._until(lambda rows: not any(unwanted in row for row in rows), f"{unwanted!r} is on the screen")

    def _until(self, holds: Callable[[Sequence[str]], bool], otherwise: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds(self._rows.display):
            assert self._read(end - time.monotonic()), "\n".join([f"{otherwise}:", *self.rows])

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def enter(self, line: str) -> None:
        """Type a line and press Enter."""
        self.type(f"{line}\r")

    @property
    def modes(self) -> int:
        """What the terminal itself does with keys."""
        return termios.tcgetattr(self._fd)[3]

    @property
    def echoes(self) -> bool:
        """Whether the terminal is in its usual mode, where it shows what is typed."""
        return bool(self.modes & termios.ECHO)

    def end(self) -> int:
        """Wait until the program has ended; its exit status."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(PATIENCE)

    def hang_up(self) -> int:
        """Take the terminal away; the program's exit status."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self._fd)
        os.close(nothing)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)

    def _read(self, patience: float) -> bool:
        if not select.select([self._fd], [], [], max(patience, 0))[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # Linux's way to say that nobody has the terminal open any more
            return False
        self.raw += data.decode(errors="replace")
        self._terminal.feed(data)
        return bool(data)
