"""`denizen moo group` as a program: agents of a group on a server that speaks telnet."""

import os
import signal
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.cli.conftest import PROGRAM, OnTerminal, Run
from tests.cli.model import Model

from denizen.worlds.moo.group import open_group


class Mud(socketserver.ThreadingTCPServer):
    """Answers every line of a player until @quit; `got` are the lines of each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Player)
        self.got: dict[str, list[str]] = {}


class _Player(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Mud)
        self.wfile.write(b"Welcome.\r\n> \xff\xf9")
        name = ""
        while line := self.rfile.readline().decode(errors="replace").strip():
            name = name or line.split()[1]
            self.server.got.setdefault(name, []).append(line.lstrip("\ufffd"))
            if line.endswith("@quit"):
                break
            self.wfile.write(b"You see a lamp.\r\n> \xff\xf9")


@pytest.fixture
def mud() -> Iterator[Mud]:
    with Mud() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path, mud: Mud) -> Path:
    """A group of two."""
    for name in ("Ann", "Bob"):
        (tmp_path / "town" / name).mkdir(parents=True)
        (tmp_path / "town" / name / "SOUL.md").write_text(f"# Name\n{name}\n")
        where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {mud.server_address[1]}\nuser = "{name.lower()}"\n'
        (tmp_path / "town" / name / "denizen.toml").write_text(
            f'model = "offline"\n[moo]\n{where}password = "a-pass-1"\nidle_wakeup_seconds = 0\n'
        )
    (tmp_path / "town" / "group.toml").write_text('agents = ["Ann", "Bob"]\n')
    return tmp_path / "town"


def until(so: Callable[[], object]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + 200
    while not so():
        assert time.monotonic() < end, "it doesn't come"
        time.sleep(0.05)


@contextmanager
def running(
    command: Sequence[str], environ: Mapping[str, str], stdout: int, stderr: int | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """The program while the block runs, which leaves nothing of it."""
    with subprocess.Popen(command, env=environ, stdout=stdout, stderr=stderr) as program:
        try:
            yield program
        finally:
            program.kill()


def doing(folder: Path, environ: dict[str, str]) -> list[str]:
    """What each agent does, or what became of it."""
    states = open_group(folder, environ).states().values()
    return [state.doing if state.life == "playing" else state.life for state in states]


@pytest.mark.parametrize("processes", ["one", "each"])
def test_a_group_runs_once_says_how_it_is_and_leaves_with_quit(
    denizen: Run, environ: dict[str, str], folder: Path, mud: Mud, processes: str
) -> None:
    assert denizen("moo", "group", "status", str(folder)).status == 1
    command = [*PROGRAM, "moo", "group", "up", "--processes", processes, str(folder)]
    with running(command, environ, subprocess.PIPE, subprocess.STDOUT) as program:
        until(lambda: doing(folder, environ) == ["waiting", "waiting"])
        ran = denizen("moo", "group", "status", str(folder))
        assert (ran.status, ran.out.splitlines()[0]) == (0, f"running: process {program.pid}; token: nobody")
        assert [line.split()[:2] for line in ran.out.splitlines()[2:]] == [["Ann", "playing"], ["Bob", "playing"]]
        ran = denizen("moo", "group", "up", str(folder))
        assert (ran.status, f"is already running (process {program.pid})" in ran.err) == (2, True)
        assert denizen("moo", "group", "cycle-age", str(folder)).status == 0
        stats = denizen("moo", "group", "stats", str(folder)).out.splitlines()
        assert stats[1].split() == ["Ann", "0", "0", "0", "0", "0", "$0.0000", "0.0", "s"]
        assert f"has ended (process {program.pid})" in denizen("moo", "group", "down", str(folder)).out
        assert program.stdout
        out = program.stdout.read().decode()
        assert program.wait() == 0
    assert {name: (lines[0], lines[-1]) for name, lines in mud.got.items()} == {
        "ann": ("connect ann a-pass-1", "@quit"),
        "bob": ("connect bob a-pass-1", "@quit"),
    }
    assert "Bob [system] Signed in as Bob." in out
    ran = denizen("moo", "group", "status", str(folder))
    assert (ran.status, ran.out.splitlines()[0]) == (1, "not running")
    assert ran.out.count("stopped") == 2
    assert denizen("moo", "group", "cycle-age", str(folder)).status == 1
    assert denizen("moo", "group", "down", str(folder)).status == 0


@pytest.mark.parametrize("processes", ["one", "each"])
def test_an_agent_that_cannot_play_is_given_up_and_the_others_play_on(
    denizen: Run, environ: dict[str, str], folder: Path, mud: Mud, processes: str
) -> None:
    file = folder / "Bob" / "denizen.toml"
    file.write_text(file.read_text().replace('"telnet"', '"ssh"').replace("a-pass-1", "") + 'key_file = "/nowhere"\n')
    command = [*PROGRAM, "moo", "group", "up", "--processes", processes, str(folder)]
    with running(command, environ, subprocess.PIPE, subprocess.PIPE) as program:
        until(lambda: doing(folder, environ) == ["waiting", "gave up"])
        assert denizen("moo", "group", "cycle-age", str(folder)).out.count("stale") == 1
        program.send_signal(signal.SIGTERM)
        assert program.stderr
        said = program.stderr.read().decode()
        assert program.wait() == 1
    assert "error: Bob was given up: " in said
    assert mud.got["ann"][-1] == "@quit"


LOGFIRE = """\
import os
from urllib.request import urlopen
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

