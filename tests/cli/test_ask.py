"""`denizen ask` in pipes: the reply alone on standard output, the rest on standard error, the exit status."""

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, call, dies, refuses

from denizen.messages import AssistantMessage, Text, Usage


def test_standard_output_carries_the_reply_alone(denizen: Run, model: Model) -> None:
    model.plays(call("read", "Let me look.", path="hello.py"), "It prints hello.")
    ran = denizen("ask", "What", "does", "it", "do?")
    assert ran.status == 0
    assert ran.out == "It prints hello.\n"
    assert model.requests[0]["messages"][-1]["content"] != ""
    assert "What does it do?" in model.told(0)


def test_standard_error_tells_which_tool_ran_on_what_how_long_and_what_was_used(denizen: Run, model: Model) -> None:
    model.plays(call("read", "Let me look.", path="hello.py"), "It prints hello.")
    lines = denizen("ask", "What does it do?").err.splitlines()
    assert lines[0].strip() == "Let me look."
    assert lines[1].strip().startswith("✓ read hello.py · ")
    assert lines[1].endswith(" ms") or lines[1].endswith(" s")
    assert lines[2].split() == ["1", 'print("hello")']
    assert lines[3].strip().startswith("answered · 2 iterations · 240 in + 60 out · ")


def test_cached_tokens_of_all_calls_are_counted(denizen: Run, model: Model) -> None:
    cached = Usage(20, 30, cache_read=100)
    asked = msgspec.structs.replace(call("read", path="hello.py"), usage=cached)
    model.plays(asked, AssistantMessage([Text("It prints hello.")], usage=cached))
    assert "40 in + 60 out · 200 cached · " in denizen("ask", "--session", "s", "hi").err
    assert "40 in + 60 out · 200 cached" in denizen("sessions", "show", "s").out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("grep", pattern="hello", path="."), "grep hello ·"),
        (call("grep", pattern="hello", path="hello.py"), "grep hello in hello.py ·"),
        (call("git", args="status"), "git status ·"),
        (call("apply_patch", patch="*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"), "apply_patch a.py ·"),
        (call("bash", command="echo one\necho two"), "bash echo one echo two ·"),
        (call("recall"), "recall ·"),
    ],
    ids=lambda value: value.rpartition(" ")[0] if isinstance(value, str) else "",
)
def test_a_call_is_shown_in_short(denizen: Run, model: Model, asked: AssistantMessage, told: str) -> None:
    model.plays(asked, "Done.")
    assert f"✓ {told}" in denizen("ask", "hi").err


def test_where_a_call_goes_on_is_reported(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "two.py").touch()
    model.plays(call("ls", start=2), "Done.")
    assert "✓ ls from 2 ·" in denizen("ask", "hi").err


def test_a_failed_tool_says_why(denizen: Run, model: Model) -> None:
    model.plays(call("read", path="nothing.py"), "There is no such file.")
    ran = denizen("ask", "What is in nothing.py?")
    assert "✗ read nothing.py" in ran.err
    assert ran.status == 0


@pytest.mark.parametrize(
    "asked",
    [
        call("edit", path="hello.py", old='"hello"', new='"bye"'),
        call("write", path="hello.py", content='print("bye")\n'),
        call("apply_patch", patch='--- a/hello.py\n+++ b/hello.py\n@@ -1 +1 @@\n-print("hello")\n+print("bye")\n'),
    ],
    ids=["edit", "write", "apply_patch"],
)
def test_a_change_of_a_file_is_shown(denizen: Run, model: Model, asked: AssistantMessage) -> None:
    model.plays(asked, "Done.")
    ran = denizen("ask", "hi")
    assert '\n    -print("hello")\n    +print("bye")\n' in ran.err
    assert ran.out == "Done.\n"


def test_of_a_long_change_the_beginning_is_shown(denizen: Run, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="a line\n" * 100), "Done.")
    err = denizen("ask", "hi").err
    assert err.count("    +a line\n") == 19
    assert "    … 81 more lines: --verbose shows it\n" in err


def test_nothing_is_coloured_in_a_pipe(denizen: Run, model: Model) -> None:
    model.plays(call("read", path="hello.py"), "It prints hello.")
    ran = denizen("ask", "What does it do?")
    assert "\x1b" not in ran.out + ran.err


