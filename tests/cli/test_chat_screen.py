"""`denizen chat --tui`: the program on the whole screen, used as a person would."""

import signal
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call, dies, stalls
from tests.cli.screen import Screen
from tests.cli.test_cancel import wait_until

from denizen import __version__
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, Text, Thinking
from denizen.tui import require_textual

CHOICES = "y yes"


@pytest.fixture(autouse=True)
def policy(home: Path, model: Model) -> None:
    """Commands run; writing is asked about."""
    rules = '[{ tool = "bash", decide = "allow" }, { tool = "write", decide = "ask" }]'
    with (home / "denizen.toml").open("a") as file:
        file.write(f"[policy]\nrules = {rules}\n")


@pytest.fixture
def chat(on_terminal: OnTerminal) -> Screen:
    screen = on_terminal("chat", "--tui", "--session", "s")
    screen.shows(f"denizen {__version__} · test:scripted")  # how the greeting begins, before a path of any length
    return screen


def entered(screen: Screen, text: str) -> Screen:
    """It is on the screen before Enter is pressed, which otherwise may come with it as something pasted."""
    screen.type(text)
    screen.shows(text)
    screen.type("\r")
    return screen


def test_a_turn_shows_the_question_the_call_the_reply_and_what_it_took(chat: Screen, model: Model) -> None:
    model.plays(call("bash", command="echo one two"), "It says *one two*:\n\n- List<str>\n")
    entered(chat, "What does it say?")
    chat.shows("✓ bash echo one two")
    chat.shows("It says one two:")
    chat.shows("• List<str>")
    chat.shows("answered · 2 iterations")
    chat.shows("test:scripted · s · context 150")


def test_thoughts_are_shown(chat: Screen, model: Model) -> None:
    model.plays(AssistantMessage([Thinking("First this.\nThen that."), Text("Done.")]))
    entered(chat, "go")
    chat.shows("Done.")
    chat.shows("thoughts")
    chat.shows("Then that.")


def test_a_reply_that_broke_off_is_struck_out_and_the_next_one_is_shown(chat: Screen, model: Model) -> None:
    model.plays(dies("Half an ans"), "Whole.")
    entered(chat, "go")
    chat.shows("Whole.")


def test_an_edit_is_shown_before_it_is_approved_and_done_after(chat: Screen, model: Model, repo: Path) -> None:
    model.plays(call("write", path="hello.py", content="print(2)\n"), "Done.")
    entered(chat, "change it")
    chat.shows("+print(2)")
    chat.shows(CHOICES)
    assert (repo / "hello.py").read_text() == 'print("hello")\n'
    entered(chat, "y")
    chat.shows("Done.")
    assert (repo / "hello.py").read_text() == "print(2)\n"


def test_words_in_place_of_an_answer_reach_the_model(chat: Screen, model: Model, repo: Path) -> None:
    model.plays(call("write", path="hello.py", content="print(2)\n"), "Fine.")
    entered(chat, "change it")
    chat.shows(CHOICES)
    entered(chat, "use three")
    chat.shows("Fine.")
    assert "use three" in str(model.requests[-1])
    assert (repo / "hello.py").read_text() == 'print("hello")\n'


def test_a_question_left_open_parks_the_turn(chat: Screen, model: Model) -> None:
    model.plays(call("write", path="hello.py", content="print(2)\n"), "Done.")
    entered(chat, "change it")
    chat.shows(CHOICES)
    chat.type("\x04")
    chat.shows("/continue asks again")
    entered(chat, "/continue")
    chat.shows(CHOICES)
    entered(chat, "y")
    chat.shows("Done.")


def working(chat: Screen, model: Model, repo: Path) -> None:
    """A tool runs until there is a file `go`."""
    model.plays(call("bash", command="touch started; while [ ! -e go ]; do sleep 0.05; done"))
    entered(chat, "work")
    wait_until((repo / "started").exists)


def test_what_is_entered_meanwhile_can_be_edited_and_reaches_the_agent(chat: Screen, model: Model, repo: Path) -> None:
    working(chat, model, repo)
    model.plays("Shorter.")
    entered(chat, "be shrt")
    chat.shows("queued: be shrt · ↑ takes it back")
    chat.type("\x1b[A")
    chat.gone("queued:")
    chat.type("\x7f\x7fort\r")
    chat.shows("queued: be short")
    (repo / "go").touch()
    chat.shows("Shorter.")
    assert model.told().startswith("be short")


def test_ctrl_c_stops_the_agent_and_brings_back_what_it_had_not_got(chat: Screen, model: Model, repo: Path) -> None:
    working(chat, model, repo)
    entered(chat, "be short")
    chat.shows("queued: be short")
    chat.type("\x03")
    chat.shows("cancelled")
    chat.shows("> be short")
    model.plays("Fine.")
    chat.type("\r")
    chat.shows("Fine.")
    assert model.told().startswith("be short")


def test_slash_commands_are_those_of_the_chat(chat: Screen, model: Model) -> None:
    model.plays("Hello.")
    entered(chat, "hi")
    chat.shows("Hello.")
    chat.type("/us\t")
    chat.shows("> /usage")
    chat.type("\r")
    chat.shows("1 turn")
    entered(chat, "/nothing")
    chat.shows("Unknown command: /nothing.")


def test_another_session_is_chosen_from_a_list_and_shows_what_was_said(
    denizen: Run, model: Model, on_terminal: OnTerminal
) -> None:
    model.plays("**Nine.**")
    denizen("ask", "--session", "shop", "When do you open?")
    chat = on_terminal("chat", "--tui")
    chat.shows("/help")
    chat.type("\x0f")
    chat.shows("shop")
    chat.type("\r")
    chat.shows("Nine.")
    chat.shows("test:scripted · shop")


@pytest.mark.parametrize("key", ["\x04", "\x11"])
def test_leaving_gives_the_terminal_back(chat: Screen, key: str) -> None:
    chat.type(key)
    assert chat.end() == 0
    assert chat.modes == chat.modes_before


def test_ending_the_program_while_it_works_loses_nothing(chat: Screen, model: Model, denizen: Run) -> None:
    model.plays(stalls("A long answ"))
    entered(chat, "go")
    chat.shows("A long answ")
    chat.process.send_signal(signal.SIGTERM)
    chat.end()
    assert chat.modes == chat.modes_before
    assert "go" in denizen("sessions", "export", "s").out


def test_it_needs_a_terminal(denizen: Run) -> None:
    ran = denizen("chat", "--tui")
    assert ran.status == 2
    assert "--tui needs a terminal" in ran.err


def test_without_textual_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(DenizenError, match="pip install 'textual"):
        require_textual()
