"""A home, a repository, a model server, and `denizen` as a program: in pipes, and on a terminal."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.gateway import GatewayProgram, WorkerProgram, share
from tests.cli.in_editor import Connect, Editor
from tests.cli.model import Model
from tests.cli.screen import AT_TERMINAL, PATIENCE, Screen

from denizen.testing import LoopbackOpenAI

PROGRAM = [sys.executable, "-m", "denizen"]


@dataclass(frozen=True)
class Ran:
    """What a program printed, and its exit status."""

    out: str
    err: str
    status: int


Run = Callable[..., Ran]
OnTerminal = Callable[..., Screen]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A small git repository."""
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    (folder / "hello.py").write_text('print("hello")\n')
    return folder


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    user = tmp_path / "user"
    user.mkdir()
    ours = {"NO_COLOR", "COLUMNS", "TERM", "MAKELEVEL", "MAKEFLAGS", "MFLAGS"}  # the suite's own terminal, and its make
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"DENIZEN_HOME": str(home), "HOME": str(user), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


@pytest.fixture(scope="session")
def warm_program(warm_python: list[str]) -> list[str]:
    """In place of `PROGRAM`, starts it much faster: another process than that of the command."""
    return [*warm_python, "-m", "denizen"]


@pytest.fixture
def denizen(repo: Path, environ: dict[str, str], warm_program: list[str]) -> Run:
    """`denizen("ask", "hi", piped="…", cwd=…, NAME="value")`: run it in pipes, in the repository, with variables.

    Variables that Python itself reads need `warm=False`.
    """

    def run(*arguments: str, piped: str | bytes = "", cwd: Path = repo, warm: bool = True, **variables: str) -> Ran:
        data = piped.encode() if isinstance(piped, str) else piped
        done = subprocess.run(
            [*(warm_program if warm else PROGRAM), *arguments],
            input=data,
            capture_output=True,
            cwd=cwd,
            env=environ | variables,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.stdout.decode(), done.stderr.decode(), done.returncode)

    return run


@pytest.fixture
def model(home: Path, loopback_openai: LoopbackOpenAI) -> Model:
    """A scripted model, which the home's configuration names."""
    settings = f'model = "test:scripted"\n[providers.test]\nbase_url = "{loopback_openai.base_url}"\n'
    (home / "denizen.toml").write_text(settings)
    (home / "denizen.toml").chmod(0o600)
    return Model(loopback_openai)


@pytest.fixture
def connect(repo: Path, environ: dict[str, str], warm_program: list[str]) -> Connect:
    """`async with connect(editor, forms=True) as agent`: `denizen acp`, with an editor that can show forms.

    `buffers`: the editor reads and writes files as it shows them. `terminals`: it runs commands.
    """

    @asynccontextmanager
    async def connected(
        editor: Editor, *options: str, forms: bool = False, buffers: bool = False, terminals: bool = False
    ) -> AsyncGenerator[Any]:
        import acp
        from acp.schema import (
            ClientCapabilities,
            ElicitationCapabilities,
            ElicitationFormCapabilities,
            FileSystemCapabilities,
        )

        elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities()) if forms else None
        files = FileSystemCapabilities(read_text_file=buffers, write_text_file=buffers)
        started = acp.spawn_agent_process(
            editor,  # pyrefly: ignore[bad-argument-type]
            *warm_program,
            "acp",
            *options,
            env=environ,
            cwd=repo,
            transport_kwargs={"shutdown_timeout": 60.0},  # a busy machine takes longer than the library's two seconds
            use_unstable_protocol=True,
        )
        async with started as (agent, _):
            await agent.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(elicitation=elicitation, fs=files, terminal=terminals),
            )
            yield agent

    return connected


@pytest.fixture
def nobody() -> str:
    """An address on this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture
def asks_about_writes(home: Path, model: Model) -> None:
    """The user's policy: `write` asks."""
    with (home / "denizen.toml").open("a") as file:
        file.write('[policy]\nrules = [{ tool = "write", decide = "ask" }]\n')


@pytest.fixture
def on_terminal(repo: Path, environ: dict[str, str], warm_program: list[str]) -> Iterator[OnTerminal]:
    """`on_terminal("chat", NO_COLOR="1")`: start it on a terminal, in the repository, with these variables.

    Tests that need its own process number, or kill it, start it with `warm=False`.
    """
    screens: list[Screen] = []

    def start(*arguments: str, stdin: int | None = None, warm: bool = True, **variables: str) -> Screen:
        program, first = (warm_program, ()) if warm else (PROGRAM, AT_TERMINAL)
        screens.append(Screen([*program, *arguments], repo, environ | variables, stdin=stdin, start=first))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
async def gateway(
    home: Path, environ: dict[str, str], model: Model, warm_python: list[str]
) -> AsyncGenerator[GatewayProgram]:
    """A gateway that isn't started yet, and ends with the test."""
    program = GatewayProgram(home, environ, quick=True, python=warm_python)
    yield program
    await program.end(signal.SIGKILL)


@pytest.fixture
async def workers(
    home: Path, environ: dict[str, str], model: Model, warm_python: list[str]
) -> AsyncGenerator[list[WorkerProgram]]:
    """Workers that aren't started yet, and end with the test."""
    programs = [WorkerProgram(home, environ, quick=True, python=warm_python) for _ in range(8)]
    yield programs
    for program in programs:
        await program.end(signal.SIGKILL)


@pytest.fixture
def shared(home: Path, model: Model, postgres_url: str) -> str:
    """The URL of the database that the programs share."""
    share(home, postgres_url)
    return postgres_url
