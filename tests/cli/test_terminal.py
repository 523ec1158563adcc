"""A turn on a terminal: streaming, progress, questions."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call, dies, stalls

from denizen.messages import AssistantMessage, Text, Thinking, ToolCall

QUESTION = "or say what to do instead: "


def test_the_answer_streams(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(stalls("It is beginning"))
    screen = on_terminal("ask", "hi")
    screen.expect("It is beginning")
    assert screen.process.poll() is None


@pytest.mark.parametrize("command", [["ask", "hi"], ["chat"], ["code", "hi"]], ids=["ask", "chat", "code"])
def test_the_answer_is_rendered_while_it_streams(on_terminal: OnTerminal, model: Model, command: list[str]) -> None:
    model.plays(stalls(f"# Found\n\n{'unbroken ' * 20}\n\n- **one**\n- tw"))
    screen = on_terminal(*command)
    if command == ["chat"]:
        screen.expect("\n>")
        screen.enter("hi")
    screen.shows("• tw")
    shown = screen.rows[screen.rows.index("Found") :]
    assert shown[:4] == ["Found", "", " ".join(["unbroken"] * 9), " ".join(["unbroken"] * 9)]
    assert shown[5:8] == ["", " • one", " • tw"]


def test_errors_are_wrapped_at_words(on_terminal: OnTerminal) -> None:
    screen = on_terminal("ask", "--model", "nobody:knows", "hi")
    assert screen.end() == 2
    lines = "\n".join(screen.rows).partition("error: ")[2].split("\n")
    assert len(lines) > 2
    whole = " ".join(line.strip() for line in lines)
    assert "A model is named provider:model, and any server can be a provider" in whole


def test_in_a_pipe_the_answer_is_as_the_model_wrote_it(denizen: Run, model: Model) -> None:
    model.plays("# Found\n\n- **one**")
    assert denizen("ask", "hi").out == "# Found\n\n- **one**\n"


def test_progress_is_coloured_and_the_reply_is_not(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("read", path="hello.py"), "It prints hello.")
    screen = on_terminal("ask", "hi")
    assert screen.end() == 0
    assert "\x1b[32m  ✓ read hello.py" in screen.raw
    assert "\nIt prints hello.\r\n" in screen.raw.replace("\r\x1b[J", "\n")


def test_thoughts_are_shown_dimmed_before_the_answer(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(AssistantMessage([Thinking("First this.\nThen \x1b[7mthat."), Text("Done.")]))
    screen = on_terminal("ask", "hi")
    assert screen.end() == 0
    assert "\x1b[90m  First this." in screen.raw
    assert "\x1b[90m  Then " in screen.raw
    assert "\x1b[7m" not in screen.raw
    rows = [row.strip() for row in screen.rows]
    assert rows.index("First this.") < rows.index("Done.")


def test_in_a_pipe_and_where_it_is_quiet_thoughts_are_left_out(
    on_terminal: OnTerminal, denizen: Run, model: Model
) -> None:
    thought = AssistantMessage([Thinking("First this."), Text("Done.")])
    model.plays(thought, thought)
    ran = denizen("ask", "hi")
    assert ran.out == "Done.\n"
    assert "First" not in ran.err
    screen = on_terminal("ask", "--quiet", "hi")
    assert screen.end() == 0
    assert "First" not in screen.raw


def test_no_color_is_honoured(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("read", path="hello.py"), "It prints hello.")
    screen = on_terminal("ask", "hi", NO_COLOR="1")
    assert screen.end() == 0
    assert "✓ read hello.py" in screen.text
    assert "\x1b[" not in screen.raw.replace("\x1b[J", "")


def test_a_simple_terminal_gets_no_passing_lines(on_terminal: OnTerminal, model: Model) -> None:
    model.plays("Hello.")
    screen = on_terminal("ask", "hi", TERM="dumb")
    assert screen.end() == 0
    assert "\x1b" not in screen.raw
    assert "thinking" not in screen.raw


def test_text_that_died_is_withdrawn(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(dies("Half an answer"), "The whole answer.")
    screen = on_terminal("ask", "hi")
    screen.expect("Half an answer\n")
    screen.expect("the answer above was withdrawn")
    screen.expect("The whole answer.\n")
    assert screen.end() == 0


def test_without_streaming_the_answer_comes_whole_and_once(on_terminal: OnTerminal, model: Model) -> None:
    model.plays("It prints hello.")
    screen = on_terminal("ask", "--no-stream", "hi")
    assert screen.end() == 0
    assert screen.text.count("It prints hello.") == 1


def test_what_a_tool_prints_passes_by(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    model.plays(
        call("bash", command="echo first; echo '\x1b[2Jsecond'; while [ ! -e go ]; do sleep 0.05; done"), "Done."
    )
    screen = on_terminal("ask", "--yes", "hi", NO_COLOR="1")
    screen.expect("│ second")
    (repo / "go").touch()
    assert screen.end() == 0
    assert "\x1b[2J" not in screen.raw


def test_a_plan_is_shown_when_it_changes(on_terminal: OnTerminal, model: Model) -> None:
    def task(**args: str) -> AssistantMessage:
        return AssistantMessage([ToolCall("", "task", args)], stop_reason="tool_calls")

    steps = [task(action="plan", text="Read\nWrite (after 1)"), task(action="list"), task(action="done", text="1")]
    model.plays(*steps, "Done.")
    screen = on_terminal("ask", "--profile", "coder", "--actions", "native", "hi", NO_COLOR="1")
    assert screen.end() == 0
    shown = [line.split(" · ")[0].rstrip() for line in screen.text.splitlines() if line.startswith(("  ✓", "    "))]
    assert shown == [
        "  ✓ task plan Read Write (after 1)",
        "    Plan: 0 of 2 done; ready: 1",
        "    1 [ ] Read",
        "    2 [ ] Write (after 1)",
        "  ✓ task list",
        "    Plan: 0 of 2 done; ready: 1",
        "    1 [ ] Read",
        "    2 [ ] Write (after 1)",
        "  ✓ task done 1",
        "    Plan: 1 of 2 done; ready: 2",
        "    1 [x] Read",
        "    2 [ ] Write (after 1)",
    ]


def test_of_a_typed_answer_only_the_right_one_is_shown(on_terminal: OnTerminal, model: Model, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["right"]}')
    model.plays('{"wrong": 1}', '{"right": 1}')
    screen = on_terminal("ask", "--output-schema", str(tmp_path / "schema.json"), "hi")
    assert screen.end() == 0
    assert "wrong" not in screen.text
    assert '{"right":1}\n' in screen.text


def test_what_streams_cannot_paint_the_terminal(on_terminal: OnTerminal, model: Model) -> None:
    model.plays("a\x1b]0;title\x07b\x1b[2Jc\x9b5nd")
    screen = on_terminal("ask", "hi", NO_COLOR="1")
    assert screen.end() == 0
    assert "abcd" in screen.raw
    assert "\x1b" not in screen.raw.replace("\x1b[J", "")


def test_a_passing_line_is_never_wider_than_the_terminal(on_terminal: OnTerminal, model: Model) -> None:
    command = f"echo {'日本' * 100}; sleep 60"
    model.plays(call("bash", command=command))
    screen = on_terminal("ask", "--yes", "hi")
    screen.expect("… bash echo 日本")
    screen.expect("│ 日本")  # or Ctrl-C would come while a line is drawn: the terminal drops half of it then
    screen.type("\x03")
    assert screen.end() == 130
    passing = [line for line in screen.text.replace("\r", "\n").split("\n") if line.startswith("… bash")]
    assert passing
    assert all(len(line) + line.count("日") + line.count("本") <= 80 for line in passing)


def test_a_tools_line_is_never_wider_than_the_terminal(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("bash", command=f"echo {'日本' * 100}"), call("read", path="n" * 100), "Done.")
    screen = on_terminal("ask", "--yes", "hi", TERM="dumb")
    assert screen.end() == 0
    told = [line for line in screen.text.splitlines() if line.startswith(("  ✓", "  ✗"))]
    assert len(told) == 2
    assert all(len(line) + line.count("日") + line.count("本") <= 80 for line in told)
    assert "… · " in told[0]


def test_of_what_a_tool_gave_the_first_lines_are_shown(denizen: Run, model: Model) -> None:
    model.plays(call("bash", command="seq 1 9"), "Done.")
    ran = denizen("ask", "--yes", "hi")
    _, _, shown = ran.err.partition("✓ bash seq 1 9")
    assert shown.splitlines()[1:5] == ["    1", "    2", "    3", "    … 6 more lines: --verbose shows it"]


@pytest.mark.needs("bwrap")
def test_what_the_sandbox_took_out_is_shown_however_much_a_command_prints(denizen: Run, model: Model) -> None:
    model.plays(call("bash", command="seq 1 9; echo evil > .envrc"), "Done.")
    shown = denizen("ask", "--yes", "hi").err.partition("✓ bash")[2].splitlines()
    assert shown[4].startswith("    … ")
    assert shown[5].startswith("    [taken out, because it would run by itself outside the sandbox: .envrc")


def test_verbose_shows_all_that_a_tool_gave(denizen: Run, model: Model) -> None:
    model.plays(call("bash", command="seq 1 9"), "Done.")
    ran = denizen("ask", "--yes", "--verbose", "hi")
    assert "".join(f"    {number}\n" for number in range(1, 10)) in ran.err
    assert denizen("ask", "--quiet", "--verbose", "hi").status == 2


def test_of_a_failed_command_the_last_lines_are_shown(denizen: Run, model: Model) -> None:
    model.plays(call("bash", command="seq 1 30; exit 7"), "Done.")
    ran = denizen("ask", "--yes", "hi")
    head, *lines = ran.err[ran.err.index("✗ bash") :].splitlines()
    assert head.endswith(": exit code 7")
    assert lines[:11] == ["    … 20 more lines: --verbose shows it", *(f"    {number}" for number in range(21, 31))]


def test_in_a_chat_the_whole_output_is_shown_on_demand(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("bash", command="seq 1 9"), call("bash", command="seq 11 19"), "Done.")
    screen = on_terminal("chat", "--yes")
    screen.expect("\n>")
    screen.enter("count")
    screen.shows("… 6 more lines: /output 1")
    screen.shows("… 6 more lines: /output 2")
    screen.shows("Done.")
    screen.enter("/output 1")
    screen.shows("9")
    screen.enter("/output")
    screen.shows("19")
    screen.enter("/output 3")
    screen.shows("Available: /output 1 to 2.")


@pytest.mark.usefixtures("asks_about_writes")
def test_a_question_shows_the_whole_call_above_it(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    (repo / "old.txt").write_text("".join(f"line {number}\n" for number in range(400)))
    content = "".join(f"LINE {number}\n" for number in range(400))
    model.plays(call("write", path="old.txt", content=content), "Done.")
    screen = on_terminal("ask", "hi")
    shown = screen.expect(QUESTION)
    assert "    path  old.txt\n" in shown
    assert "    -line 0\n" in shown
    assert "    +LINE 399\n" in shown
    assert "Allow write(old.txt)?" in shown.splitlines()[-2]
    assert "more lines" not in shown


@pytest.mark.usefixtures("asks_about_writes")
def test_nothing_in_a_question_looks_like_something_else(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("write", path="new\x1b[2J.txt", content="first\nsecond\u202e"), "Done.")
    screen = on_terminal("ask", "hi")
    shown = screen.expect(QUESTION)
    assert r"new\x1b[2J.txt" in shown
    assert "    +first\n" in shown
    assert r"    +second\u202e" in shown


@pytest.mark.usefixtures("asks_about_writes")
def test_what_is_asked_about_is_not_done_before(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new/file.txt", content="first"), "Done.")
    screen = on_terminal("ask", "hi")
    screen.expect(QUESTION)
    assert not (repo / "new").exists()
    screen.enter("n")
    assert screen.end() == 0
    assert [path.name for path in repo.iterdir() if path.name != ".git"] == ["hello.py"]


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize(
    ("answer", "written", "told"),
    [("y", True, ""), ("", False, "the user said no"), ("call it old.txt", False, "call it old.txt")],
    ids=["yes", "no", "words"],
)
def test_a_question_is_answered(
    on_terminal: OnTerminal, model: Model, repo: Path, *, answer: str, written: bool, told: str
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    screen = on_terminal("ask", "hi")
    screen.expect(QUESTION)
    screen.enter(answer)
    assert screen.end() == 0
    assert (repo / "new.txt").exists() == written
    assert told in model.told()


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize(("answer", "asked_again"), [("s", True), ("a", False)], ids=["session", "always"])
def test_an_approval_can_hold_longer(
    on_terminal: OnTerminal, denizen: Run, model: Model, answer: str, asked_again: bool
) -> None:
    write = call("write", path="new.txt", content="x")
    model.plays(write, write, "Done.", write, "Done.")
    screen = on_terminal("ask", "hi")
    screen.expect(QUESTION)
    screen.enter(answer)
    assert screen.end() == 0
    assert screen.text.count(QUESTION) == 1
    assert (denizen("ask", "hi").status == 4) == asked_again


@pytest.mark.usefixtures("asks_about_writes")
def test_the_end_of_input_parks_the_turn(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    screen = on_terminal("ask", "hi")
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect("answer with: denizen answer ")
    assert screen.end() == 4


@pytest.mark.usefixtures("asks_about_writes")
def test_ctrl_c_at_a_question_ends_its_line(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    screen = on_terminal("ask", "hi")
    screen.expect(QUESTION)
    screen.type("\x03")
    assert screen.end() == 130
    assert f"{QUESTION}^C\n" in screen.text


@pytest.mark.usefixtures("asks_about_writes")
def test_what_was_typed_before_a_question_is_no_answer_to_it(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    waits = "while [ ! -e go ]; do sleep 0.05; done"
    model.plays(call("bash", command=waits), call("write", path="new.txt", content="x"), "Done.")
    screen = on_terminal("ask", "hi")
    screen.expect("… bash while")
    screen.type("y")
    (repo / "go").touch()
    screen.expect(QUESTION)
    screen.enter("")
    assert screen.end() == 0
    assert "the user said no" in model.told()


@pytest.mark.usefixtures("asks_about_writes")
def test_a_pipe_on_standard_input_leaves_the_terminal_for_questions(
    on_terminal: OnTerminal, model: Model, repo: Path
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    screen = on_terminal("ask", "write it", stdin=subprocess.PIPE)
    assert screen.process.stdin
    screen.process.stdin.write(b"the content")
    screen.process.stdin.close()
    screen.expect(QUESTION)
    screen.enter("y")
    assert screen.end() == 0
    assert "the content" in json.dumps(model.requests[0])
    assert (repo / "new.txt").exists()


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize(("option", "written"), [("--yes", True), ("--non-interactive", False)])
def test_options_answer_in_place_of_the_person(
    on_terminal: OnTerminal, model: Model, repo: Path, option: str, written: bool
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    screen = on_terminal("ask", option, "hi")
    assert screen.end() == 0
    assert QUESTION not in screen.text
    assert (repo / "new.txt").exists() == written
    assert "the user said no" not in model.told()
    assert ("nobody can be asked (--non-interactive)" in model.told()) != written


def test_tables_fit_the_terminal(denizen: Run, on_terminal: OnTerminal, model: Model) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "s", "日本語 " * 40)
    screen = on_terminal("sessions", "list")
    assert screen.end() == 0
    assert "…" in screen.text
    assert all(sum(2 if char > "\u2fff" else 1 for char in line) <= 80 for line in screen.text.splitlines())
