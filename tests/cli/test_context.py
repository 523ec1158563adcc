"""`denizen context`: what the model would be asked next."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.model import Model, call


@pytest.fixture
def talked(denizen: Run, model: Model, repo: Path) -> str:
    (repo / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 100)))
    model.plays(call("read", "Let me look.", path="long.txt"), "It has 99 lines.")
    assert denizen("ask", "--session", "talk", "How long is long.txt?").status == 0
    return "talk"


def parts(denizen: Run, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in denizen("context", *arguments, "--json").out.splitlines()]


def test_it_is_a_table_of_parts_with_their_sizes(denizen: Run, talked: str) -> None:
    titles, *rows, total = denizen("context", talked).out.splitlines()
    assert titles.split("  ")[0] == "message"
    assert rows[0].split()[:2] == ["system", "prompt"]
    assert any(row.split()[:3] == ["1", "user", "text"] and row.endswith("How long is long.txt?") for row in rows)
    sizes = [(int(row["characters"]), int(row["tokens"])) for row in parts(denizen, talked)]
    assert total.split() == ["total", f"{sum(size for size, _ in sizes):,}", f"{sum(tokens for _, tokens in sizes):,}"]


def test_it_is_what_the_model_gets(denizen: Run, model: Model, talked: str) -> None:
    shown = [part for part in parts(denizen, talked) if part["message"]]
    model.plays("Yes.")
    denizen("ask", "--session", "talk", "Sure?")
    sent = json.dumps(model.requests[-1]["messages"])
    for part in shown:
        if part["kind"] == "text":
            assert json.dumps(part["text"])[1:-1] in sent
    assert [part["role"] for part in shown] == ["user", "user", "assistant", "assistant", "result", "assistant"]


def test_the_grammar_of_commands_is_a_part_of_its_own(denizen: Run, model: Model) -> None:
    model.plays("$(view hello.py)", "$(keep) $(view .)", "It says hello.")
    assert denizen("ask", "--profile", "coder", "--session", "code", "What does it say?").status == 0
    system = [part for part in parts(denizen, "code") if part["role"] == "system"]
    assert [part["kind"] for part in system] == ["prompt", "grammar"]
    assert system[0]["text"].startswith("<identity>")
    assert "$(keep)" in system[1]["text"]


def test_what_was_kept_is_a_part_of_its_own(denizen: Run, model: Model) -> None:
    model.plays("$(view hello.py)", "$(keep) $(view .)", "It says hello.")
    denizen("ask", "--profile", "coder", "--session", "code", "What does it say?")
    texts = [part["text"].strip().partition("\n")[0] for part in parts(denizen, "code") if part["message"]]
    assert texts[0] == "What does it say?"
    assert texts[2:] == ["It says hello.", "[kept] $ view hello.py"]


def test_full_prints_the_texts(denizen: Run, talked: str) -> None:
    out = denizen("context", talked, "--full").out
    assert "line 99" in out
    assert "<identity>" in out


def test_what_tools_gave_cannot_paint_the_terminal(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "paint.txt").write_text("\x1b[2Jgone")
    model.plays(call("read", path="paint.txt"), "Read.")
    denizen("ask", "--session", "s", "hi")
    for arguments in ([], ["--full"]):
        assert "\x1b" not in denizen("context", "s", *arguments).out


def test_it_reads_a_session_that_is_in_use_and_changes_nothing(denizen: Run, talked: str, home: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in home.glob("sessions/**/*") if file.is_file()}

    before = files()
    assert denizen("context", talked).status == 0
    assert files() == before


def test_a_session_that_there_is_not(denizen: Run) -> None:
    ran = denizen("context", "nobody")
    assert ran.status == 1
    assert "There is no session nobody." in ran.err


def test_a_session_that_waits_for_an_answer_says_so(denizen: Run, model: Model, asks_about_writes: None) -> None:
    model.plays(call("write", path="a.txt", content="a"))
    assert denizen("ask", "--session", "s", "write").status == 4
    ran = denizen("context", "s")
    assert ran.status == 0
    assert "waits for an answer first" in ran.err


@pytest.mark.parametrize("command", ["context", "replay"])
def test_a_transcript_without_its_beginning_and_with_odd_state_is_read(
    denizen: Run, home: Path, talked: str, command: str
) -> None:
    path = next((home / "sessions").rglob(f"*{talked}.jsonl"))
    _, *lines = path.read_text().splitlines(keepends=True)
    odd = [json.dumps(json.loads(line) | {"value": ["x"]}) + "\n" if '"state"' in line else line for line in lines]
    assert odd != lines
    path.write_text("".join(odd))
    ran = denizen(command, talked)
    assert (ran.status, "long.txt" in ran.out) == (0, True), ran.err
