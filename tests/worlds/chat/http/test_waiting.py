"""What waits for a person, how it is answered, and the messages that wait behind others."""

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.engine.scene import call
from tests.worlds.chat.conftest import Held, Scene, Serve, key_of, message
from tests.worlds.chat.http.test_events import socket
from tests.worlds.chat.http.test_http import Client, reached

from denizen import Agent, load_config, run_agent
from denizen.testing import ScriptedModel
from denizen.worlds.chat.ledger import pairings


async def waiting(client: Client) -> Any:
    status, answer = await client.ask("GET", "/api/waiting")
    assert status == 200
    return answer


async def control(client: Client, key: str, **body: Any) -> int:
    status, _ = await client.ask("POST", f"/api/sessions/{quote(key, safe='')}/controls", json=body)
    return status


async def test_question_says_what_would_run_and_why_it_is_asked(serve: Serve, home: Path) -> None:
    async with serve(call(("post", {"text": "hello"})), "done") as scene, reached(scene, home) as client:
        await client.post(id="1", content="Say hello")
        [asked] = await scene.replies(1)
        found = await waiting(client)
        [question] = found["questions"]
        assert found["pairings"] == []
        assert {
            name: question[name] for name in ("session_key", "title", "tool", "args", "channel", "chat", "how")
        } == {
            "session_key": key_of("ann"),
            "title": "Say hello",
            "tool": "post",
            "args": {"text": "hello"},
            "channel": "http",
            "chat": "ann",
            "how": "",
        }
        assert question["question"] in asked.message.content
        assert f"/approve {question['word']}" in asked.message.content
        assert question["rule"] == {"tool": "post", "match": '{"text":"hello"}', "decide": "allow"} | {
            "examples": [],
            "not_examples": [],
        }
        assert 0 < question["asked_at"] < question["until"]
        assert await control(client, key_of("ann"), type="approve", call_id=question["call_id"]) == 202
        await scene.contents(2)
        assert await waiting(client) == {"questions": [], "pairings": []}


async def test_question_about_a_file_shows_the_change(serve: Serve, home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "roof.txt").write_text("leaks\n")
    asks = {"policy": {"rules": [{"tool": "write", "match": "*", "decide": "ask"}]}}
    script = call(("write", {"path": "roof.txt", "content": "tight\n"}))
    async with serve(script, "done", workspace=workspace, config=asks) as scene, reached(scene, home) as client:
        await client.post(id="1")
        await scene.replies(1)
        [question] = (await waiting(client))["questions"]
        assert "-leaks\n+tight" in question["diff"]
        assert (workspace / "roof.txt").read_text() == "leaks\n"


async def test_a_yes_for_the_session_answers_later_questions_and_one_for_good_is_written(
    serve: Serve, home: Path
) -> None:
    post = call(("post", {"text": "hello"}))
    async with serve(post, "one", post, "two", post, "three") as scene, reached(scene, home) as client:
        for scope, count in (("session", 2), ("once", 3)):
            await client.post(id=scope)
            await scene.replies(count if scope == "once" else 1)
            for question in (await waiting(client))["questions"]:
                await control(client, key_of("ann"), type="approve", call_id=question["call_id"], scope=scope)
        assert await scene.contents(3) == [(await scene.sent())[0], "one", "two"]
        assert not (home / "denizen.toml").exists()
        await client.post(id="elsewhere", chat="ben")
        await scene.replies(1, "ben")
        [question] = (await waiting(client))["questions"]
        await control(client, key_of("ben"), type="approve", call_id=question["call_id"], scope="always")
        assert (await scene.contents(2, "ben"))[1] == "three"
    assert 'tool = "post"' in (home / "denizen.toml").read_text()


