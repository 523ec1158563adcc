"""The conversation's screen, driven by keys."""

from collections.abc import AsyncIterator, Sequence

import pytest
from tests.tui.picture import matches, picture
from textual.pilot import Pilot

from denizen.cli.markdown import PARSER
from denizen.tui.chat_app import ChatApp

PATIENCE = 500
"""How often the program is let come to rest until what is wanted should be there."""
REPLY = "It is in **hello.py**:\n\n```python\ndef hello() -> List<str>:\n    pass\n```\nNothing *else* calls it.\n"


class Person:
    """Notes what is told to it."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.works = False

    def enter(self, text: str) -> None:
        self.did.append(f"entered {text}")

    def answer(self, text: str | None) -> None:
        self.did.append(f"answered {text}")

    def type(self) -> None:
        pass

    def take_back(self) -> str:
        return ""

    def interrupt(self) -> bool:
        self.did.append("interrupted")
        return self.works

    def leave(self) -> None:
        self.did.append("left")

    async def sessions(self) -> Sequence[tuple[str, str]]:
        return [("shop", "When do you open?"), ("[b]odd[/]", "")]


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def chat(person: Person) -> AsyncIterator[Pilot[None]]:
    app = ChatApp(person, PARSER, words=["/continue", "/compact", "/help"], history=["first", "second"])
    async with app.run_test(size=(80, 24)) as pilot:
        yield pilot


def app_of(pilot: Pilot[None]) -> ChatApp:
    assert isinstance(pilot.app, ChatApp)
    return pilot.app


async def shown(pilot: Pilot[None], wanted: str) -> str:
    """The picture, once it has that; or as it is after a while."""
    for _ in range(PATIENCE):
        if wanted in picture(pilot.app):
            break
        await pilot.pause()
    rows = picture(pilot.app)
    assert wanted in rows
    return rows


def talk(app: ChatApp) -> None:
    app.say("Where is [bold]hello[/] defined?")
    app.add_tool("✓ grep [a-z] · 12 ms", [("hello.py:1: def hello():", "bright_black")], failed=False, opened=False)
    app.add_tool("✗ bash false · 3 ms: exit code 1", [], failed=True, opened=False)
    app.add_tool("✓ edit x.py", [("-[old]", "red"), ("+[new]", "green")], failed=False, opened=True)
    for word in REPLY.split(" "):
        app.stream(f"{word} ")
    app.end_reply()
    app.print("\x1b[2manswered · 2 iterations\x1b[0m")
    app.show_activity("queued: and then?\nthinking … · 3 s")
    app.show_status("test:model · shop · context 1,200 of 200,000 · $0.0012")


async def test_a_conversation_shows_what_was_said_done_and_asked(chat: Pilot[None]) -> None:
    talk(app_of(chat))
    await chat.press(*"and")
    await shown(chat, "answered")
    matches(chat.app, "chat")


async def test_a_call_opens_with_keys_in_scroll_mode(chat: Pilot[None]) -> None:
    talk(app_of(chat))
    assert "def hello():" not in await shown(chat, "answered")
    await chat.press("escape", "tab", "enter")
    await shown(chat, "hello.py:1: def hello():")
    await chat.press("escape", *"on")
    await shown(chat, "> on")


async def test_a_withdrawn_reply_is_followed_by_another(chat: Pilot[None]) -> None:
    app = app_of(chat)
    app.stream("Half")
    app.withdraw_reply()
    app.stream("Whole")
    app.end_reply()
    await shown(chat, "Whole")
    assert app.query(".withdrawn").first().query("MarkdownParagraph")


async def test_an_empty_reply_harms_nothing(chat: Pilot[None]) -> None:
    app = app_of(chat)
    for text in ("", "\n", ""):
        app.stream(text)
        app.end_reply()
    app.print("after")
    await shown(chat, "after")


async def test_what_was_typed_before_a_question_is_no_answer_and_comes_back(chat: Pilot[None], person: Person) -> None:
    app = app_of(chat)
    await chat.press(*"dra")
    app.simulate_key("f")
    await app.begin_question()
    await chat.press(*"yes", "enter")
    app.end_question()
    await chat.press("t", "enter")
    assert person.did == ["answered yes", "entered draft"]


async def test_ctrl_d_leaves_a_question_open_then_the_chat_but_never_with_words_typed(
    chat: Pilot[None], person: Person
) -> None:
    app = app_of(chat)
    await app.begin_question()
    await chat.press("ctrl+d")
    app.end_question()
    await chat.press("x", "ctrl+d", "backspace", "ctrl+d")
    assert person.did == ["answered None", "left"]


async def test_ctrl_c_stops_what_is_going_on_else_clears_the_prompt(chat: Pilot[None], person: Person) -> None:
    person.works = True
    await chat.press("x", "ctrl+c")
    assert app_of(chat).prompt.text == "x"
    person.works = False
    await chat.press("ctrl+c")
    assert app_of(chat).prompt.text == ""
    await chat.press("up", "enter")
    assert person.did[-1] == "entered x"


async def test_the_history_completion_and_several_lines(chat: Pilot[None], person: Person) -> None:
    await chat.press("up", "up", "enter", "/", "c", "tab", "n", "tab", "enter", "a", "\\", "enter", "b", "enter")
    assert person.did == ["entered first", "entered /continue", "entered a\nb"]


async def test_letters_never_overtake_the_keys_that_edit_them(chat: Pilot[None]) -> None:
    app = app_of(chat)
    await chat.press(*"shrt")
    for key in ("backspace", "backspace", "o", "r", "t", "home", "x"):
        app.simulate_key(key)
    for _ in range(PATIENCE):
        if "x" in app.prompt.text:
            break
        await chat.pause()
    assert app.prompt.text == "xshort"


async def test_a_session_is_chosen_from_a_list(chat: Pilot[None], person: Person) -> None:
    await chat.press("ctrl+o")
    await shown(chat, "[b]odd[/]")
    await chat.press("escape", "ctrl+o", "down", "enter")
    assert person.did == ["entered /sessions [b]odd[/]"]
