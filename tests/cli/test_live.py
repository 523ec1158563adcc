"""What a person types while the agent works: nothing of it is lost, and it garbles nothing."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, OnTerminal, Run
from tests.cli.model import Model, Reply, call, refuses, stalls
from tests.cli.screen import Screen
from tests.cli.test_cancel import wait_until
from tests.documents import LINE, PAPER

from denizen.messages import AssistantMessage, ToolCall

PROMPT = "\n>"
QUESTION = "or say what to do instead"
UNTIL_GO = "touch started; while [ ! -e go ]; do sleep 0.05; done"

Working = Callable[..., Screen]


@pytest.fixture
def working(on_terminal: OnTerminal, model: Model, repo: Path) -> Working:
    """`working("Done.")`: a conversation in which a tool runs until there is a file `go`; then the model says that.

    `also`: the next call of the same reply.
    """

    def start(*replies: Reply, also: ToolCall | None = None, **variables: str) -> Screen:
        first = ToolCall("tool", "bash", {"command": UNTIL_GO})
        model.server.say(AssistantMessage([first, also] if also else [first], stop_reason="tool_calls"))
        model.plays(*replies)
        screen = on_terminal("chat", "--session", "s", **variables)
        screen.expect(PROMPT)
        screen.enter("tell me everything")
        wait_until((repo / "started").exists)
        return screen

    return start


@pytest.fixture
def slow_git(repo: Path, tmp_path: Path) -> dict[str, str]:
    """Variables with which every snapshot waits as long as there is a file `hold`; there is a file `held` then."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    waits = f"[ -e {repo}/hold ] && touch {repo}/held; while [ -e {repo}/hold ]; do sleep 0.05; done"
    program.write_text(f'#!/bin/sh\n{waits}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.fixture(autouse=True)
def policy(home: Path, model: Model) -> None:
    """Commands run; writing is asked about."""
    rules = '[{ tool = "bash", decide = "allow" }, { tool = "write", decide = "ask" }]'
    with (home / "denizen.toml").open("a") as file:
        file.write(f"[policy]\nrules = {rules}\n")


def test_an_unfinished_line_comes_back_when_ctrl_c_stops_the_agent(working: Working, model: Model) -> None:
    screen = working("Fine.")
    screen.type("but be short")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect("> but be short")
    screen.enter(", please")
    screen.expect("Fine.")
    assert model.told().startswith("but be short, please")


def test_an_unfinished_line_comes_back_when_ctrl_c_stops_an_answer(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(stalls("A long answ"), "Fine.")
    screen = on_terminal("chat")
    screen.expect(PROMPT)
    screen.enter("tell me everything")
    screen.shows("A long answ")
    screen.type("be short")
    screen.shows("be short")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect("> be short")
    screen.enter("")
    screen.expect("Fine.")
    assert model.told().startswith("be short")


def test_an_entered_line_is_shown_as_queued_and_then_as_said(working: Working, model: Model, repo: Path) -> None:
    screen = working("Shorter, then.")
    screen.enter("but be short")
    screen.shows("queued: but be short")
    (repo / "go").touch()
    screen.expect("> but be short\n")
    screen.expect("Shorter, then.")
    assert model.told().startswith("but be short")


def test_a_file_that_an_entered_line_mentions_goes_along(working: Working, model: Model, repo: Path) -> None:
    (repo / "bridge.pdf").write_bytes(PAPER.data)
    (repo / "cut.pdf").write_bytes(PAPER.data[:400])
    screen = working("Open, then.")
    screen.enter("see @bridge.pdf")
    screen.shows("queued: see @bridge.pdf")
    screen.enter("and @cut.pdf")
    screen.shows("queued: and @cut.pdf")
    (repo / "go").touch()
    screen.shows("cut.pdf isn't a PDF document that can be read")
    screen.expect("Open, then.")
    assert LINE in json.dumps(model.requests[-1])
    assert "and @cut.pdf" in json.dumps(model.requests[-1])


@pytest.fixture
def answering(on_terminal: OnTerminal, model: Model) -> Screen:
    """A conversation in which a line was entered while an answer streams that never ends; the next is "Fine."."""
    model.plays(stalls("A long answ"), "Fine.")
    screen = on_terminal("chat", "--session", "s")
    screen.expect(PROMPT)
    screen.enter("tell me everything")
    screen.shows("A long answ")
    screen.enter("but be shrt")
    screen.shows("queued: but be shrt")
    screen.shows("· 1 s")  # the agent has looked several times for a stop
    return screen


def test_a_line_entered_while_an_answer_streams_can_be_edited(answering: Screen) -> None:
    answering.type("\x1b[A\x7f\x7fort\r")
    answering.shows("queued: but be short")


def test_a_line_entered_while_an_answer_streams_comes_back_when_it_is_stopped(
    answering: Screen, model: Model, denizen: Run
) -> None:
    answering.type("\x03")
    answering.expect("cancelled")
    answering.expect("> but be shrt")
    answering.enter("\x7f\x7fort")
    answering.expect("Fine.")
    assert model.told().startswith("but be short")
    assert "but be shrt" not in denizen("sessions", "export", "s").out


def test_a_line_entered_before_the_last_call_of_a_reply_comes_back_when_that_is_stopped(
    working: Working, repo: Path, denizen: Run
) -> None:
    screen = working(also=ToolCall("also", "bash", {"command": "touch second; sleep 1000"}))
    screen.enter("but be short")
    screen.shows("queued: but be short")
    (repo / "go").touch()
    wait_until((repo / "second").exists)
    screen.shows("queued: but be short")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect("> but be short")
    assert "but be short" not in denizen("sessions", "export", "s").out


def test_commands_are_listed_with_what_they_do_and_tab_completes_them(working: Working) -> None:
    screen = working()
    screen.type("/co")
    screen.shows("/compact")
    screen.shows("replace older messages with a summary")
    screen.type("m\t\r")
    screen.shows("queued: /compact")


def test_of_a_long_message_the_beginning_is_shown_as_said(working: Working, model: Model, repo: Path) -> None:
    screen = working("Shorter, then.")
    message = "\n".join(f"line {number}" for number in range(3000))
    screen.enter(f"\x1b[200~{message}\x1b[201~")
    screen.shows("queued: line 0 line 1 ")
    (repo / "go").touch()
    shown = screen.expect("Shorter, then.")
    assert "> line 0\n… line 1\n" in shown
    assert "more characters: the agent has them" in shown
    assert "line 2999" not in shown
    assert model.told().startswith(message)


def test_lines_that_were_not_heard_come_back_in_order(working: Working, model: Model) -> None:
    screen = working("Fine.")
    screen.enter("first")
    screen.enter("/usage")
    screen.enter("third")
    screen.type("unfinished")
    screen.shows("queued: third")
    screen.type("\x03\x03\x03")
    screen.expect("cancelled")
    screen.expect("… unfinished")
    screen.enter("")
    screen.expect("Fine.")
    assert "first\n/usage\nthird\nunfinished" in model.told()


def test_a_second_ctrl_c_does_not_interrupt_how_the_turn_ends(
    working: Working, denizen: Run, repo: Path, slow_git: dict[str, str]
) -> None:
    screen = working(**slow_git)
    (repo / "hold").touch()
    screen.type("but be short\x03")
    screen.shows("stopping …")
    wait_until((repo / "held").exists)
    screen.type("\x03!")
    screen.shows("!")
    (repo / "hold").unlink()
    screen.expect("cancelled")
    screen.expect("> but be short!")
    assert "cancelled while it ran" in denizen("sessions", "export", "s").out


def test_lines_that_were_not_heard_come_back_from_a_turn_that_failed(
    working: Working, model: Model, repo: Path
) -> None:
    screen = working(refuses(404, "no such model"), "Fine.")
    screen.type("be sh")
    (repo / "go").touch()
    screen.expect("error: ")
    screen.expect("> be sh")
    screen.enter("ort")
    screen.expect("Fine.")
    assert model.told().startswith("be short")


def test_what_is_typed_goes_over_to_the_next_prompt(working: Working, model: Model, repo: Path) -> None:
    screen = working("All of it.", "Fine.")
    screen.type("and then")
    (repo / "go").touch()
    screen.expect("All of it.\n")
    screen.expect("> and then")
    screen.enter(" that")
    screen.expect("Fine.")
    assert model.told().startswith("and then that")


def test_the_last_queued_line_can_be_taken_back(working: Working, model: Model, repo: Path) -> None:
    screen = working("Fine.")
    screen.enter("first")
    screen.enter("secnd")
    screen.shows("queued: secnd")
    screen.type("\x1b[A\x7f\x7fond\r")
    screen.shows("queued: second")
    (repo / "go").touch()
    screen.expect("> first\n")
    screen.expect("> second\n")
    screen.expect("Fine.")
    assert "secnd" not in json.dumps(model.requests)


def test_lines_are_edited_while_the_agent_works(working: Working, model: Model, repo: Path) -> None:
    screen = working("Fine.")
    screen.type("hallo\x1b[D\x1b[D\x1b[D\x1b[D\x7f\x1b[1~oh \r")
    screen.shows("queued: oh allo")
    (repo / "go").touch()
    screen.expect("Fine.")
    assert "oh allo" in model.told()


def test_the_terminal_does_not_echo_into_what_is_shown(working: Working) -> None:
    screen = working()
    assert not screen.echoes


def test_a_question_sets_aside_what_is_being_typed(working: Working, model: Model, repo: Path) -> None:
    screen = working(call("write", path="new.txt", content="x"), "Written.", "Fine.")
    screen.type("and th")
    screen.shows("and th")
    (repo / "go").touch()
    screen.shows("set aside: and th")
    screen.shows(QUESTION)
    screen.enter("y")
    screen.expect("Written.\n")
    screen.expect("> and th")
    screen.enter("en that")
    screen.expect("Fine.")
    assert (repo / "new.txt").exists()
    assert model.told().startswith("and then that")


def test_a_line_that_was_entered_before_a_question_is_no_answer(working: Working, model: Model, repo: Path) -> None:
    screen = working(call("write", path="new.txt", content="x"), "Left alone.")
    screen.enter("y")
    screen.shows("queued: y")
    (repo / "go").touch()
    screen.shows(QUESTION)
    screen.enter("n")
    screen.expect("Left alone.")
    assert not (repo / "new.txt").exists()
    assert json.dumps(model.requests[1]).count('"y') == 1


@pytest.mark.parametrize("draft", ["", "and "])
def test_what_is_typed_right_after_an_answer_is_kept(working: Working, model: Model, repo: Path, draft: str) -> None:
    screen = working(call("write", path="new.txt", content="x"), "Written.", "Fine.")
    screen.type(draft)
    (repo / "go").touch()
    screen.shows(QUESTION)
    screen.type("y\rthen that\rbut not")
    screen.expect("Written.\n")
    screen.expect("> but not")
    assert f"{draft}then that".strip() in model.told(2)
    screen.type("\x1b[A\r")
    screen.expect("Fine.")
    assert f"{draft}then that".strip() in model.told()


def test_what_was_typed_before_a_question_is_shown_does_not_answer_it(
    on_terminal: OnTerminal, denizen: Run, model: Model, repo: Path
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Left alone.")
    assert denizen("ask", "--session", "s", "write it").status == 4
    screen = on_terminal("chat", "--session", "s")
    screen.type("y\ry")
    screen.shows("queued: y")
    screen.shows("set aside: y")
    screen.shows(QUESTION)
    screen.enter("n")
    screen.expect("Left alone.")
    assert not (repo / "new.txt").exists()


def test_ctrl_c_at_a_question_keeps_what_was_being_typed(working: Working, repo: Path) -> None:
    screen = working(call("write", path="new.txt", content="x"))
    screen.type("and th")
    screen.shows("and th")
    (repo / "go").touch()
    screen.shows(QUESTION)
    screen.type("use the other f")
    screen.shows("use the other f")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect("> and th")
    screen.expect("… use the other f")
    assert not (repo / "new.txt").exists()


def test_what_was_heard_before_the_turn_was_parked_comes_back(working: Working, repo: Path) -> None:
    screen = working(also=ToolCall("also", "write", {"path": "new.txt", "content": "x"}))
    screen.enter("but be short")
    screen.shows("queued: but be short")
    (repo / "go").touch()
    screen.shows(QUESTION)
    screen.type("\x04")
    screen.expect("answer with: denizen answer s ")
    screen.expect("> but be short")


def test_a_command_that_takes_long_can_be_stopped_too(on_terminal: OnTerminal, denizen: Run, model: Model) -> None:
    model.plays(*[f"Answer {number}." for number in range(8)], stalls(""), "Fine.")
    denizen("chat", "--session", "s", piped="".join(f"question {number}\n" for number in range(8)))
    screen = on_terminal("chat", "--session", "s")
    screen.expect(PROMPT)
    screen.enter("/compact")
    screen.shows("making the context smaller …")
    wait_until(lambda: len(model.requests) == 9)
    screen.type("and n\x03")
    screen.gone("making the context smaller …")
    screen.gone("stopping …")
    screen.shows("> and n")
    screen.enter("ow")
    screen.expect("Fine.")
    assert model.told().startswith("and now")
    assert "context made smaller" not in screen.text


def test_text_that_ctrl_c_cleared_is_in_the_history(on_terminal: OnTerminal, model: Model) -> None:
    model.plays("One.", "Two.")
    screen = on_terminal("chat")
    screen.expect(PROMPT)
    screen.type("a long thought\x03hi\r")
    screen.expect("One.\n")
    screen.expect(PROMPT)
    screen.type("\x1b[A\x1b[A\r")
    screen.expect("Two.")
    assert model.told().startswith("a long thought")


def test_what_is_not_sent_when_the_program_ends_is_in_the_history(working: Working, home: Path) -> None:
    screen = working()
    screen.type("a long thought")
    screen.shows("a long thought")
    screen.process.terminate()
    assert screen.end() == 130
    assert "a long thought" in (home / "history").read_text()


def test_a_terminal_that_goes_away_ends_the_chat_and_frees_its_session(
    working: Working, home: Path, denizen: Run
) -> None:
    screen = working("Again.")
    screen.type("a long thought")
    screen.shows("a long thought")
    assert screen.hang_up() == 130
    assert "a long thought" in (home / "history").read_text()
    assert denizen("ask", "--session", "s", "hi").out == "Again.\n"


def test_a_second_ctrl_c_after_the_turn_clears_nothing(working: Working, model: Model) -> None:
    screen = working("Fine.")
    screen.type("but be short\x03")
    screen.expect("cancelled")
    screen.expect("> but be short")
    screen.type("\x03\r")
    screen.expect("Fine.")
    assert model.told().startswith("but be short")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(working: Working, number: signal.Signals) -> None:
    screen = working()
    screen.process.send_signal(number)
    assert screen.end() == 130
    assert screen.echoes


def test_an_interrupt_from_elsewhere_stops_the_agent_alone(working: Working) -> None:
    screen = working()
    screen.type("but")
    screen.shows("but")
    screen.process.send_signal(signal.SIGINT)
    screen.expect("cancelled")
    screen.expect("> but")
    assert screen.process.poll() is None


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_prompt_back(
    model: Model, repo: Path, environ: dict[str, str]
) -> None:
    model.server.say(AssistantMessage([ToolCall("tool", "bash", {"command": UNTIL_GO})], stop_reason="tool_calls"))
    model.plays("Fine.")
    screen = Screen(["/bin/bash", "--norc", "--noediting", "-i"], repo, environ)
    try:
        screen.enter(" ".join([*PROGRAM, "chat"]))
        screen.expect(PROMPT)
        screen.enter("tell me everything")
        wait_until((repo / "started").exists)
        screen.type("half a th\x1a")
        screen.expect("Stopped")
        wait_until(lambda: screen.echoes)
        screen.enter("fg")
        screen.shows("half a th")
        screen.enter("ought")
        screen.shows("queued: half a thought")
        (repo / "go").touch()
        screen.expect("Fine.")
    finally:
        screen.close()


def test_a_message_that_ctrl_c_follows_at_once_is_not_lost(on_terminal: OnTerminal, model: Model) -> None:
    model.plays("Fine.")
    screen = on_terminal("chat")
    screen.expect(PROMPT)
    screen.type("tell me everything\r\x03")
    screen.expect("cancelled")
    screen.expect(PROMPT)
    screen.enter("please")
    screen.expect("Fine.")
    assert "tell me everything" in json.dumps(model.requests)
    assert "never awaited" not in screen.text


def test_a_line_that_was_left_for_the_history_is_there_too(working: Working, model: Model, repo: Path) -> None:
    screen = working("All of it.", "Fine.")
    screen.type("half a th\x1b[A, please")
    screen.shows("tell me everything, please")
    (repo / "go").touch()
    screen.expect("All of it.\n")
    screen.expect("> tell me everything, please")
    screen.type("\x1b[Aought\r")
    screen.expect("Fine.")
    assert model.told().startswith("half a thought")


def test_lines_come_back_after_a_turn_that_was_going_round_in_circles(working: Working, repo: Path) -> None:
    screen = working(*[call("read", path="nowhere") for _ in range(20)])
    screen.enter("/usage")
    screen.shows("queued: /usage")
    (repo / "go").touch()
    screen.shows("your answer")
    screen.enter("")
    screen.expect("loop · ")
    screen.expect("> /usage")


def test_lines_come_back_after_a_command_whose_turn_was_parked(
    on_terminal: OnTerminal, denizen: Run, model: Model
) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    assert denizen("ask", "--session", "s", "write it").status == 4
    screen = on_terminal("chat", "--session", "s")
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect("/continue asks again")
    screen.expect(PROMPT)
    screen.type("/continue\r/usage\r")
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect("/continue asks again")
    screen.expect("> /usage")


def test_a_message_that_was_not_taken_in_comes_back(on_terminal: OnTerminal, denizen: Run, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    assert denizen("ask", "--session", "s", "write it").status == 4
    screen = on_terminal("chat", "--session", "s")
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect(PROMPT)
    screen.enter("what about the tests?")
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect("The message was not taken in")
    screen.expect("> what about the tests?")


def test_where_the_output_goes_through_a_pipe_the_prompt_does_not_stay(
    model: Model, repo: Path, environ: dict[str, str]
) -> None:
    model.server.say(AssistantMessage([ToolCall("tool", "bash", {"command": UNTIL_GO})], stop_reason="tool_calls"))
    model.plays("Fine.")
    screen = Screen(["/bin/sh", "-c", f"{' '.join(PROGRAM)} chat | cat"], repo, environ)
    try:
        screen.expect(PROMPT)
        screen.enter("tell me everything")
        wait_until((repo / "started").exists)
        screen.enter("but be short")
        (repo / "go").touch()
        screen.expect("Fine.\n")
    finally:
        screen.close()
    assert "queued" not in screen.text
    assert model.told().startswith("but be short")


def test_a_long_line_of_wide_characters_leaves_room_for_what_is_queued(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(stalls("長" * 960))
    screen = on_terminal("chat")
    screen.expect(PROMPT)
    screen.enter("tell me everything")
    screen.shows("長" * 30)
    screen.enter("but be short")
    screen.shows("queued: but be short")


def test_on_a_small_screen_the_last_of_many_queued_lines_is_shown(working: Working) -> None:
    screen = working()
    for number in range(24):
        screen.enter(f"line {number}.")
    screen.shows("queued: line 23. · ↑ takes it back")


def test_on_a_narrow_screen_all_choices_of_a_question_are_shown(
    model: Model, repo: Path, environ: dict[str, str]
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Left alone.")
    screen = Screen([*PROGRAM, "chat"], repo, environ, columns=40)
    try:
        screen.expect(PROMPT)
        screen.enter("write it")
        screen.shows("y yes · s yes, for this session · a")
        screen.shows("always · n no · or say what to do")
        screen.type("n\r")
        screen.expect("Left alone.")
    finally:
        screen.close()
