"""Commands in chats: what they do, who may use them, and what isn't one."""

import re
from pathlib import Path

import msgspec
import pytest
from openai import AsyncOpenAI
from tests.engine.scene import call
from tests.worlds.chat.conftest import Held, Scene, Serve, key_of, message, said
from tests.worlds.chat.http.test_completions import chat, sdk, user
from tests.worlds.chat.ledger.test_questions import word_of

from denizen.entries import UserEntry
from denizen.messages import AssistantMessage, Text, UserMessage
from denizen.ports import InboundMessage, SessionInfo
from denizen.testing import MemoryChannel
from denizen.worlds.chat.ledger.ledger import Claim
from denizen.worlds.chat.turns.queue import LedgerTurn
from denizen.worlds.commands import COMMANDS, usages

ASKS = call(("post", {"text": "hello"}))
GROUP = "agent:main:channel:memory:account:default:peer:group:team"


def heard(scene: Scene, call: int = -1) -> list[str]:
    """What the user had said, as the model saw it."""
    messages = scene.model.requests[call].messages
    return [each.content[0].text for each in messages if isinstance(each, UserMessage)]  # pyrefly: ignore


async def index_line(scene: Scene) -> SessionInfo:
    [info] = await scene.gateway.agent.record.store.list()
    return info


async def reply_to(scene: Scene, command: str, count: int = 1) -> str:
    """The last of so many replies of the first chat, after a command."""
    await scene.say(command)
    return (await scene.contents(count))[-1]


async def test_unknown_command_is_answered_and_not_paid_for(serve: Serve) -> None:
    async with serve() as scene:
        assert await reply_to(scene, "/hlep me") == "Unknown command: /hlep. Did you mean /help?"
        assert (await reply_to(scene, "/start", 2)).startswith("/help")
        assert "//xyzzy sends it to the agent" in await reply_to(scene, "/Xyzzy", 3)
        assert not scene.model.requests


@pytest.mark.parametrize(
    ("written", "heard_as"),
    [("/etc/hosts is what?", "/etc/hosts is what?"), ("//new is what?", "/new is what?"), ("// a note", "// a note")],
)
async def test_what_is_no_command_is_a_message(serve: Serve, written: str, heard_as: str) -> None:
    async with serve("A file.") as scene:
        assert await reply_to(scene, written) == "A file."
        assert heard(scene) == [heard_as]


async def test_help_lists_every_command_whatever_its_case(serve: Serve) -> None:
    async with serve() as scene:
        listed = await reply_to(scene, "/HELP")
        assert all(f"{usage} " in listed and COMMANDS[name].does in listed for name, usage in usages("chats").items())


async def test_new_begins_anew_and_the_talk_before_is_listed_by_its_title(serve: Serve) -> None:
    async with serve("noted", "none", "what?") as scene:
        await scene.say("the word is plum")
        assert "'the word is plum'" in await reply_to(scene, "/new", 2)
        await scene.say("which word?")
        await scene.contents(3)
        assert heard(scene) == ["which word?"]
        info = await index_line(scene)
        assert (info.title, [talk.title for talk in info.earlier]) == ("which word?", ["the word is plum"])
        await reply_to(scene, "/NEW ", 4)
        await scene.say("hello")
        await scene.contents(5)
        info, store = await index_line(scene), scene.gateway.agent.record.store
        assert (info.title, [talk.title for talk in info.earlier]) == ("hello", ["which word?", "the word is plum"])
        await store.fork(info.key, "plum", at=info.earlier[1].head)
        before = [entry.message.text for entry in await store.read("plum") if isinstance(entry, UserEntry)]
        assert before == ["the word is plum"]


async def test_new_waits_for_what_was_said_before_it(serve: Serve) -> None:
    held = Held("one")
    async with serve(held, "two") as scene:
        await scene.say("1")
        await held.begun.wait()
        for text in ("/new", "2"):
            await scene.say(text)
        held.go.set()
        assert await scene.contents(3) == ["one", "Started afresh. The earlier conversation is kept as '1'.", "two"]
        assert heard(scene) == ["2"]