def test_quiet_prints_the_reply_alone(denizen: Run, model: Model) -> None:
    model.plays(call("read", path="hello.py"), "It prints hello.")
    ran = denizen("ask", "--quiet", "What does it do?")
    assert (ran.out, ran.err) == ("It prints hello.\n", "")


def test_no_stream_asks_the_model_for_whole_answers(denizen: Run, model: Model) -> None:
    model.plays("Whole.")
    assert denizen("ask", "--no-stream", "hi").out == "Whole.\n"
    assert not model.requests[0].get("stream")


def test_what_a_model_says_cannot_paint_a_terminal(denizen: Run, model: Model) -> None:
    model.plays("a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\re\x08f\ttab")
    assert denizen("ask", "hi").out == "abcdef\ttab\n"


def test_what_a_tool_is_called_with_cannot_paint_a_terminal(denizen: Run, model: Model) -> None:
    model.plays(call("read", path="\x1b]0;owned\x07hello\x1b[2J.py\r\nfake"), "Done.")
    ran = denizen("ask", "hi")
    assert "\x1b" not in ran.err
    assert "\r" not in ran.err
    assert "read hello.py fake" in ran.err


def test_without_a_message_it_says_how_to_give_one(denizen: Run, model: Model) -> None:
    ran = denizen("ask")
    assert ran.status == 2
    assert 'as in "What language is this project?", or pipe it in' in ran.err


def test_an_unknown_option_is_wrong_use(denizen: Run) -> None:
    assert denizen("ask", "--frobnicate", "hi").status == 2


