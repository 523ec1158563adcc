"""The agent in an editor: the real program, driven by the protocol's own client library."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, call, stalls
from tests.cli.test_cancel import wait_until

from denizen.messages import AssistantMessage, ToolCall


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


@pytest.fixture(autouse=True)
def structured_calls(home: Path, model: Model) -> None:
    """The user's choice: the coder acts by them, too."""
    with (home / "denizen.toml").open("a") as file:
        file.write('[agent]\nactions = "native"\n')


Connect = Callable[[Editor], Any]


@pytest.fixture
def connect(repo: Path, environ: dict[str, str]) -> Connect:
    @asynccontextmanager
    async def connected(editor: Editor) -> AsyncGenerator[Any]:
        async with acp.spawn_agent_process(editor, *PROGRAM, "acp", env=environ, cwd=repo) as (agent, _):  # pyrefly: ignore
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            yield agent

    return connected


def transcript(home: Path) -> str:
    (file,) = home.glob("sessions/**/*.jsonl")
    return file.read_text()


async def prompt(agent: Any, session: str, text: str) -> Any:
    return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])


def planning(action: str, text: str) -> AssistantMessage:
    return AssistantMessage([ToolCall("", "task", {"action": action, "text": text})], stop_reason="tool_calls")


async def test_it_says_what_it_can_do(connect: Connect) -> None:
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


async def test_what_the_configuration_leaves_out_is_told_once(connect: Connect, repo: Path, model: Model) -> None:
    (repo / "denizen.toml").write_text("[agent]\nmax_iterations = 2\n")  # nobody trusted this folder
    model.plays("Hello.", "Hello again.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Hello")
        await prompt(agent, session, "Hello again")
    (told,) = editor.of("agent_thought_chunk")
    assert "denizen.toml" in told.content.text


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


async def test_cancelling_twice_is_cancelling(connect: Connect, repo: Path, home: Path, model: Model) -> None:
    model.plays(call("bash", command="echo > started; sleep 1000"), "I am back.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        turn = asyncio.create_task(prompt(agent, session, "Wait"))
        await asyncio.to_thread(wait_until, (repo / "started").exists)
        with pytest.raises(acp.RequestError):
            await prompt(agent, session, "And this meanwhile")
        await agent.cancel(session_id=session)
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        await prompt(agent, session, "Go on")
    assert "cancelled while it ran" in transcript(home)


async def test_two_sessions_work_at_once(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(stalls("Let me think "), "Hello.")
    editor = Editor()
    async with connect(editor) as agent:
        first, second = [(await agent.new_session(cwd=str(repo))).session_id for _ in range(2)]
        turn = asyncio.create_task(prompt(agent, first, "Think"))
        await editor.spoken.wait()
        assert (await prompt(agent, second, "Hi")).stop_reason == "end_turn"
        await agent.cancel(session_id=first)
        assert (await turn).stop_reason == "cancelled"


async def test_what_is_not_there_or_not_understood_is_an_error(connect: Connect, repo: Path, model: Model) -> None:
    async with connect(Editor()) as agent:
        with pytest.raises(acp.RequestError):
            await agent.load_session(cwd=str(repo), session_id="never-begun")
        with pytest.raises(acp.RequestError):
            await agent.new_session(cwd=str(repo / "nowhere"))
        session = (await agent.new_session(cwd=str(repo))).session_id
        for block in (acp.audio_block("AAAA", "audio/wav"), acp.image_block("no base64!", "image/png")):
            with pytest.raises(acp.RequestError):
                await agent.prompt(session_id=session, prompt=[block])
        model.plays("Hello.")
        assert (await prompt(agent, session, "Hi")).stop_reason == "end_turn"


async def test_files_and_images_go_with_a_prompt(connect: Connect, repo: Path, model: Model) -> None:
    model.plays("I see.")
    inside = (repo / "hello.py").as_uri()
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await agent.prompt(
            session_id=session,
            prompt=[
                acp.text_block("Look\r\nat these:"),
                acp.resource_link_block("hello.py", inside),
                acp.resource_block(acp.embedded_text_resource("file:///else/a%20b.txt", "the text")),
                acp.image_block("AAAA", "image/png"),
            ],
        )
    said = str(model.requests[0]["messages"][-1])
    assert "[hello.py](hello.py)" in said
    assert '<file path="/else/a b.txt">' in said
    assert "data:image/png;base64,AAAA" in said


async def test_a_permission_that_waits_is_asked_for_again_and_not_taken_from_words(
    connect: Connect, denizen: Run, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="touch made", unsandboxed=True))
    assert denizen("code", "--session", "s", "Make it").status == 4
    model.plays("Then not.")
    editor = Editor()
    editor.option = None
    async with connect(editor) as agent:
        await agent.load_session(cwd=str(repo), session_id="s")
        await prompt(agent, "s", "no, don't")
    assert len(editor.asked) == 1
    assert not (repo / "made").exists()


async def test_an_editor_that_hangs_up_ends_the_program_and_what_is_complete_is_kept(
    repo: Path, home: Path, environ: dict[str, str], model: Model
) -> None:
    model.plays(call("bash", command="echo printed; echo > started; sleep 1000"))
    program = await asyncio.create_subprocess_exec(
        *PROGRAM,
        "acp",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environ,
        cwd=repo,
    )
    assert program.stdin
    assert program.stdout
    lines: list[Any] = []
    stdin = program.stdin

    async def ask(method: str, **params: Any) -> None:
        request = {"jsonrpc": "2.0", "id": len(lines), "method": method, "params": params}
        stdin.write(json.dumps(request).encode() + b"\r\n")

    await ask("initialize", protocolVersion=1)
    lines.append(json.loads(await program.stdout.readline()))
    await ask("session/new", cwd=str(repo), mcpServers=[])
    lines.append(json.loads(await program.stdout.readline()))
    session = lines[-1]["result"]["sessionId"]
    await ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Wait"}])
    await asyncio.to_thread(wait_until, (repo / "started").exists)
    stdin.close()
    rest = await program.stdout.read()
    assert await program.wait() == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    last = json.loads(transcript(home).splitlines()[-1])
    assert (last["type"], last["stop_reason"]) == ("end", "cancelled")


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


async def test_a_command_that_failed_says_the_same_when_it_is_loaded_again(
    connect: Connect, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="echo begun; echo the last word; exit 3"), "It fails.")
    first, again = Editor(), Editor()
    async with connect(first) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Try it")
    async with connect(again) as agent:
        await agent.load_session(cwd=str(repo), session_id=session)
    told = again.of("tool_call_update")[-1]
    assert told.content[0].content.text == "exit code 3: the last word"
    assert told == first.of("tool_call_update")[-1]
