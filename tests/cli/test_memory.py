"""`denizen memory`: list, search, forget, export, import."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import USAGE, Model

from denizen.messages import AssistantMessage, ToolCall


def remembers(**args: Any) -> AssistantMessage:
    return AssistantMessage([ToolCall("", "remember", args)], usage=USAGE, stop_reason="tool_calls")


@pytest.fixture
def kept(denizen: Run, model: Model) -> None:
    """Two facts of the project, one of the user."""
    model.plays(
        remembers(text="The auth module keeps JWTs in cookies", context="architecture", weight=0.8),
        remembers(text="Tests run with tox"),
        remembers(text="Ada likes green tea", scope="user"),
        "Noted.",
    )
    assert denizen("ask", "--session", "work", "Remember all that").status == 0


def test_what_machines_share_is_shown_and_forgotten(denizen: Run, postgres_url: str) -> None:
    shared = ("--database", postgres_url)
    assert denizen("memory", "list", *shared).err == "Nothing is remembered yet.\n"
    with psycopg.connect(postgres_url) as database:
        database.execute("INSERT INTO notes VALUES ('MEMORY.md', '- Ada likes tea')")
    assert facts(denizen("memory", "export", *shared).out) == ["Ada likes tea"]
    assert denizen("memory", "export").out == ""
    assert denizen("memory", "forget", "tea", "--yes", *shared).out == "Forgotten: Ada likes tea\n"
    assert facts(denizen("memory", "export", *shared).out) == []


def facts(out: str) -> list[str]:
    return [json.loads(line)["text"] for line in out.splitlines()]


@pytest.mark.usefixtures("kept")
def test_list_is_a_table_with_the_latest_first(denizen: Run) -> None:
    titles, *rows = denizen("memory", "list").out.splitlines()
    assert titles.split() == ["id", "when", "weight", "about", "fact"]
    assert [row.split()[0] for row in rows] == ["u1", "p2", "p1"]
    assert rows[-1].split(maxsplit=2)[2] == "   0.8  architecture  The auth module keeps JWTs in cookies".strip()


@pytest.mark.usefixtures("kept")
def test_json_has_every_detail(denizen: Run) -> None:
    fact = json.loads(denizen("memory", "list", "--json").out.splitlines()[-1])
    assert fact["at"].startswith("20")
    assert fact["source"].endswith(":work")
    assert (fact["id"], fact["context"], fact["weight"]) == ("p1", "architecture", 0.8)


@pytest.mark.usefixtures("kept")
def test_the_project_or_the_user_alone(denizen: Run) -> None:
    assert facts(denizen("memory", "list", "--user", "--json").out) == ["Ada likes green tea"]
    assert len(facts(denizen("memory", "list", "--project", "--json").out)) == 2
    assert facts(denizen("memory", "export", "--user").out) == ["Ada likes green tea"]
    assert denizen("memory", "search", "tea", "--project").out == ""


@pytest.mark.usefixtures("kept")
def test_search_finds_what_fits_best(denizen: Run) -> None:
    assert facts(denizen("memory", "search", "auth", "tokens", "--json").out) == [
        "The auth module keeps JWTs in cookies"
    ]
    assert facts(denizen("memory", "search", "tests", "tox", "--limit", "1", "--json").out) == ["Tests run with tox"]
    ran = denizen("memory", "search", "coffee")
    assert (ran.status, ran.out, ran.err) == (0, "", "Nothing is remembered that matches.\n")


@pytest.mark.usefixtures("kept")
def test_forget_by_id_or_words(denizen: Run) -> None:
    ran = denizen("memory", "forget", "p2", "tea", "--yes")
    assert (ran.status, ran.out) == (0, "Forgotten: Tests run with tox\nForgotten: Ada likes green tea\n")
    assert facts(denizen("memory", "export").out) == ["The auth module keeps JWTs in cookies"]


@pytest.mark.usefixtures("kept")
def test_forget_does_nothing_where_one_is_not_known_or_nobody_can_be_asked(denizen: Run) -> None:
    unknown = denizen("memory", "forget", "p2", "coffee", "--yes")
    assert (unknown.status, "Nothing is remembered that matches 'coffee'" in unknown.err) == (1, True)
    unasked = denizen("memory", "forget", "p2")
    assert (unasked.status, "add --yes" in unasked.err) == (2, True)
    assert len(facts(denizen("memory", "export").out)) == 3


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 130)])
def test_forget_asks_on_a_terminal(denizen: Run, on_terminal: OnTerminal, answer: str, status: int) -> None:
    screen = on_terminal("memory", "forget", "p2")
    assert "Tests run with tox" in screen.expect("Delete this permanently? [y/N]: ")
    screen.enter(answer)
    assert screen.end() == status
    assert ("Tests run with tox" in facts(denizen("memory", "export").out)) == (answer == "n")


@pytest.mark.usefixtures("kept")
def test_export_into_a_file_is_for_the_user_alone(denizen: Run, tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    ran = denizen("memory", "export", "--output", str(file))
    assert (ran.status, ran.out, ran.err) == (0, "", f"3 facts written to {file}.\n")
    assert len(facts(file.read_text())) == 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("kept")
def test_import_into_what_machines_share_keeps_every_detail_but_the_notes(
    denizen: Run, tmp_path: Path, postgres_url: str
) -> None:
    note = b'{"text":"Buy milk","source":"MEMORY.md"}\n'
    file, shared = tmp_path / "facts.jsonl", ("--database", postgres_url)
    file.write_text(denizen("memory", "export").out)
    file.write_bytes(file.read_bytes() + note)
    ran = denizen("memory", "import", str(file), *shared)
    assert (ran.status, ran.err) == (0, "3 of 4 facts are new.\n")
    brought, had = (denizen("memory", "export", *where).out for where in (shared, ()))
    assert re.sub('"id":"[pu][0-9]"', "", brought) == re.sub('"id":"[pu][0-9]"', "", had)
    assert denizen("memory", "import", str(file), *shared).err == "0 of 4 facts are new.\n"


def test_import_of_something_else_is_refused(denizen: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Buy milk\n")
    ran = denizen("memory", "import", str(file))
    assert ran.status == 2
    assert "notes.txt isn't a file that `denizen memory export` wrote" in ran.err


def test_nothing_is_remembered_at_first(denizen: Run, home: Path) -> None:
    ran = denizen("memory", "list")
    assert (ran.status, ran.out, ran.err) == (0, "", "Nothing is remembered yet.\n")
    assert not (home / "memory.db").exists()


def test_a_damaged_file_is_an_error_that_says_what_to_do(denizen: Run, home: Path) -> None:
    (home / "memory.db").write_bytes(b"garbage" * 1000)
    ran = denizen("memory", "list")
    assert ran.status == 1
    assert "memory.db is damaged" in ran.err
    assert "Move it away to start over" in ran.err


def test_a_fact_cannot_paint_the_terminal(denizen: Run, home: Path) -> None:
    (home / "workspace").mkdir()
    (home / "workspace" / "MEMORY.md").write_text("- \x1b[2Jtea\n")
    assert denizen("memory", "list").out.splitlines()[1].split() == ["note", "tea"]


def test_what_is_untrusted_is_listed_as_such(denizen: Run, home: Path) -> None:
    (home / "workspace").mkdir()
    (home / "workspace" / "MEMORY.md").write_text("- 2026-01-01: [untrusted] The office moved\n")
    assert "[untrusted] The office moved" in denizen("memory", "list").out
    assert json.loads(denizen("memory", "list", "--json").out)["untrusted"]
