"""How soon the full screen answers a key."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from benchmarks.contenders import Broken, Entry
from benchmarks.hall import Plan
from benchmarks.report import Goal, Table, number

NOTE = """\
Milliseconds by the clock from writing a key to a pseudo-terminal of {columns} × {rows} until the whole frame that
answers it was read there, from a process of its own; frames come at most every 17 ms. *At rest*: {keys} letters at the
prompt, then {keys} each of ↑, ↓, PgUp, PgDn, Home and End in scroll mode; *CPU* is what one of these keys costs. *Lines
arriving*: {keys} letters, while {rate} lines a second come in."""
COLUMNS = ("lines", "load, s", "at rest, median", "p95", "most", "CPU", "lines arriving, median", "p95", "most")
COUNTS = (1_000, 100_000)
WIDTH, HEIGHT = 120, 40
RATE = 50
GOAL_MS = 50
QUIET = 0.05  # seconds without a byte after which a frame is over
PATIENCE = 120.0
PAIRS = (("\x1b[A", "\x1b[B"), ("\x1b[5~", "\x1b[6~"), ("\x1b[H", "\x1b[F"))  # each key undoes the other
PROGRAM = """
import time
from denizen.runtime.clock import SystemClock
from denizen.tui.agent_view import AgentView
from denizen.tui.agents_app import AgentsApp
view = AgentView("Mason", lambda text: None, SystemClock(), most={count})
begun = time.monotonic()
kinds = ("server", "action", "thought", "goal")
for number in range({count}):
    text = f"{{number}} You see an oak chair here." + " It is old and worn." * (number % 7)
    view.line(kinds[number % 4], text)
class Benched(AgentsApp):
    def on_mount(self):
        super().on_mount()
        if {rate}:
            self.set_interval(1 / max({rate}, 1), lambda: view.line("server", "The lamp burns here."))
        self.call_after_refresh(lambda: view.status(f"loaded-{{time.monotonic() - begun:.2f}}-"))
Benched([view]).run()
"""


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    keys = 20 * plan.repeats
    result = Table("A key on the full screen", NOTE.format(columns=WIDTH, rows=HEIGHT, keys=keys, rate=RATE), COLUMNS)
    for count in COUNTS:
        with _program(count, 0) as screen:
            loaded = screen.until("loaded-", "-")
            screen.rest()
            begun = screen.cpu_ms()
            taken = [screen.press("x") for _ in range(keys)]
            screen.press("\x1b")
            taken += [screen.press(key) for pair in PAIRS for _ in range(keys) for key in pair]
            cpu = number((screen.cpu_ms() - begun) / len(taken))
        with _program(count, RATE) as screen:
            screen.until("loaded-", "-")
            arriving = [screen.press_letter("q") for _ in range(keys)]
        result.add(f"{count:,}", loaded, *_cells(taken), cpu, *_cells(arriving))
        result.goals.append(Goal(f"a key's frame with {count:,} lines, p95", GOAL_MS, _p95(taken), "ms"))
    return result


def _cells(taken: Sequence[float]) -> tuple[str, str, str]:
    return number(quantiles(taken, n=2)[0]), number(_p95(taken)), number(max(taken))


def _p95(taken: Sequence[float]) -> float:
    return quantiles(taken, n=20)[-1]


class Screen:
    """The master side of a pseudo-terminal that a program draws on."""

    def __init__(self, fd: int, pid: int) -> None:
        self._fd, self._pid = fd, pid

    def cpu_ms(self) -> float:
        """What the program has used so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")

    def until(self, begin: str, end: str) -> str:
        """What stands between these on the screen, once it does."""
        seen, give_up = "", time.monotonic() + PATIENCE
        while end not in seen.partition(begin)[2]:
            seen += self._read(give_up - time.monotonic()) or _silent(begin)
        return seen.partition(begin)[2].partition(end)[0]

    def rest(self) -> None:
        """Wait until nothing is drawn any more."""
        while self._read(10 * QUIET):
            pass

    def press(self, key: str) -> float:
        """Milliseconds until the frame that answers the key was there."""
        begun = time.monotonic()
        os.write(self._fd, key.encode())
        if not self._read(PATIENCE):
            _silent(repr(key))
        ended = time.monotonic()
        while self._read(QUIET):
            ended = time.monotonic()
        return (ended - begun) * 1e3

    def press_letter(self, letter: str) -> float:
        """Milliseconds until the letter, which nothing else shows, was drawn."""
        begun = time.monotonic()
        os.write(self._fd, letter.encode())
        while letter not in (self._read(PATIENCE) or _silent(letter)):
            pass
        taken = (time.monotonic() - begun) * 1e3
        time.sleep(QUIET)
        return taken

    def _read(self, patience: float) -> str:
        if not select.select([self._fd], [], [], max(patience, 0))[0]:
            return ""
        return os.read(self._fd, 1 << 20).decode(errors="replace")


def _silent(wanted: str) -> str:
    raise Broken(f"the screen never showed {wanted!r}")


@contextmanager
def _program(count: int, rate: int) -> Generator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    command = [sys.executable, "-c", PROGRAM.format(count=count, rate=rate)]
    environ = os.environ | {"TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as child:
        os.close(theirs)
        try:
            yield Screen(ours, child.pid)
        finally:
            child.kill()
            os.close(ours)
