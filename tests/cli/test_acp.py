"""The agent in an editor: the real program, driven by the protocol's own client library."""

import asyncio
import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import acp
import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.in_editor import Connect, Editor, prompt
from tests.cli.model import Model, call, refuses, stalls
from tests.cli.test_cancel import wait_until
from tests.documents import PAPER

from denizen.messages import AssistantMessage, StopReason, Text, ToolCall


@pytest.fixture(autouse=True)
def structured_calls(home: Path, model: Model) -> None:
    """The user's choice: the coder acts by them, too."""
    with (home / "denizen.toml").open("a") as file:
        file.write('[agent]\nactions = "native"\n')


def transcript(home: Path) -> str:
    (file,) = home.glob("sessions/**/*.jsonl")
    return file.read_text()


def in_pipes(repo: Path, environ: dict[str, str]) -> Any:
    """The program alone, without the protocol's client library."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*PROGRAM, "acp"], stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=repo, text=True, bufsize=1
    )


def ask(program: Any, text: str, repo: Path) -> None:
    """Begin a session, and a turn in it."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(repo), "mcpServers": []}}
    print(json.dumps(request), file=program.stdin)
    session = json.loads(program.stdout.readline())["result"]["sessionId"]
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    print(json.dumps(request | {"id": 2, "method": "session/prompt", "params": params}), file=program.stdin)


def planning(action: str, text: str) -> AssistantMessage:
    return AssistantMessage([ToolCall("", "task", {"action": action, "text": text})], stop_reason="tool_calls")


async def test_it_says_what_it_can_do(connect: Connect) -> None:
    async with connect(Editor()) as agent:
        answer = await agent.initialize(protocol_version=1)
    assert answer.agent_info.name == "denizen"
    assert answer.agent_capabilities.load_session
    assert answer.agent_capabilities.prompt_capabilities.image


async def test_an_answer_streams(connect: Connect, repo: Path, model: Model) -> None:
    model.plays("It prints hello.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        assert (await prompt(agent, session, "What does it do?")).stop_reason == "end_turn"
    assert editor.said == "It prints hello."
    assert len(editor.of("agent_message_chunk")) > 1


async def test_what_the_configuration_leaves_out_is_reported_once(connect: Connect, repo: Path, model: Model) -> None:
    (repo / "denizen.toml").write_text("[agent]\nmax_iterations = 2\n")  # nobody trusted this folder
    model.plays("Hello.", "Hello again.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Hello")
        await prompt(agent, session, "Hello again")
    (thought,) = editor.of("agent_thought_chunk")
    assert "denizen.toml" in thought.content.text


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
    difference, text = ended.content
    assert difference.path == str(repo / "hello.py")
    assert (difference.old_text, difference.new_text) == ('print("hello")', 'print("good bye")')
    assert "hello.py" in text.content.text


async def test_a_new_file_has_nothing_before_it(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("write", path="new.py", content="one\ntwo\n"), "Done.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Write it")
    difference = editor.of("tool_call_update")[-1].content[0]
    assert (difference.old_text, difference.new_text) == (None, "one\ntwo")


async def test_a_result_is_shown_whole_and_as_it_is(connect: Connect, repo: Path, model: Model) -> None:
    (repo / "notes.md").write_text("# one\n```\ntwo\n```\nthree\n")
    model.plays(call("bash", command="cat notes.md; exit 3"), "It fails.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Show it")
    ended = editor.of("tool_call_update")[-1]
    (text,) = ended.content
    assert text.content.text == "````\n# one\n```\ntwo\n```\nthree\n[exit code 3]\n````"
    assert ended.raw_output == {"output": "# one\n```\ntwo\n```\nthree\n[exit code 3]", "exit_code": 3}
    assert ended.status == "failed"


async def test_what_a_running_command_prints_adds_up(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(
        call("bash", command="echo one; until [ -e go ]; do sleep 0.02; done; echo two; exec cat fifo"), "Done."
    )
    os.mkfifo(repo / "fifo")
    editor = Editor()
    shown: list[str] = []

    def see(update: Any) -> None:
        if update.session_update == "tool_call_update" and update.status is None:
            shown.append(update.content[0].content.text)
            (repo / "go").touch()
            if "two" in shown[-1]:
                (repo / "fifo").write_text("")

    editor.on_update = see
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Print")
    assert shown == ["```\none\n```", "```\none\ntwo\n```"]


async def test_the_title_of_a_call_is_short(connect: Connect, repo: Path, model: Model) -> None:
    script = "import this\n" * 40
    model.plays(call("write", path="new.py", content=script), call("bash", command=f"cat <<E\n{script}E"), "Done.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Write it")
    first, second = [started.title for started in editor.of("tool_call")]
    assert first == "write new.py"
    assert second.startswith("bash cat <<E import this")
    assert len(second) == 80


async def test_what_must_be_approved_is_asked_in_the_editor(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("bash", command="id", unsandboxed=True), "I could not.")
    editor = Editor()
    editor.option = None
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Who am I?")
    assert editor.asked[0].raw_input == {"command": "id", "unsandboxed": True}
    assert "user said no" in str(model.requests[1]["messages"])


async def test_a_call_is_shown_with_its_question_before_its_permission_is_asked(
    connect: Connect, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="echo hi", unsandboxed=True), "Hi.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Say hi")
    about = [update for update in editor.updates if getattr(update, "tool_call_id", "")]
    kinds = [getattr(update, "session_update", "request") for update in about]
    assert kinds == ["tool_call", "request", "tool_call_update", "tool_call_update", "tool_call_update"]
    assert [update.status for update in about] == ["pending", "pending", "in_progress", None, "completed"]
    assert "outside the sandbox" in about[0].content[0].content.text


async def test_what_an_edit_would_change_is_shown_before_it_is_approved(
    connect: Connect, repo: Path, home: Path, model: Model
) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[policy]\nrules = [{ tool = "edit", decide = "ask" }]\n')
    model.plays(call("edit", path="hello.py", old="hello", new="good bye"), "I may not.")
    editor = Editor()
    editor.option = "no"
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Say good bye")
    difference, question = editor.asked[0].content
    assert (difference.path, difference.old_text, difference.new_text) == (str(repo / "hello.py"), "hello", "good bye")
    assert "Allow edit(hello.py)?" in question.content.text
    assert (repo / "hello.py").read_text() == 'print("hello")\n'


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
        await prompt(agent, session, "Fix it")
        assert "Which module?" in editor.said
        await prompt(agent, session, "the parser")
    assert "The user answers: the parser" in str(model.requests[1]["messages"])
    assert editor.said.endswith("The parser it is.")


async def test_a_question_is_asked_in_a_form_where_the_editor_has_them(
    connect: Connect, repo: Path, model: Model
) -> None:
    model.plays(
        call("ask", question="Which module?"), "The parser it is.", call("ask", question="Sure?"), "I assume so."
    )
    editor = Editor()
    editor.answer = "the parser"
    async with connect(editor, forms=True) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "Fix it")
        editor.answer = None
        await prompt(agent, session, "Go on")
    assert editor.questions == ["Which module?", "Sure?"]
    assert model.told(1).endswith("The user answers: the parser")
    assert model.told(3).endswith("the user didn't answer; go on without, and say what you assumed")