async def test_scope_is_accepted_only_with_an_approval(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        assert await control(client, key_of("ann"), type="deny", call_id="1", scope="always") == 400


async def test_question_at_a_terminal_says_how_to_answer_it(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        config = load_config(home=home, environ={}, cwd=home)
        script = [call(("post", {"text": "hello"}))]
        async with Agent(config, model=ScriptedModel(script), tools=[*scene.gateway.agent.record.tools]) as agent:
            result = await run_agent("Say hello", session_key="shop", agent=agent)
        assert result.stop_reason == "parked"
        [question] = (await waiting(client))["questions"]
    assert question["how"] == "denizen answer shop yes"
    assert (question["tool"], question["args"]) == ("post", {"text": "hello"})


async def test_sender_with_a_code_waits_until_paired(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        stranger = message("hi", "zoe", channel="irc")
        now = scene.gateway.agent.record.clock.now().timestamp()
        assert await scene.gateway.database.run(partial(pairings.request_code, message=stranger, now=now))
        [pairing] = (await waiting(client))["pairings"]
        assert (pairing["channel"], pairing["sender"]) == ("irc", "zoe")
        await client.ask("POST", "/api/pairings", json={"type": "approve", "code": pairing["code"]})
        assert (await waiting(client))["pairings"] == []


async def test_readers_hear_that_a_session_changed(serve: Serve, home: Path) -> None:
    script = call(("post", {"text": "hello"}))
    async with serve(script) as scene, reached(scene, home) as client, socket(client, home) as opened:
        await client.post(id="1")
        got = [await opened.receive_json()]
        assert got[0]["event"] == {"type": "changed"}
        assert got[0]["session_key"] == key_of("ann")
        while got[-1]["event"]["type"] != "done":
            got.append(await opened.receive_json())
        assert (await opened.receive_json())["event"] == {"type": "changed"}
        assert len((await waiting(client))["questions"]) == 1, "the question is there once readers hear of it"


async def busy(scene: Scene, client: Client, held: Held) -> None:
    await client.post(id="1", content="first")
    await held.begun.wait()
    for number in ("2", "3"):
        await client.post(id=number, content=f"message {number}")


async def test_waiting_messages_are_changed_or_taken_back(serve: Serve, home: Path) -> None:
    held = Held("one")
    path = f"/api/sessions/{quote(key_of('ann'), safe='')}/queue"
    async with serve(held, "two") as scene, reached(scene, home) as client:
        await busy(scene, client, held)
        _, found = await client.ask("GET", path)
        assert [(each["id"], each["state"]) for each in found["messages"]] == [
            ("1", "running"),
            ("2", "waiting"),
            ("3", "waiting"),
        ]
        for body, status in (
            ({"type": "edit", "id": "2", "content": "better"}, 200),
            ({"type": "withdraw", "id": "3"}, 200),
            ({"type": "withdraw", "id": "3"}, 409),
            ({"type": "edit", "id": "1", "content": "too late"}, 409),
            ({"type": "edit", "id": "2"}, 400),
            ({"type": "withdraw", "id": "2", "content": "x"}, 400),
        ):
            assert (await client.ask("POST", path, json=body))[0] == status, body
        held.go.set()
        assert await scene.contents(2) == ["one", "two"]
        await scene.settled()
        assert (await client.ask("GET", path))[1] == {"messages": []}
        assert (await client.post(id="3", content="again"))[1]["accepted"] is False
    said = [each.text for each in scene.model.requests[-1].messages if each.text]
    assert "better" in said[-1]
    assert not any("message 3" in text for text in said)


async def test_a_waiting_command_is_taken_back_and_never_becomes_another(serve: Serve, home: Path) -> None:
    held = Held("one")
    path = f"/api/sessions/{quote(key_of('ann'), safe='')}/queue"
    async with serve(held) as scene, reached(scene, home) as client:
        await client.post(id="1", content="first")
        await held.begun.wait()
        await client.post(id="2", content="/compact")
        edit = {"type": "edit", "id": "2", "content": "thanks"}
        status, answer = await client.ask("POST", path, json=edit)
        assert (status, "can only be taken back" in answer["error"]["message"]) == (409, True)
        assert (await client.ask("POST", path, json={"type": "withdraw", "id": "2"}))[0] == 200
        held.go.set()
        assert await scene.contents(1) == ["one"]


async def test_message_continues_the_session_of_another_channel(serve: Serve, home: Path) -> None:
    irc = key_of("den", "irc")
    async with serve("from irc", "from the page") as scene, reached(scene, home) as client:
        await scene.ask("Remember the roof", irc, channel="cli", chat="den")
        posted = await client.post(id="1", chat="page", sender="page", content="And now?", session=irc)
        assert posted[1]["session_key"] == irc
        assert await scene.contents(1, "page") == ["from the page"]
        said = [each.text for each in scene.model.requests[-1].messages]
        assert any("Remember the roof" in text for text in said)
        assert (await client.post(chat="page", session="agent:main:channel:irc:account:a:peer:direct:none"))[0] == 404
        assert (await client.post(chat="page", session="agent:nonsense"))[0] == 409
