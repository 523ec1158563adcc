"""A session is the same whoever goes on with it: a program by the library, or a person at the terminal."""

import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.scene import call

from denizen import Agent, Config, load_config, run_agent
from denizen.messages import AssistantMessage, Text, Thinking, Usage
from denizen.testing import LoopbackAnthropic

ANSWER = AssistantMessage([Thinking("Well.", "signed"), Text("It is tea.")], usage=Usage(10, 20, 5, 3))


@pytest.fixture
def server() -> Iterator[LoopbackAnthropic]:
    with LoopbackAnthropic() as server:
        yield server


@pytest.fixture
def environ(tmp_path: Path, server: LoopbackAnthropic) -> dict[str, str]:
    """The environment of the person and of the program, which share a home."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "denizen.toml").write_text(
        'model = "anthropic:claude-sonnet-4-5"\n[providers.anthropic]\n'
        f'base_url = "{server.base_url}"\nauth_profiles = [{{ id = "one", api_key = "${{KEY_ONE}}" }}]\n'
    )
    (home / "notes.txt").write_text("tea\n")
    return {"DENIZEN_HOME": str(home), "HOME": str(tmp_path), "KEY_ONE": "key-one-12345", "PATH": "/usr/bin:/bin"}


@pytest.fixture
def config(tmp_path: Path, environ: dict[str, str]) -> Config:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "drinks.txt").write_text("tea\n")
    return load_config(environ=environ, cwd=tmp_path, workspace=tmp_path / "work")


async def by_library(text: str, session: str, config: Config, environ: dict[str, str]) -> str:
    async with Agent(config, environ=environ) as agent:
        return (await run_agent(text, session_key=session, agent=agent)).reply


async def by_hand(text: str, session: str, config: Config, environ: dict[str, str]) -> str:
    options = ["--workspace", str(config.workspace), "--session", session, "--quiet"]
    command = [sys.executable, "-m", "denizen", "ask", *options, text]
    process = await create_subprocess_exec(*command, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    reply, said = await process.communicate()
    assert process.returncode == 0, said
    return reply.decode().rstrip("\n")


def seen(server: LoopbackAnthropic) -> list[dict[str, Any]]:
    """What the model was asked, but for what says how and when."""
    asked = [request.json for request in server.requests]
    for request in asked:
        request.pop("stream", None)
    return [_timeless(request) for request in asked]


def _timeless(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub(r"<time>.*?</time>|Session started.*|\d{4}-\d\d-\d\dT[\d:.+]+", "", value)
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items()}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


async def test_a_session_goes_on_in_the_same_way_by_library_and_by_hand(
    server: LoopbackAnthropic, config: Config, environ: dict[str, str]
) -> None:
    looks = call(("read", {"path": "drinks.txt"}), text="I look.")
    conversations = []
    for session, speakers in {"a": [by_library, by_hand, by_library], "b": [by_hand, by_library, by_hand]}.items():
        server.say(looks, ANSWER, looks, ANSWER, ANSWER)
        said = [
            await speak(f"Which drink {number}?", session, config, environ) for number, speak in enumerate(speakers)
        ]
        assert said == ["It is tea."] * 3
        conversations.append(seen(server))
        server.requests.clear()
    assert conversations[0] == conversations[1]
    assert [len(request["messages"]) for request in conversations[0]] == [1, 3, 5, 7, 9]