async def test_a_refused_key_is_an_authentication_error(connect: Connect, repo: Path, model: Model) -> None:
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        model.plays(refuses(401, "Wrong API key"))
        with pytest.raises(acp.RequestError) as refused:
            await prompt(agent, session, "Hello")
        assert refused.value.code == acp.RequestError.auth_required().code
        assert "Wrong API key" in str(refused.value.data)


async def test_a_new_key_is_used_by_the_sessions_that_are_open(
    connect: Connect, repo: Path, home: Path, model: Model
) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[[providers.test.auth_profiles]]\nid = "mine"\napi_key = "${MY_KEY}"\n')
    (home / ".env").write_text("MY_KEY=key-number-one\n")
    (home / ".env").chmod(0o600)
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        (home / ".env").write_text("MY_KEY=key-number-two\n")
        await agent.authenticate(method_id="key")
        model.plays("Hello.")
        await prompt(agent, session, "Hello")
    assert model.server.requests[-1].headers["Authorization"] == "Bearer key-number-two"


async def test_a_failure_is_said_in_the_chat_and_ends_the_turn(connect: Connect, repo: Path, model: Model) -> None:
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        model.plays(refuses(404, "There is no model of that name"))
        assert (await prompt(agent, session, "Hello")).stop_reason == "end_turn"
        assert "There is no model of that name" in editor.said
        model.plays(refuses(400, "Unreadable picture"))
        assert (await prompt(agent, session, "Look")).stop_reason == "refusal"
        assert "Unreadable picture" in editor.said
        model.plays("Hello.")
        assert (await prompt(agent, session, "Hello")).stop_reason == "end_turn"


@pytest.mark.parametrize(("reason", "end"), [("length", "max_tokens"), ("refusal", "refusal")])
async def test_an_answer_that_is_cut_or_refused_says_so(
    reason: StopReason, end: str, connect: Connect, repo: Path, model: Model
) -> None:
    answer = AssistantMessage([Text("I ")], stop_reason=reason)
    model.plays(answer, answer)
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        assert (await prompt(agent, session, "Hello")).stop_reason == end


async def test_a_turn_that_a_hook_refuses_ends_with_its_words(
    connect: Connect, repo: Path, home: Path, model: Model
) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[[hooks]]\nevent = "turn_start"\ncommand = "echo not today >&2; exit 2"\n')
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        assert (await prompt(agent, session, "Hello")).stop_reason == "end_turn"
    assert "not today" in editor.said
    assert not model.requests


async def test_a_retry_is_shown(connect: Connect, repo: Path, model: Model) -> None:
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        model.plays(refuses(500, "The server is on fire"), "Hello.")
        await prompt(agent, session, "Hello")
    assert editor.thoughts.startswith("test:scripted: The server is on fire (HTTP 500): trying again")


