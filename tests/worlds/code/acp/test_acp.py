"""The agent in an editor: the real program, driven by the protocol's own client library."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse
from tests.cli.model import Model, call, stalls

from denizen.messages import AssistantMessage, ToolCall
from denizen.testing import LoopbackOpenAI


class Editor:
    """A client that keeps what it is told, and answers every request for permission with `option`."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.option: str | None = "once"
        self.spoken = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if update.session_update == "agent_message_chunk":
            self.spoken.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        outcome = (
            AllowedOutcome(outcome="selected", option_id=self.option)
            if self.option
            else DeniedOutcome(outcome="cancelled")
        )
        return RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def said(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    (folder / "hello.py").write_text('print("hello")\n')
    return folder


@pytest.fixture
def model(home: Path, loopback_openai: LoopbackOpenAI) -> Model:
    settings = f'model = "test:scripted"\n[providers.test]\nbase_url = "{loopback_openai.base_url}"\n'
    (home / "denizen.toml").write_text(settings + '[agent]\nactions = "native"\n')
    return Model(loopback_openai)


Connect = Callable[[Editor], Any]


@pytest.fixture
def connect(home: Path, repo: Path) -> Connect:
    @asynccontextmanager
    async def connected(editor: Editor) -> AsyncGenerator[Any]:
        environ = os.environ | {"DENIZEN_HOME": str(home)}
        command = [sys.executable, "-m", "denizen", "acp"]
        async with acp.spawn_agent_process(editor, *command, env=environ, cwd=repo) as (agent, _):  # pyrefly: ignore
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            yield agent

    return connected


async def prompt(agent: Any, session: str, text: str) -> Any:
    return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])


def planning(action: str, text: str) -> AssistantMessage:
    return AssistantMessage([ToolCall("", "task", {"action": action, "text": text})], stop_reason="tool_calls")


async def test_it_says_what_it_can_do(connect: Connect, home: Path) -> None:
    async with connect(Editor()) as agent:
        told = await agent.initialize(protocol_version=1)
    assert told.agent_info.name == "denizen"
    assert told.agent_capabilities.load_session
    assert told.agent_capabilities.prompt_capabilities.image


async def test_an_answer_streams(connect: Connect, repo: Path, model: Model) -> None:
    model.plays("It prints hello.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        assert (await prompt(agent, session, "What does it do?")).stop_reason == "end_turn"
    assert editor.said == "It prints hello."
    assert len(editor.of("agent_message_chunk")) > 1


async def test_an_edit_is_shown_as_a_difference(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("edit", path="hello.py", old="hello", new="good bye"), "Done.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Say good bye")
    (started,) = editor.of("tool_call")
    assert (started.kind, started.locations[0].path) == ("edit", str(repo / "hello.py"))
    ended = editor.of("tool_call_update")[-1]
    assert ended.status == "completed"
    (difference,) = ended.content
    assert difference.path == str(repo / "hello.py")
    assert (difference.old_text, difference.new_text) == ('print("hello")', 'print("good bye")')


async def test_what_must_be_approved_is_asked_in_the_editor(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("bash", command="id", unsandboxed=True), "I could not.")
    editor = Editor()
    editor.option = None
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Who am I?")
    assert editor.asked[0].raw_input == {"command": "id", "unsandboxed": True}
    assert "user said no" in str(model.requests[1]["messages"])


async def test_the_plan_is_shown(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(planning("plan", "Read\nWrite"), planning("start", "1"), "Later.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Plan it")
    entries = editor.of("plan")[-1].entries
    assert [(entry.content, entry.status) for entry in entries] == [("Read", "in_progress"), ("Write", "pending")]


async def test_a_question_waits_for_the_next_prompt(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("ask", question="Which module?"), "The parser it is.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Mend it")
        assert "Which module?" in editor.said
        await prompt(agent, session, "the parser")
    assert "The user answers: the parser" in str(model.requests[1]["messages"])
    assert editor.said.endswith("The parser it is.")


async def test_cancelling_stops_the_turn_and_the_session_goes_on(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(stalls("Let me think "))
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        turn = asyncio.create_task(prompt(agent, session, "Think"))
        await editor.spoken.wait()
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        model.plays("I am back.")
        await prompt(agent, session, "Go on")
    assert editor.said.endswith("I am back.")


async def test_a_session_is_loaded_again_with_what_was_said(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("view", path="hello.py"), "It prints hello.", "It still does.")
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "What does it do?")
    editor = Editor()
    async with connect(editor) as agent:
        found = (await agent.list_sessions(cwd=str(repo))).sessions
        assert [each.title for each in found] == ["What does it do?"]
        await agent.load_session(cwd=str(repo), session_id=found[0].session_id)
        assert editor.of("user_message_chunk")[0].content.text == "What does it do?"
        assert editor.of("tool_call_update")[0].status == "completed"
        assert editor.said == "It prints hello."
        await prompt(agent, found[0].session_id, "And now?")
    assert editor.said.endswith("It still does.")
