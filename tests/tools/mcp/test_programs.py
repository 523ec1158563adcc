"""Servers that are programs: other people's, and damaged ones."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.mcp.conftest import BIN, HOSTILE, Scene, hostile

from denizen.config.settings import McpServer
from denizen.errors import ToolRefused
from denizen.messages import Image, Text
from denizen.ports import Answer

EVERYTHING = McpServer(command="mcp-server-everything", env={"PATH": os.environ["PATH"]})


async def test_the_time_server_answers(scene: Scene) -> None:
    async with scene.met({"time": McpServer(command=str(BIN / "mcp-server-time"))}) as tools:
        assert set(tools) == {"mcp_time_get_current_time", "mcp_time_convert_time"}
        now = await scene.call(tools["mcp_time_get_current_time"], timezone="Asia/Tokyo")
        assert json.loads(now.text)["timezone"] == "Asia/Tokyo"
        wrong = await scene.call(tools["mcp_time_get_current_time"], timezone="Nowhere")
        assert wrong.is_error
        assert "Nowhere" in wrong.text


async def test_the_git_server_works_in_a_repository(scene: Scene) -> None:
    subprocess.run(["git", "init", "--quiet", scene.workspace], check=True)
    (scene.workspace / "new.txt").write_text("new")
    async with scene.met({"git": McpServer(command=str(BIN / "mcp-server-git"))}) as tools:
        status = await scene.call(tools["mcp_git_git_status"], repo_path=str(scene.workspace))
        assert "new.txt" in status.text


@pytest.mark.needs("mcp-server-everything")
async def test_the_server_of_everything_is_understood(scene: Scene) -> None:
    async with scene.met({"all": EVERYTHING}) as tools:
        assert (await scene.call(tools["mcp_all_get_sum"], a=2, b=3)).text == "The sum of 2 and 3 is 5."
        picture = await scene.call(tools["mcp_all_get_tiny_image"])
        assert {type(part) for part in picture.content} == {Text, Image}
        await scene.call(tools["mcp_all_trigger_long_running_operation"], duration=0.01, steps=2)
        assert "2/2" in "".join(scene.shown)
        listed = await scene.call(tools["mcp_resource"], server="all")
        uri = next(line.split()[0] for line in listed.text.splitlines() if "features.md" in line)
        assert "# " in (await scene.call(tools["mcp_resource"], server="all", uri=uri)).text
        assert "args-prompt(city, state)" in (await scene.call(tools["mcp_prompt"], server="all")).text
        prompt = await scene.call(tools["mcp_prompt"], server="all", name="args-prompt", arguments={"city": "Bonn"})
        assert "Bonn" in prompt.text


@pytest.mark.parametrize("roots", [[], [".", "~/notes"]], ids=["none by default", "those of the settings"])
async def test_a_server_learns_of_the_roots_in_its_settings(scene: Scene, roots: list[str]) -> None:
    async with scene.met({"notes": hostile("roots", roots=roots)}) as tools:
        answer = json.loads((await scene.call(tools["mcp_notes_work"])).text)
    folders = [scene.workspace, Path("~/notes").expanduser()]
    expected = {"roots": [{"uri": each.as_uri()} for each in folders]} if roots else "not offered"
    assert answer == expected


@pytest.mark.needs("mcp-server-everything")
async def test_a_form_is_asked_field_by_field(scene: Scene) -> None:
    scene.answers = ["Ada", "yes"]
    async with scene.met({"all": EVERYTHING}) as tools:
        result = await scene.call(tools["mcp_all_trigger_elicitation_request"])
    assert "The MCP server all asks" in scene.asked[0]
    assert "Name: Ada" in result.text


async def test_a_question_is_asked_again_until_its_answer_fits(scene: Scene) -> None:
    scene.answers = ["big", "7"]
    async with scene.met({"bad": hostile("asks")}) as tools:
        result = await scene.call(tools["mcp_bad_work"])
    assert json.loads(result.text) == {"action": "accept", "content": {"size": 7}}
    assert len(scene.asked) == 2


async def test_an_empty_answer_declines(scene: Scene) -> None:
    async with scene.met({"bad": hostile("asks")}) as tools:
        result = await scene.call(tools["mcp_bad_work"])
    assert json.loads(result.text) == {"action": "decline"}


async def test_a_question_that_may_be_another_sessions_is_not_asked(scene: Scene) -> None:
    async with scene.met({"bad": hostile("asks")}) as tools:
        work = tools["mcp_bad_work"]
        results = await asyncio.gather(*(work.run({}, scene.turn(session)) for session in ("one", "two")))
    assert json.loads(results[0].text) == {"action": "cancel"}
    assert len(scene.asked) == 1  # when the first call was over, it could only be the second one's


async def test_a_server_gets_only_what_is_configured(scene: Scene) -> None:
    environ = {"PATH": os.environ["PATH"], "LANG": "C", "ANTHROPIC_API_KEY": "k", "OTHER": "o", "LD_PRELOAD": ""}
    async with scene.servers({"plain": hostile(env={"MINE": "m"})}, environ=environ) as servers:
        await servers.meet()
        result = await scene.call(servers.tools()[0], a=1)
    given = json.loads(result.text)
    assert {"PATH", "LANG", "MINE"} <= set(given["environ"])
    assert not {"ANTHROPIC_API_KEY", "OTHER", "LD_PRELOAD"} & set(given["environ"])
    assert given["args"] == {"a": 1}
    assert given["cwd"] == str(scene.workspace)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (McpServer(command="no-such-server"), "there is no program no-such-server"),
        (hostile("ends"), "exit code 1; its standard error ends with: no licence found"),
        (hostile("silent", start_timeout=0.5), "it wasn't ready within 0.5 s"),
        (hostile("noise"), "'Listening on port 80', which isn't a message of MCP"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(scene: Scene, server: McpServer, words: str) -> None:
    async with scene.servers({"bad": server}) as servers:
        (why,) = await servers.meet()
        assert "the MCP server bad can't be used" in why
        assert words in why
        assert servers.tools() == []


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (hostile("dies"), "what the call did is unknown: .*exit code 3; .*a wheel came off"),
        (hostile("stalls", timeout=0.5), "gave no answer within 0.5 s"),
        (hostile("floods"), "a message of more than 16,000,000 bytes"),
        (hostile("odd"), "the MCP server bad says: "),
    ],
)
async def test_a_call_that_fails_says_why_and_the_next_one_runs(scene: Scene, server: McpServer, words: str) -> None:
    async with scene.met({"bad": server}) as tools:
        for _ in range(2):
            with pytest.raises(ToolRefused, match=words):
                await scene.call(tools["mcp_bad_work"])


async def test_a_server_that_keeps_failing_is_left_alone_for_longer_each_time(scene: Scene) -> None:
    async with scene.met({"bad": hostile("dies")}) as tools:
        refusals: list[str] = []
        for _ in range(4):
            with pytest.raises(ToolRefused) as refused:
                await scene.call(tools["mcp_bad_work"])
            refusals.append(str(refused.value))
        assert "next try in 1 s" in refusals[2]
        await scene.clock.sleep(1)
        with pytest.raises(ToolRefused, match="what the call did is unknown"):
            await scene.call(tools["mcp_bad_work"])
        with pytest.raises(ToolRefused, match="next try in 2 s"):
            await scene.call(tools["mcp_bad_work"])


async def test_a_listing_without_an_end_is_cut(scene: Scene) -> None:
    async with scene.met({"bad": hostile("endless")}) as tools:
        assert len(tools) == 102  # the search and the call, and a page each


async def test_a_listing_that_is_too_large_is_cut_to_what_can_be_read_again(scene: Scene) -> None:
    async with scene.met({"bad": hostile("bulky")}) as tools:
        some = len(tools)
    async with scene.servers({"bad": hostile("bulky")}) as servers:
        assert servers.unmet == []
        assert len(servers.tools()) == some > 50


async def test_a_server_that_cannot_do_what_it_says_is_used_for_the_rest(scene: Scene) -> None:
    async with scene.met({"bad": hostile("boasts")}) as tools:
        assert set(tools) == {"mcp_bad_work"}


async def test_no_tool_is_called_while_what_changed_is_unknown(scene: Scene) -> None:
    async with scene.met({"bad": hostile("changes")}) as tools:
        await scene.call(tools["mcp_bad_work"])
        for _ in range(2):
            with pytest.raises(ToolRefused, match="not now"):
                await scene.call(tools["mcp_bad_work"])


async def test_a_server_that_never_starts_is_not_waited_for_at_the_end(scene: Scene) -> None:
    async with asyncio.timeout(30), scene.servers({"bad": hostile("silent", start_timeout=600)}) as servers:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await servers.meet()


async def test_a_cancelled_call_leaves_the_server_to_the_others(scene: Scene) -> None:
    asked = asyncio.Event()

    async def ask(question: str) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError(question)

    scene.answers = ["7"]
    async with scene.met({"bad": hostile("asks")}) as tools:
        waiting = asyncio.create_task(tools["mcp_bad_work"].run({}, replace(scene.turn(), ask=ask)))
        await asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert '"size": 7' in (await scene.call(tools["mcp_bad_work"])).text


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def ended(*pids: int) -> bool:
    async with asyncio.timeout(20):
        while any(map(is_alive, pids)):  # noqa: ASYNC110 (the kernel tells nobody)
            await asyncio.sleep(0.02)
    return True


async def test_no_process_of_a_server_outlives_the_agent(scene: Scene, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with scene.met({"plain": hostile(env={"PID": str(pid)})}) as tools:
        await scene.call(tools["mcp_plain_work"])
        server, child = map(int, pid.read_text().split())
        assert is_alive(server)
        assert is_alive(child)
    assert not is_alive(server)
    assert not is_alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
async def test_no_process_of_a_server_outlives_an_agent_that_is_killed(scene: Scene, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    settings = json.dumps([sys.executable, [str(HOSTILE)], {"PID": str(pid)}])
    script = (
        "import asyncio, json, sys, pathlib\n"
        "from denizen.runtime.clock import SystemClock\n"
        "from denizen.config.settings import McpServer\n"
        "from denizen.tools.mcp import McpServers\n"
        "from denizen.trusted.session_files import SessionFiles\n"
        "async def main():\n"
        "    command, args, env = json.loads(sys.argv[1])\n"
        "    home, work = map(pathlib.Path, sys.argv[2:])\n"
        "    servers = {'a': McpServer(command=command, args=args, env=env)}\n"
        "    servers = McpServers(servers, SessionFiles(home), workspace=work,\n"
        "        environ={}, clock=SystemClock(), most_tools=9)\n"
        "    assert await servers.meet() == []\n"
        "    print('met', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, settings, str(scene.home), str(scene.workspace)), stdout=subprocess.PIPE
    )
    assert agent.stdout
    assert await agent.stdout.readline() == b"met\n"
    server, child = map(int, pid.read_text().split())
    agent.send_signal(signal.SIGKILL)
    await agent.wait()
    assert await ended(server, child)


async def test_a_server_is_started_when_it_is_first_used_and_serves_all_sessions(scene: Scene, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = {"plain": hostile(env={"PID": str(pid)})}
    async with scene.met(server):
        pass
    pid.unlink()
    async with scene.servers(server) as servers:
        assert servers.unmet == []
        (tool,) = servers.tools()
        assert not pid.exists()
        await asyncio.gather(*(tool.run({}, scene.turn(session)) for session in ("one", "two", "three")))
        assert len(pid.read_text().splitlines()) == 1