def configure(*, token, **options):
    class Sends(SpanProcessor):
        def on_end(self, span):
            urlopen(os.environ["COLLECTOR"], f"{token} {span.name}".encode()).close()

    provider = TracerProvider()
    provider.add_span_processor(Sends())
    trace.set_tracer_provider(provider)
"""
"""What Logfire's package does, as far as it matters here."""


class Collector(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    got: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nowhere."""


@pytest.mark.parametrize("processes", ["one", "each"])
def test_the_cycles_of_a_group_are_recorded_where_a_token_asks_for_that(
    environ: dict[str, str], home: Path, folder: Path, model: Model, processes: str
) -> None:
    (home / ".env").write_text("LOGFIRE_TOKEN=pylf_x\n")
    (home / ".env").chmod(0o600)
    (folder / "logfire.py").write_text(LOGFIRE)
    for name in ("Ann", "Bob"):
        file = folder / name / "denizen.toml"
        timed = file.read_text().replace('model = "offline"\n', "").replace("_seconds = 0", "_seconds = 0.1")
        file.write_text(timed)
    model.plays(*["Nothing to do."] * 50)
    Collector.got.clear()
    command = [*PROGRAM, "moo", "group", "up", "--processes", processes, str(folder)]
    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        given = {"PYTHONPATH": str(folder), "COLLECTOR": f"http://127.0.0.1:{collector.server_port}/"}
        with running(command, environ | given, subprocess.DEVNULL) as program:
            until(lambda: "pylf_x llm_cycle" in Collector.got)
            program.terminate()
            assert program.wait() == 0
        collector.shutdown()


def test_after_a_group_was_killed_it_is_not_said_to_play_and_can_be_started_again(
    denizen: Run, environ: dict[str, str], folder: Path, mud: Mud
) -> None:
    command = [*PROGRAM, "moo", "group", "up", str(folder)]
    for _ in range(2):
        with running(command, environ, subprocess.DEVNULL) as program:
            until(lambda: doing(folder, environ) == ["waiting", "waiting"])
            os.kill(program.pid, signal.SIGKILL)
        ran = denizen("moo", "group", "status", str(folder))
        assert (ran.status, ran.out.count("stopped")) == (1, 2)


def test_on_a_terminal_all_are_on_one_screen_and_instructions_go_to_the_one_in_sight(
    on_terminal: OnTerminal, folder: Path, mud: Mud
) -> None:
    screen = on_terminal("moo", "group", "up", "--processes", "each", str(folder))
    screen.shows("Signed in as Ann")
    screen.shows("(Ann) waiting>")
    screen.type("light the lamp\r")
    screen.shows("      light the lamp")
    screen.type("\x0e")
    screen.gone("light the lamp")
    screen.shows("(Bob) waiting>")
    screen.type("\x03")
    assert screen.end() == 0
    assert {name: lines[-1] for name, lines in mud.got.items()} == {"ann": "@quit", "bob": "@quit"}
    assert screen.modes == screen.modes_before