def test_an_unknown_setting_is_wrong_configuration(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text("modle = 'offline'\n")
    ran = denizen("ask", "hi")
    assert ran.status == 2
    assert "modle isn't a setting. Did you mean model?" in ran.err


def test_an_unknown_provider_is_wrong_use(denizen: Run) -> None:
    ran = denizen("ask", "--model", "anthropix:claude", "hi")
    assert ran.status == 2
    assert "anthropic" in ran.err


def test_a_model_that_refuses_is_a_failure(denizen: Run, model: Model) -> None:
    model.plays(refuses(404, "this model does not exist"))
    ran = denizen("ask", "hi")
    assert (ran.status, ran.out) == (1, "")
    assert "  error · " in ran.err
    assert "error: " in ran.err
    assert "this model does not exist" in ran.err


def test_who_goes_on_for_a_model_that_refuses_is_reported(denizen: Run, model: Model, home: Path) -> None:
    settings = home / "denizen.toml"
    settings.write_text(f'fallback_models = ["test:other"]\n{settings.read_text()}')
    model.plays(refuses(401, "no such key"), "There.")
    ran = denizen("ask", "hi")
    assert (ran.status, ran.out) == (0, "There.\n")
    assert "  test:scripted: no such key (HTTP 401): going on with test:other\n" in ran.err


def test_retries_are_reported_and_counted(denizen: Run, model: Model) -> None:
    model.plays(refuses(500, "busy"), "There.")
    ran = denizen("ask", "hi")
    assert (ran.status, ran.out) == (0, "There.\n")
    assert "busy (HTTP 500): trying again" in ran.err
    assert "default" not in ran.err
    assert "1 retry" in ran.err


def test_of_a_stream_that_died_nothing_is_printed(denizen: Run, model: Model) -> None:
    model.plays(dies("Half an answ"), "The whole answer.")
    ran = denizen("ask", "hi")
    assert (ran.status, ran.out) == (0, "The whole answer.\n")


@pytest.mark.parametrize("option", ["--max-iterations", "--max-turns"])
def test_at_the_iteration_limit_it_stops_without_an_answer(denizen: Run, model: Model, option: str) -> None:
    model.plays(call("read", "Let me look.", path="hello.py"))
    ran = denizen("ask", option, "1", "hi")
    assert (ran.status, ran.out) == (3, "")
    assert "iteration limit" in ran.err


def test_a_turn_that_goes_round_in_circles_stops_with_the_reason(denizen: Run, model: Model) -> None:
    model.plays(*[call("read", path="hello.py")] * 12)
    ran = denizen("ask", "--non-interactive", "hi")
    assert (ran.status, ran.out) == (3, "")
    assert "Stopped: the turn went round in circles: the same call was made 3 times" in ran.err


def test_a_driver_is_chosen_by_an_option(denizen: Run, home: Path, model: Model, repo: Path) -> None:
    (repo / "polite.py").write_text(
        "from denizen.ports import Proceed\n\n\nclass Polite:\n"
        "    def decide(self, view):\n        return Proceed('Say please.')\n\n"
        "    def observe(self, iteration):\n        pass\n"
    )
    model.plays("Please.")
    assert denizen("ask", "--driver", "polite.py", "hi").status == 0
    assert "Say please." in str(model.requests[-1])
    refused = denizen("ask", "--driver", "polit", "hi")
    assert refused.status == 2
    assert "There is no driver 'polit'. Available: simple, planning, reflective" in refused.err


def test_at_the_end_of_the_budget_it_stops_without_an_answer(denizen: Run, home: Path, model: Model) -> None:
    settings = (home / "denizen.toml").read_text().replace("providers.test", "providers.openai")
    (home / "denizen.toml").write_text(settings.replace("test:scripted", "openai:gpt-5-mini"))
    ran = denizen("ask", "--max-cost", "0", "hi")
    assert (ran.status, ran.out) == (3, "")
    assert "--max-cost" in ran.err


def test_read_only_refuses_writes(denizen: Run, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new.txt", content="x"), "I could not.")
    assert denizen("ask", "--read-only", "write something").status == 0
    assert not (repo / "new.txt").exists()
    assert "read-only" in model.told()


def test_the_workspace_is_the_repository_that_one_is_in(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "inner").mkdir()
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    denizen("ask", "write something", cwd=repo / "inner")
    assert (repo / "new.txt").read_text() == "x"


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_outside_a_repository_it_is_reported_where_the_work_is_done(
    denizen: Run, model: Model, home: Path, tmp_path: Path, command: str
) -> None:
    told = f"This folder isn't a git repository: working in {home}/workspace. To work here: --workspace ."
    model.plays("Hello.", "Hello.", "Hello.", "Hello.")
    assert told in denizen(command, piped="hi", cwd=tmp_path).err
    assert told in [
        json.loads(line).get("text") for line in denizen(command, "--json", piped="hi", cwd=tmp_path).out.splitlines()
    ]
    assert denizen(command, "--quiet", piped="hi", cwd=tmp_path).err == ""
    assert told not in denizen(command, "--workspace", ".", piped="hi", cwd=tmp_path).err


def test_workspace_names_another_folder(denizen: Run, model: Model, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    denizen("ask", "--workspace", str(other), "write something")
    assert (other / "new.txt").read_text() == "x"


def test_config_reads_another_file(denizen: Run, model: Model, home: Path, tmp_path: Path) -> None:
    (home / "denizen.toml").rename(tmp_path / "mine.toml")
    model.plays("Here.")
    assert denizen("ask", "--config", str(tmp_path / "mine.toml"), "hi").out == "Here.\n"


def test_profile_names_what_there_is(denizen: Run, model: Model) -> None:
    ran = denizen("ask", "--profile", "nobody", "hi")
    assert ran.status == 2
    assert "assistant" in ran.err


def test_model_is_taken_before_the_configuration(denizen: Run, model: Model) -> None:
    model.plays("Here.")
    denizen("ask", "--model", "test:other", "hi")
    assert model.requests[0]["model"] == "other"


def test_options_that_contradict_each_other_are_wrong_use(denizen: Run) -> None:
    assert denizen("ask", "--yes", "--non-interactive", "hi").status == 2


def test_continue_with_a_session_means_that_session(denizen: Run, model: Model) -> None:
    model.plays("Hello Ada.", "Hello Bob.", "You are Ada.")
    denizen("ask", "--session", "ada", "I am Ada")
    denizen("ask", "--session", "bob", "I am Bob")
    assert denizen("ask", "--session", "ada", "--continue", "Who am I?").out == "You are Ada.\n"
    assert "I am Ada" in json.dumps(model.requests[2]["messages"])


def test_session_goes_on_with_a_conversation(denizen: Run, model: Model) -> None:
    model.plays("Hello Ada.", "You are Ada.")
    denizen("ask", "--session", "ada", "I am Ada")
    denizen("ask", "--session", "ada", "Who am I?")
    assert len([message for message in model.requests[1]["messages"] if message["role"] == "user"]) == 2


@pytest.mark.parametrize("option", ["--continue", "--resume"])
def test_continue_goes_on_with_the_last_conversation_of_the_workspace(
    denizen: Run, model: Model, tmp_path: Path, option: str
) -> None:
    model.plays("Hello Ada.", "Elsewhere.", "You are Ada.")
    denizen("ask", "I am Ada")
    (tmp_path / "other").mkdir()
    denizen("ask", "--workspace", str(tmp_path / "other"), "something else")
    denizen("ask", option, "Who am I?")
    assert "I am Ada" in json.dumps(model.requests[2]["messages"])
    assert "something else" not in json.dumps(model.requests[2]["messages"])


def test_continue_where_there_is_nothing_to_continue(denizen: Run, model: Model) -> None:
    ran = denizen("ask", "--continue", "Who am I?")
    assert ran.status == 2
    assert "no session to continue" in ran.err


def test_a_session_that_goes_on_elsewhere_is_reported(denizen: Run, model: Model, tmp_path: Path, repo: Path) -> None:
    model.plays("Hello.", "Hello again.")
    denizen("ask", "--session", "ada", "hi")
    (tmp_path / "other").mkdir()
    ran = denizen("ask", "--session", "ada", "--workspace", str(tmp_path / "other"), "hi")
    assert f"began in {repo}" in ran.err


def test_a_typed_answer_is_printed_as_json(denizen: Run, model: Model, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    model.plays('{"m": 1}', '```json\n{"n": 2}\n```')
    ran = denizen("ask", "--output-schema", str(tmp_path / "schema.json"), "a number")
    assert (ran.status, json.loads(ran.out)) == (0, {"n": 2})


@pytest.mark.parametrize("schema", ["[1]", "{", '{"type": "nonsense"}'], ids=["no object", "no JSON", "no schema"])
def test_a_file_that_is_no_schema_is_wrong_use(denizen: Run, model: Model, tmp_path: Path, schema: str) -> None:
    (tmp_path / "schema.json").write_text(schema)
    assert denizen("ask", "--output-schema", str(tmp_path / "schema.json"), "hi").status == 2


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_standard_output_that_is_full_is_a_failure(
    model: Model, repo: Path, environ: dict[str, str], unbuffered: str
) -> None:
    model.plays("An answer.")
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*PROGRAM, "ask", "hi"],
            cwd=repo,
            env=environ | {"PYTHONUNBUFFERED": unbuffered},
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert "Standard output can't be written" in ran.stderr
    assert "Exception ignored" not in ran.stderr


def test_nobody_reads_what_is_printed(model: Model, repo: Path, environ: dict[str, str]) -> None:
    model.plays("An answer.")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        ran = subprocess.run(
            [*PROGRAM, "ask", "--quiet", "hi"],
            cwd=repo,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (1, "")


def test_reasoning_of_the_command_line_counts_over_the_settings_of_a_model(
    denizen: Run, model: Model, home: Path
) -> None:
    settings = home / "denizen.toml"
    settings.write_text(settings.read_text() + '\n[models."test:scripted"]\nreasoning = "low"\n')
    model.plays("Hm.", "Hm.")
    denizen("ask", "hi")
    denizen("ask", "--reasoning", "high", "hi")
    assert [request["reasoning_effort"] for request in model.requests] == ["low", "high"]


def test_an_answer_that_was_written_and_never_shown_is_shown_by_the_same_command(
    home: Path, denizen: Run, model: Model
) -> None:
    """What a killed process leaves is a turn that has begun, and at last its end."""
    model.plays("You are Ada.")
    denizen("ask", "--session", "s", "I am Ada. Who am I?")
    again = denizen("ask", "--session", "s")
    assert (again.out, again.status, len(model.requests)) == ("You are Ada.\n", 0, 1)
    assert denizen("ask", "--continue").out == "You are Ada.\n"