async def test_how_full_the_context_is_is_shown(connect: Connect, repo: Path, model: Model) -> None:
    model.plays(call("view", path="hello.py"), "It prints hello.")
    editor = Editor()
    async with connect(editor) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await prompt(agent, session, "What does it do?")
    first, second = editor.of("usage_update")
    assert first.used == second.used == 150
    assert first.size > 8000
    assert second.cost.currency == "USD"


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
        refused = (
            acp.audio_block("AAAA", "audio/wav"),
            acp.image_block("no base64!", "image/png"),
            acp.resource_block(acp.embedded_blob_resource("file:///a.zip", "UEsDBA==", mime_type="application/zip")),
            acp.resource_block(acp.embedded_blob_resource("file:///a.pdf", "JVBERi0=", mime_type="application/pdf")),
        )
        for block in refused:
            with pytest.raises(acp.RequestError):
                await agent.prompt(session_id=session, prompt=[block])
        model.plays("Hello.")
        assert (await prompt(agent, session, "Hi")).stop_reason == "end_turn"


async def test_files_and_images_go_with_a_prompt(connect: Connect, repo: Path, model: Model) -> None:
    model.plays("I see.")
    inside, pdf = (repo / "hello.py").as_uri(), base64.b64encode(PAPER.data).decode()
    async with connect(Editor()) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await agent.prompt(
            session_id=session,
            prompt=[
                acp.text_block("Look\r\nat these:"),
                acp.resource_link_block("hello.py", inside),
                acp.resource_block(acp.embedded_text_resource("file:///else/a%20b.txt", "the text")),
                acp.image_block("AAAA", "image/png"),
                acp.resource_block(acp.embedded_blob_resource("file:///b.pdf", pdf, mime_type="application/pdf")),
                acp.resource_block(acp.embedded_blob_resource("file:///c.png", "BBBB", mime_type="image/png")),
                acp.resource_block(acp.embedded_blob_resource("file:///d.csv", "YSxi", mime_type="text/csv")),
            ],
        )
    said = str(model.requests[0]["messages"][-1])
    assert "[hello.py](hello.py)" in said
    assert '<file path="/else/a b.txt">' in said
    assert "data:image/png;base64,AAAA" in said
    assert "[the text of /b.pdf, 2 pages;" in said
    assert "data:image/png;base64,BBBB" in said
    assert '<file path="/d.csv">\\na,b\\n</file>' in said


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


async def test_a_task_in_a_copy_is_gone_on_with_there_in_its_mode(
    connect: Connect, denizen: Run, repo: Path, model: Model
) -> None:
    model.plays(call("write", path="made.txt", content="new"), call("ask", question="Is that all?"))
    assert denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file").status == 4
    model.plays(call("write", path="more.txt", content="more"), "Made.")
    async with connect(Editor()) as agent:
        await agent.load_session(cwd=str(repo), session_id="s")
        await agent.set_session_mode(session_id="s", mode_id="read-only")
        await prompt(agent, "s", "yes")
    assert (repo / "made.txt").read_text() == "new"
    assert not (repo / "more.txt").exists()


async def test_an_editor_that_hangs_up_ends_the_program_and_what_is_complete_is_kept(
    repo: Path, home: Path, environ: dict[str, str], model: Model
) -> None:
    model.plays(call("bash", command="echo printed; echo > started; sleep 1000"))
    with in_pipes(repo, environ) as program:
        ask(program, "Wait", repo)
        await asyncio.to_thread(wait_until, (repo / "started").exists)
        program.stdin.close()
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in program.stdout)
        assert program.stderr.read() == ""
    assert program.returncode == 0
    last = json.loads(transcript(home).splitlines()[-1])
    assert (last["type"], last["stop_reason"]) == ("end", "cancelled")


async def test_an_editor_that_reads_no_more_ends_the_program_without_a_traceback(
    repo: Path, home: Path, environ: dict[str, str], model: Model
) -> None:
    model.plays(call("bash", command="echo > started; until [ -e left ]; do sleep 0.02; done; echo printed"), "Done.")
    with in_pipes(repo, environ) as program:
        ask(program, "Wait", repo)
        await asyncio.to_thread(wait_until, (repo / "started").exists)
        program.stdout.close()
        (repo / "left").touch()
        await asyncio.to_thread(wait_until, lambda: '"type":"end"' in transcript(home))
        program.stdin.close()
        assert program.stderr.read() == ""
    assert program.returncode == 0


async def test_an_editor_that_leaves_a_question_open_ends_the_program_quietly(
    repo: Path, environ: dict[str, str], model: Model
) -> None:
    model.plays(call("bash", command="id", unsandboxed=True))
    with in_pipes(repo, environ) as program:
        ask(program, "Who am I?", repo)
        while "session/request_permission" not in program.stdout.readline():
            pass
        program.stdin.close()
        assert program.stderr.read() == ""
    assert program.returncode == 0


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
    shown = again.of("tool_call_update")[-1]
    assert shown.content[0].content.text == "```\nbegun\nthe last word\n[exit code 3]\n```"
    assert shown == first.of("tool_call_update")[-1]