async def test_new_ends_a_turn_that_waits_for_an_answer_and_another_command_does_not(serve: Serve) -> None:
    async with serve(ASKS, "hello again") as scene:
        await reply_to(scene, "post hello")
        assert "waits for an answer" in await reply_to(scene, "/compact", 2)
        await scene.say("/new")
        assert (await scene.contents(4))[2:] == [
            "Stopped.",
            "Started afresh. The earlier conversation is kept as 'post hello'.",
        ]
        assert await reply_to(scene, "hello", 5) == "hello again"


async def test_status_is_said_at_once_while_a_turn_runs(serve: Serve) -> None:
    held = Held("one")
    async with serve(held) as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("2")
        assert await reply_to(scene, "/status") == "model: test:scripted\nthis chat: busy"


async def test_status_shows_what_waits_for_an_answer(serve: Serve) -> None:
    async with serve(ASKS) as scene:
        await scene.say("post hello")
        await scene.contents(1)
        shown = await reply_to(scene, "/status", 2)
        assert "this chat: busy" in shown
        assert "waits for an answer: " in shown


async def test_usage_and_context_are_those_of_the_chat(serve: Serve) -> None:
    async with serve(AssistantMessage([Text("hi")])) as scene:
        assert (await reply_to(scene, "/usage")).startswith("0 turns · context 0 of ")
        assert (await reply_to(scene, "/context", 2)).startswith("context: about 0 of ")
        await scene.say("hello")
        await scene.contents(3)
        usage = await reply_to(scene, "/USAGE", 4)
        assert usage.startswith("1 turn · ")
        assert re.search(r"context about [1-9][\d,]* of ", usage), "the model reports no tokens"
        shown = await reply_to(scene, "/CONTEXT", 5)
        assert all(f"\n{what}: " in shown for what in ("tools", "user"))
        assert len(scene.model.requests) == 1


async def test_model_is_changed_for_one_chat_and_stays_after_new(serve: Serve) -> None:
    async with serve("scripted", "scripted") as scene:
        await reply_to(scene, "hello")
        assert await reply_to(scene, "/model", 2) == "model test:scripted"
        assert await reply_to(scene, "/model offline", 3) == "model offline"
        assert await reply_to(scene, "hello again", 4) != "scripted"
        await reply_to(scene, "/new", 5)
        assert (await reply_to(scene, "/MODEL", 6)) == "model offline"
        await scene.say("hello", "ben")
        assert await scene.contents(1, "ben") == ["scripted"]


async def test_model_that_cannot_be_had_changes_nothing(serve: Serve) -> None:
    async with serve("still here") as scene:
        assert "nobody" in await reply_to(scene, "/model nobody:x")
        assert await reply_to(scene, "hello", 2) == "still here"


async def test_compact_summarises(serve: Serve) -> None:
    async with serve(*(str(number) for number in range(6)), "it was about numbers", "well") as scene:
        assert await reply_to(scene, "/compact") == "Nothing to compact."
        for number in range(6):
            await scene.say(f"say {number}")
        await scene.contents(7)
        assert await reply_to(scene, "/COMPACT", 8) == "A summary replaces the older messages."
        await reply_to(scene, "and now?", 9)
        assert "it was about numbers" in said(scene.model)


