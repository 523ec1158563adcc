"""`--actions shell`: what a person sees of an agent that writes commands into its text."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call

LOOKS = "Let me look.\n$(read hello.py)"
ANSWERS = "$(done It prints hello (once).)"


def test_standard_output_carries_the_answer_alone_and_commands_are_progress(denizen: Run, model: Model) -> None:
    model.plays(LOOKS, ANSWERS)
    ran = denizen("ask", "--actions", "shell", "hi")
    assert ran.out == "It prints hello (once).\n"
    assert ran.err.startswith("  Let me look.\n")
    assert "✓ read hello.py ·" in ran.err
    assert "$(" not in ran.err
    assert "[1] $ read" in model.told()


def test_on_a_terminal_no_command_is_shown_as_the_answer(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(LOOKS, ANSWERS)
    screen = on_terminal("ask", "--actions", "shell", "hi")
    assert screen.end() == 0
    assert "It prints hello (once).\n" in screen.text
    assert "✓ read hello.py" in screen.text
    assert "$(" not in screen.text


def test_in_chat_too(denizen: Run, model: Model) -> None:
    model.plays(LOOKS, ANSWERS, "Bye.")
    assert denizen("chat", "--actions", "shell", piped="hi\nbye\n").out == "It prints hello (once).\nBye.\n"


def test_events_carry_the_reply_and_its_calls(denizen: Run, model: Model) -> None:
    model.plays(LOOKS, ANSWERS)
    events = [json.loads(line) for line in denizen("ask", "--actions", "shell", "--json", "hi").out.splitlines()]
    assert events[-1]["result"]["reply"] == "It prints hello (once)."
    [started] = [event for event in events if event["type"] == "tool_start"]
    assert (started["tool_name"], started["args"]) == ("read", {"path": "hello.py"})
    streamed = [event["event"] for event in events if event["type"] == "llm_stream"]
    words = "".join(event["delta"] for event in streamed if event["type"] == "text_delta")
    assert words.split() == ["Let", "me", "look.", "It", "prints", "hello", "(once)."]


def test_the_configuration_can_say_it_and_the_option_is_over_it(denizen: Run, model: Model, home: Path) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[agent]\nactions = "shell"\n')
    model.plays(ANSWERS, ANSWERS)
    assert denizen("ask", "hi").out == "It prints hello (once).\n"
    assert denizen("ask", "--actions", "native", "hi").out == f"{ANSWERS}\n"
    assert ["tools" in request for request in model.requests] == [False, True]


def test_a_session_may_change_between_the_two(denizen: Run, model: Model) -> None:
    model.plays(LOOKS, ANSWERS, "Hello again.", ANSWERS)
    denizen("ask", "--session", "s", "--actions", "shell", "hi")
    assert denizen("ask", "--session", "s", "hi").out == "Hello again.\n"
    assert denizen("ask", "--session", "s", "--actions", "shell", "hi").out == "It prints hello (once).\n"


def test_its_session_is_replayed_without_saying_it_again(denizen: Run, model: Model) -> None:
    model.plays(LOOKS, ANSWERS)
    denizen("ask", "--session", "s", "--actions", "shell", "hi")
    assert denizen("replay", "s").out.endswith("1 the same, 0 different\n")


@pytest.mark.usefixtures("asks_about_writes")
def test_a_structured_call_that_parks_it_is_answered_so_too(denizen: Run, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new.txt", content="x"), "$(done Written.)")
    assert denizen("ask", "--session", "s", "--actions", "shell", "hi").status == 4
    assert denizen("answer", "s", "yes").out == "Written.\n"
    assert (repo / "new.txt").read_text() == "x"


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize("command", [["ask", "--actions", "shell"], ["code"]], ids=lambda command: command[0])
def test_a_parked_command_is_answered_without_saying_all_of_it_again(
    denizen: Run, model: Model, repo: Path, command: list[str]
) -> None:
    model.plays("$(write new.txt 'it is new')", "$(done Written.)")
    assert denizen(*command, "--session", "s", "hi").status == 4
    ran = denizen("answer", "s", "yes")
    assert (ran.status, ran.out) == (0, "Written.\n")
    assert (repo / "new.txt").read_text() == "it is new"
