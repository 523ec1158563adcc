"""Commands in the background: started by `bash`, shown, listed and stopped by `jobs`."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.scene import Host, results

from denizen import Agent, Config, run_agent
from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.ports import Answer, Sandbox, Tool, ToolContext
from denizen.testing import ScriptedModel
from denizen.tools.bash import bash_tool, jobs_tool
from denizen.tools.programs.jobs import Jobs
from denizen.tools.sandbox import Bubblewrap, Unconfined, problem_with

ENVIRON = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
SERVER = "python3 -u -m http.server 0 --bind 127.0.0.1"
FETCH = "exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET /page.txt HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"


@pytest.fixture
async def running() -> AsyncIterator[Jobs]:
    jobs = Jobs(patience=60)
    yield jobs
    await jobs.end()


@pytest.fixture
def tools(running: Jobs) -> tuple[Tool, Tool]:
    """`bash`, without a sandbox, and `jobs`."""
    return bash_tool(Unconfined(SandboxSettings(), ENVIRON), jobs=running), jobs_tool(running)


@pytest.fixture(params=["bubblewrap", "none"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    if request.param == "none":
        return Unconfined(SandboxSettings(), ENVIRON)
    chosen = Bubblewrap(SandboxSettings(), ENVIRON, tmp_path / "home")
    if problem := problem_with(chosen):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(problem)
    return chosen


async def test_other_commands_reach_a_server_in_the_background(
    sandbox: Sandbox, turn: ToolContext, running: Jobs
) -> None:
    (turn.workspace / "page.txt").write_text("served")
    bash = bash_tool(sandbox, jobs=running)
    started = await bash.run({"command": SERVER, "background": "server"}, turn)
    assert "server is running" in started.text
    (port,) = re.findall(r"port (\d+)", started.text)
    assert "served" in (await bash.run({"command": FETCH.format(port=port)}, turn)).text
    assert "GET /page.txt" in (await jobs_tool(running).run({"name": "server"}, turn)).text


@pytest.mark.needs("bwrap")
async def test_a_command_outside_the_sandbox_keeps_the_network_of_the_machine(turn: ToolContext, running: Jobs) -> None:
    sandbox = Bubblewrap(SandboxSettings(), ENVIRON, turn.workspace / "home")
    bash = bash_tool(sandbox, outside=Unconfined(SandboxSettings(), ENVIRON), jobs=running)
    await bash.run({"command": SERVER, "background": "server"}, turn)
    there = await bash.run({"command": "readlink /proc/self/ns/net", "unsandboxed": True}, turn)
    assert there.text.splitlines()[-2:-1] == [str(Path("/proc/self/ns/net").readlink())]


async def test_one_that_was_cancelled_while_it_started_ends_with_the_others(
    tools: tuple[Tool, Tool], turn: ToolContext, running: Jobs
) -> None:
    bash, _ = tools
    os.mkfifo(turn.workspace / "alive")
    starting = asyncio.create_task(bash.run({"command": "exec 9>alive; sleep 1000", "background": "a"}, turn))
    alive = await asyncio.to_thread(os.open, turn.workspace / "alive", os.O_RDONLY)  # until the command has it open
    os.set_blocking(alive, False)
    starting.cancel()
    await asyncio.wait([starting])
    await running.end()
    assert os.read(alive, 1) == b""
    os.close(alive)


async def test_they_are_listed_shown_and_stopped_by_name(tools: tuple[Tool, Tool], turn: ToolContext) -> None:
    bash, jobs = tools
    assert (await jobs.run({}, turn)).text == "Nothing runs in the background."
    await bash.run({"command": "echo one; sleep 60", "background": "a"}, turn)
    await bash.run({"command": "echo two; exit 3", "background": "b"}, turn)
    assert (await jobs.run({}, turn)).text.splitlines()[0] == "a: running · echo one; sleep 60"
    assert (await jobs.run({"name": "a"}, turn)).text == "a: running\none"
    assert (await jobs.run({"name": "a", "stop": True}, turn)).text == "a: stopped\none"
    assert "a: stopped" in (await jobs.run({}, turn)).text


async def test_a_name_that_runs_is_not_taken_twice_and_an_unknown_one_is_refused(
    tools: tuple[Tool, Tool], turn: ToolContext
) -> None:
    bash, jobs = tools
    await bash.run({"command": "echo one; sleep 60", "background": "a"}, turn)
    with pytest.raises(ToolRefused, match="a is running already"):
        await bash.run({"command": "true", "background": "a"}, turn)
    with pytest.raises(ToolRefused, match="no background command 'b'; available: a"):
        await jobs.run({"name": "b"}, turn)


async def test_after_an_ampersand_the_model_sees_how_to_keep_a_command_running(
    tools: tuple[Tool, Tool], turn: ToolContext
) -> None:
    bash, _ = tools
    assert "with a name as `background`" in (await bash.run({"command": "sleep 60 &"}, turn)).text


async def test_they_end_with_the_agent(tmp_path: Path) -> None:
    host = Host()
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    starts = "$(run --background server 'exec 9>alive; echo up; sleep 1000')"
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    config = Config(home=tmp_path / "home", workspace=tmp_path)
    async with Agent(config, profile="coder", model=ScriptedModel([starts, "It runs."]), environ=ENVIRON) as agent:
        (started,) = results(await run_agent("Start it", agent=agent, io=host))
        assert "server is running" in started.text
        with pytest.raises(BlockingIOError):
            os.read(alive, 1)
    assert os.read(alive, 1) == b""
    os.close(alive)