async def test_undo_takes_back_the_words_and_the_files_that_nobody_changed_since(serve: Serve, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    writes = call(("write", {"path": "a", "content": "agent's"}), ("write", {"path": "b", "content": "agent's"}))
    async with serve("noted", writes, "written", "none", workspace=project) as scene:
        await scene.say("the word is plum")
        await scene.say("write a and b")
        assert (await scene.contents(2))[-1] == "written"
        (project / "a").write_text("mine")
        assert await reply_to(scene, "/undo", 3) == (
            "Undone: write a and b\nNot touched, because they changed since: a"
        )
        assert {path.name: path.read_text() for path in project.iterdir()} == {"a": "mine"}
        again = await scene.gateway.runner.run(LedgerTurn(Claim("", 1, await as_queued(scene, "/undo"), 2, 0, 1)))
        assert again, "after a crash it isn't done twice"
        await scene.say("which word?")
        await scene.contents(4)
        assert heard(scene) == ["the word is plum", "which word?"]


async def test_a_command_in_a_chat_first_runs_checks_whose_process_was_killed(serve: Serve) -> None:
    async with serve("noted") as scene:
        await scene.say("the word is plum")
        await scene.contents(1)
        left = scene.gateway.agent.record.home / "commands" / "dead.json"
        left.parent.mkdir(exist_ok=True)
        left.write_text("")  # damaged when the machine died
        checked, undone = (await reply_to(scene, "/undo", 2)).split("\n")
        assert checked.startswith("A command ran when Denizen was killed, and the note of it is damaged.")
        assert undone == "Undone: the word is plum"
        assert not left.exists()


async def as_queued(scene: Scene, text: str) -> InboundMessage:
    """A command as it is in the inbox."""
    row = await scene.gateway.database.run(
        lambda db: db.execute("SELECT message FROM inbox WHERE id = ?", [text]).fetchone()
    )
    return msgspec.json.decode(row[0], type=InboundMessage)


async def test_in_groups_some_commands_are_the_owners(serve: Serve) -> None:
    async with serve("hi", channels=[MemoryChannel()], owner="memory:boss") as scene:
        for number, (sender, text) in enumerate(
            [("ann", "/undo"), ("ann", "/model x"), ("ann", "/status"), ("boss", "/undo")]
        ):
            await scene.gateway.accept(InboundMessage("memory", "team", sender, text, GROUP, id=str(number)))
        told = await scene.contents(4, "team", "memory")
        assert told[:2] == ["In a group only the owner may use /undo.", "In a group only the owner may use /model."]
        assert told[2].startswith("model: ")
        assert told[3] == "There is nothing to undo."


async def test_each_question_of_a_group_is_told_to_those_who_write_meanwhile(serve: Serve) -> None:
    async with serve(ASKS, "done", ASKS, channels=[MemoryChannel()]) as scene:

        async def say(sender: str, text: str, count: int) -> list[str]:
            await scene.gateway.accept(InboundMessage("memory", "team", sender, text, GROUP, id=text))
            return await scene.contents(count, "team", "memory")

        await say("ann", "post", 1)
        assert "waits" in (await say("ben", "hello?", 2))[-1]
        await say("ann", f"/approve {await word_of(scene, chat='team', channel='memory')}", 4)
        assert "waits" in (await say("ben", "and now?", 5))[-1]


async def test_programs_with_a_session_use_the_same_commands(serve: Serve, home: Path) -> None:
    async with serve("noted", "none") as scene, sdk(scene, home, "ann") as client:

        async def ask(text: str, of: AsyncOpenAI = client) -> str | None:
            return (await chat(of, user(text))).choices[0].message.content

        await ask("the word is plum")
        assert "/compact" in (await ask("/help") or "")
        assert await ask("/nwe") == "Unknown command: /nwe. Did you mean /new?"
        assert (await ask("/new") or "").startswith("Started afresh.")
        assert await ask("//new is what?") == "none"
        assert heard(scene) == ["/new is what?"]
        info = await index_line(scene)
        assert [talk.title for talk in info.earlier] == ["the word is plum"]
        assert info.key == key_of("ann")


async def test_command_that_is_brought_again_is_obeyed_once(serve: Serve) -> None:
    async with serve("noted") as scene:
        await scene.say("the word is plum")
        await scene.say("/undo")
        assert not await scene.gateway.accept(message("/undo"))
        assert await scene.contents(2) == ["noted", "Undone: the word is plum"]
