"""`denizen chat`: at a terminal, and from a pipe."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, OnTerminal, Run
from tests.cli.model import Model, call, refuses, stalls
from tests.cli.screen import Screen

PROMPT = "\n>"
"""prompt_toolkit moves the cursor where the space after it is."""

Chat = Callable[..., Screen]


@pytest.fixture
def chat(on_terminal: OnTerminal) -> Chat:
    """`chat("--session", "s")`: a conversation that waits for a message."""

    def start(*options: str) -> Screen:
        screen = on_terminal("chat", *options)
        screen.expect(PROMPT)
        return screen

    return start


def asked(model: Model) -> list[str]:
    """What the user said in the last request, without the time."""
    users = [message for message in model.requests[-1]["messages"] if message["role"] == "user"]
    return [json.dumps(message["content"]).split("<time>")[0] for message in users]


def test_messages_are_answered_one_after_the_other(chat: Chat, model: Model) -> None:
    model.plays("Hello Ada.", "You are Ada.")
    screen = chat()
    screen.enter("I am Ada")
    screen.expect("Hello Ada.\n")
    screen.expect(PROMPT)
    screen.enter("Who am I?")
    screen.expect("You are Ada.\n")
    screen.expect(PROMPT)
    screen.type("\x04")
    assert screen.end() == 0
    assert len(asked(model)) == 2


def test_it_begins_with_what_it_works_with(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    screen = on_terminal("chat", "--session", "s")
    begun = "".join(screen.expect(PROMPT).split())  # wherever its lines were broken
    assert f"·test:scripted·{repo}·sessions·" in begun


@pytest.mark.parametrize(
    "keys", ["one\\\rtwo\r", "one\x1b\rtwo\r", "\x1b[200~one\ntwo\x1b[201~\r"], ids=["backslash", "Alt-Enter", "paste"]
)
def test_a_message_has_several_lines(chat: Chat, model: Model, keys: str) -> None:
    model.plays("Two lines.")
    screen = chat()
    screen.type(keys)
    screen.expect("Two lines.")
    assert "one\\ntwo" in asked(model)[0]


def test_lines_are_edited(chat: Chat, model: Model) -> None:
    model.plays("Fine.")
    screen = chat()
    screen.type("hallo\x1b[D\x1b[D\x1b[D\x1b[D\x7f\x1b[1~oh \r")
    screen.expect("Fine.")
    assert "oh allo" in asked(model)[0]


def test_commands_are_listed_with_what_they_do_and_tab_completes_them(chat: Chat) -> None:
    screen = chat("--session", "s")
    screen.type("/co")
    screen.shows("/compact")
    screen.shows("replace older messages with a summary")
    screen.type("m\t\r")
    screen.expect("Nothing to compact.")
    screen.type("/qu\t\r")
    assert screen.end() == 0


def test_the_agent_sees_the_output_of_a_users_command_unless_it_begins_with_two_marks(chat: Chat, model: Model) -> None:
    model.plays("Seen.")
    screen = chat()
    screen.enter("!!echo se''cret")
    screen.expect("secret")
    screen.expect(PROMPT)
    screen.enter("!echo pl''ain; exit 3")
    screen.expect("plain")
    screen.expect("exit code 3")
    screen.expect(PROMPT)
    screen.enter("what was that?")
    screen.expect("Seen.")
    assert "plain" in model.told()
    assert "secret" not in json.dumps(model.requests)


def test_any_letters_of_a_path_complete_a_file_that_git_does_not_ignore(chat: Chat, repo: Path, model: Model) -> None:
    (repo / "shop").mkdir()
    (repo / "shop" / "basket.py").write_text("ITEMS = 3\n")
    (repo / "basket.log").write_text("")
    (repo / ".gitignore").write_text("*.log\n")
    model.plays("Three.")
    screen = chat()
    screen.type("how many in @bskt")
    screen.shows("shop/basket.py")
    assert not any("basket.log" in row for row in screen.rows)
    screen.type("\t")
    screen.shows("how many in @shop/basket.py")
    screen.type("\r")
    screen.expect("Three.")
    assert "ITEMS = 3" in model.told()


def test_history_lasts_and_is_private(chat: Chat, model: Model, home: Path) -> None:
    model.plays("Once.", "Twice.")
    screen = chat()
    screen.enter("a question")
    screen.expect("Once.")
    screen.expect(PROMPT)
    screen.type("\x04")
    assert screen.end() == 0
    again = chat()
    again.type("\x1b[A\r")
    again.expect("Twice.")
    assert "a question" in asked(model)[0]
    assert stat.S_IMODE((home / "history").stat().st_mode) == 0o600


def test_history_that_cannot_be_kept_is_reported_and_nothing_else_is_lost(chat: Chat, model: Model, home: Path) -> None:
    model.plays("One.", "Two.")
    (home / "history").mkdir()
    screen = chat()
    screen.enter("first")
    screen.expect("One.")
    screen.expect("The history isn't kept: ")
    screen.expect(PROMPT)
    screen.enter("second")
    screen.expect("Two.")
    screen.expect(PROMPT)
    screen.type("\x04")
    assert screen.end() == 0
    assert "Traceback" not in screen.text


def test_ctrl_c_cancels_the_turn_and_not_the_program(chat: Chat, model: Model) -> None:
    model.plays(stalls("A long answ"), "Short.")
    screen = chat()
    screen.enter("tell me everything")
    screen.shows("A long answ")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect(PROMPT)
    screen.enter("be short")
    screen.expect("Short.")


def test_ctrl_c_at_the_prompt_clears_it_and_twice_leaves(chat: Chat, model: Model) -> None:
    model.plays("Fine.")
    screen = chat()
    screen.type("nonsense\x03sense\r")
    screen.expect("Fine.")
    screen.expect(PROMPT)
    screen.type("\x03")
    screen.expect("Press Ctrl-C again to leave.")
    screen.expect(PROMPT)
    screen.type("\x03")
    assert screen.end() == 0
    assert '"sense' in asked(model)[0] or " sense" in asked(model)[0]
    assert "nonsense" not in asked(model)[0]


def test_what_is_typed_while_the_agent_works_steers_it(chat: Chat, model: Model, repo: Path) -> None:
    model.plays(call("bash", command="while [ ! -e go ]; do sleep 0.05; done"), "Shorter, then.")
    screen = chat("--yes")
    screen.enter("tell me everything")
    screen.shows("… bash")
    screen.enter("but be short")
    screen.shows("queued: but be short")
    (repo / "go").touch()
    screen.expect("Shorter, then.")
    assert "but be short" in asked(model)[-1]


def test_a_command_that_is_typed_while_the_agent_works_waits(chat: Chat, model: Model, repo: Path) -> None:
    model.plays(call("bash", command="while [ ! -e go ]; do sleep 0.05; done"), "All of it.")
    screen = chat("--yes")
    screen.enter("tell me everything")
    screen.shows("… bash")
    screen.enter("/quit")
    screen.shows("queued: /quit")
    (repo / "go").touch()
    assert screen.end() == 0
    assert "All of it." in screen.text


@pytest.mark.usefixtures("asks_about_writes")
def test_questions_are_asked(chat: Chat, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    screen = chat()
    screen.enter("write it")
    screen.shows("or say what to do instead")
    screen.enter("y")
    screen.expect("Done.")
    assert (repo / "new.txt").exists()


@pytest.mark.usefixtures("asks_about_writes")
def test_a_command_at_a_question_is_a_command(chat: Chat, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    screen = chat("--session", "s")
    screen.enter("write it")
    screen.shows("or say what to do instead")
    screen.enter("/quit")
    screen.expect("answer with: denizen answer s ")
    assert screen.end() == 0
    assert len(model.requests) == 1
    assert not (repo / "new.txt").exists()


def test_a_failure_is_reported_and_the_conversation_goes_on(chat: Chat, model: Model) -> None:
    model.plays(refuses(404, "no such model"), "Fine.")
    screen = chat()
    screen.enter("hi")
    screen.expect("error: ")
    screen.expect(PROMPT)
    screen.enter("and now?")
    screen.expect("Fine.")


def test_a_mentioned_file_is_attached(chat: Chat, model: Model) -> None:
    model.plays("It prints.")
    screen = chat()
    screen.enter("What does @hello.py do?")
    screen.expect("It prints.")
    assert "print(" in asked(model)[0]


def test_trust_is_asked_before_the_first_message(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    (repo / "denizen.toml").write_text("[agent]\nmax_iterations = 1\n")
    screen = on_terminal("chat")
    screen.expect("Do you trust this folder? [y/N]: ")
    screen.enter("y")
    screen.expect(PROMPT)


def test_without_a_command_a_chat_begins(on_terminal: OnTerminal, denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    screen = on_terminal()
    screen.expect("/help")
    screen.enter("hi")
    screen.expect("Hello.")
    assert denizen().err == denizen("--help").out


def test_the_option_of_the_earlier_full_screen_opens_the_chat_and_says_so(chat: Chat, model: Model) -> None:
    model.plays("Hello.")
    screen = chat("--tui")
    screen.shows("The chat no longer has a full screen")
    screen.enter("hi")
    screen.expect("Hello.")


@pytest.mark.parametrize(("answer", "there"), [("y", True), ("n", False)])
def test_outside_of_git_it_works_here_once_the_person_says_so(
    model: Model, home: Path, tmp_path: Path, environ: dict[str, str], answer: str, *, there: bool
) -> None:
    (tmp_path / "plain").mkdir()
    model.plays(call("write", path="made.txt", content="x"), "Done.")
    screen = Screen([*PROGRAM, "ask", "Make it"], tmp_path / "plain", environ)
    try:
        screen.expect("Work in this folder? [y/N]: ")
        screen.enter(answer)
        screen.expect("Done.")
        assert screen.end() == 0
    finally:
        screen.close()
    assert (tmp_path / "plain" / "made.txt").exists() == there
    assert (home / "workspace" / "made.txt").exists() != there


def test_what_the_program_says_is_broken_between_words(chat: Chat) -> None:
    screen = chat()
    screen.enter("/help")
    screen.expect("Ctrl-D")
    screen.expect("leaves.")
    assert "  leaves." in screen.rows


def test_slash_commands(chat: Chat, model: Model) -> None:
    model.plays("Hello.")
    screen = chat("--session", "first")
    screen.enter("/help")
    screen.expect("/compact")
    screen.enter("hi")
    screen.expect("Hello.")
    screen.expect(PROMPT)
    screen.enter("/usage")
    screen.expect("1 turn · 120 in + 30 out")
    screen.enter("/model")
    screen.expect("model test:scripted")
    screen.enter("/new second")
    screen.expect("session second")
    screen.enter("/sessions")
    screen.expect("first")
    screen.enter("/nwe")
    screen.expect("Did you mean /new?")
    screen.enter("/quit")
    assert screen.end() == 0


def test_a_new_session_begins_anew_and_an_old_one_goes_on(denizen: Run, model: Model) -> None:
    model.plays("One.", "Two.", "Three.")
    denizen("chat", "--session", "first", piped="I am Ada\n/new second\nI am Bob\n/sessions first\nWho am I?\n")
    assert "Ada" in asked(model)[0]
    assert not any("Bob" in words for words in asked(model))


def test_a_session_that_goes_on_begins_with_what_was_said_last(denizen: Run, model: Model) -> None:
    model.plays("Hello Ada.", "It rains.\nStill.")
    denizen("ask", "--session", "ada", "I am Ada")
    denizen("ask", "--session", "ada", "How is the weather?")
    told = "  > How is the weather?\n  It rains. Still.\n"
    for ran in (denizen("chat", "--session", "ada"), denizen("chat", piped="/sessions ada\n")):
        assert told in ran.err
        assert "I am Ada" not in ran.err
    assert denizen("chat", "--session", "ada", "--quiet").err == ""


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize("where", ["at the beginning", "/sessions"])
def test_a_question_that_waits_is_asked_at_once(
    on_terminal: OnTerminal, denizen: Run, model: Model, repo: Path, where: str
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Written.")
    assert denizen("ask", "--session", "s", "write it").status == 4
    if where == "/sessions":
        screen = on_terminal("chat")
        screen.expect(PROMPT)
        screen.enter("/sessions s")
    else:
        screen = on_terminal("chat", "--session", "s")
    screen.shows("or say what to do instead")
    screen.enter("y")
    screen.expect("Written.")
    screen.expect(PROMPT)
    assert (repo / "new.txt").exists()


@pytest.mark.usefixtures("asks_about_writes")
def test_where_nobody_can_be_asked_it_says_how_to_answer(denizen: Run, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    denizen("ask", "--session", "s", "write it")
    ran = denizen("chat", "--session", "s")
    assert "answer with: denizen answer s yes|no|TEXT" in ran.err
    assert ran.status == 4


def test_a_turn_that_was_left_unfinished_goes_on(on_terminal: OnTerminal, denizen: Run, model: Model) -> None:
    model.plays(stalls("A long answ"), "The whole answer.")
    screen = on_terminal("ask", "--session", "s", "tell me everything", warm=False)
    screen.expect("A long answ")
    screen.process.kill()
    screen.process.wait()
    ran = denizen("chat", "--session", "s", piped="/continue\n")
    assert "unfinished: /continue resumes it" in ran.err
    assert ran.out == "The whole answer.\n"
    assert "unfinished" not in denizen("chat", "--session", "s").err


def test_another_model_goes_on_with_the_conversation(denizen: Run, model: Model) -> None:
    model.plays("One.", "Two.")
    denizen("chat", piped="I am Ada\n/model test:other\nWho am I?\n")
    assert model.requests[-1]["model"] == "other"
    assert len(asked(model)) == 2


def test_a_model_that_there_is_not_leaves_the_old_one(denizen: Run, model: Model) -> None:
    model.plays("One.")
    ran = denizen("chat", piped="/model nobody:x\nhi\n")
    assert "error: " in ran.err
    assert model.requests[-1]["model"] == "scripted"


def test_compact_puts_a_summary_in_place_of_what_is_old(denizen: Run, model: Model) -> None:
    model.plays(*[f"Answer {number}." for number in range(8)], "They counted.", "Done.")
    questions = "".join(f"question {number}\n" for number in range(8))
    ran = denizen("chat", piped=f"{questions}/compact\nand now?\n")
    assert "context made smaller: 16 → 11 messages" in ran.err
    assert "They counted." in json.dumps(model.requests[-1])
    assert "question 0" not in json.dumps(model.requests[-1])


def test_compact_leaves_a_short_conversation_alone(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    assert "Nothing to compact" in denizen("chat", piped="hi\n/compact\n").err


def test_compact_that_fails_loses_nothing(denizen: Run, model: Model) -> None:
    answers = [f"Answer {number}." for number in range(8)]
    model.plays(*answers, refuses(400, "I can't"), "Done.")
    questions = "".join(f"question {number}\n" for number in range(8))
    ran = denizen("chat", piped=f"{questions}/compact\nand now?\n")
    assert "it stays as it is" in ran.err
    assert "question 0" in json.dumps(model.requests[-1])


def test_from_a_pipe_every_line_is_a_message(denizen: Run, model: Model) -> None:
    model.plays("One.", "Two.")
    ran = denizen("chat", "--quiet", piped="first\n\nsecond\\\nline\n")
    assert (ran.out, ran.err, ran.status) == ("One.\nTwo.\n", "", 0)
    assert "second\\nline" in asked(model)[1]


def test_what_comes_from_a_pipe_runs_no_command_of_the_shell(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("A message.")
    assert denizen("chat", piped="!touch made\n").out == "A message.\n"
    assert not (repo / "made").exists()
    assert "!touch made" in asked(model)[0]


def test_what_begins_like_a_path_is_no_command(denizen: Run, model: Model) -> None:
    model.plays("A file of hosts.")
    assert denizen("chat", piped="/etc/hosts is what?\n").out == "A file of hosts.\n"


def test_what_goes_on_in_another_line_is_no_command(denizen: Run, model: Model) -> None:
    model.plays("Fine.")
    assert denizen("chat", piped="/quit\\\nand this?\n").out == "Fine.\n"
    assert "/quit\\nand this?" in asked(model)[0]


def test_a_session_that_is_in_use_leaves_the_old_one(chat: Chat, denizen: Run, model: Model) -> None:
    model.plays("Hello.", "And again.")
    chat("--session", "s")
    ran = denizen("chat", "--session", "mine", piped="hi\n/sessions s\nhi again\n")
    assert "Session s is held by process" in ran.err
    assert ran.out == "Hello.\nAnd again.\n"
    assert len(asked(model)) == 2


def test_from_a_pipe_the_status_is_the_last_turns(denizen: Run, model: Model) -> None:
    model.plays("Fine.", refuses(404, "no such model"))
    assert denizen("chat", piped="hi\nand now?\n").status == 1


def test_as_json_every_turn_ends_with_done(denizen: Run, model: Model) -> None:
    model.plays("One.", "Two.")
    events = [json.loads(line) for line in denizen("chat", "--json", piped="a\nb\n").out.splitlines()]
    assert [event["result"]["reply"] for event in events if event["type"] == "done"] == ["One.", "Two."]


def test_nothing_said_leaves_no_session(denizen: Run, model: Model) -> None:
    denizen("chat", piped="/help\n")
    assert "no sessions yet" in denizen("sessions", "list").err


def test_a_session_that_is_in_use_is_reported(chat: Chat, denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    screen = chat("--session", "s")
    ran = denizen("ask", "--session", "s", "hi")
    assert ran.status == 1
    assert "Session s is held by process" in ran.err
    screen.type("\x04")
    assert screen.end() == 0


def test_undo_and_redo_take_a_turn_back_and_forward(denizen: Run, model: Model, repo: Path) -> None:
    model.plays(call("write", path="made.txt", content="new\n"), "Made.", "I see.")
    denizen("chat", "--session", "tale", piped="Make a file\n/undo\n")
    assert not (repo / "made.txt").exists()
    ran = denizen("chat", "--session", "tale", piped="/redo\nWhat is there?\n")
    assert (repo / "made.txt").read_text() == "new\n"
    assert "Make a file" in str(model.requests[-1]["messages"])
    assert ran.status == 0


def test_undo_says_what_is_in_its_way(denizen: Run, model: Model, repo: Path) -> None:
    model.plays(call("write", path="made.txt", content="new\n"), "Made.")
    denizen("chat", "--session", "tale", piped="Make a file\n")
    (repo / "made.txt").write_text("mine\n")
    ran = denizen("chat", "--session", "tale", piped="/undo\n")
    assert "made.txt" in ran.err
    assert (repo / "made.txt").read_text() == "mine\n"
    denizen("chat", "--session", "tale", piped="/undo force\n")
    assert not (repo / "made.txt").exists()


def test_usage_estimates_the_context_of_a_model_that_reports_none(denizen: Run) -> None:
    ran = denizen("chat", "--model", "offline", piped="Which languages are there?\n/usage\n")
    assert "1 turn · context about " in ran.err
