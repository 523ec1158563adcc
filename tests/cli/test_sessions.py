"""`denizen sessions`: list, show, fork, rm, export."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call

from denizen.entries import UserEntry
from denizen.messages import Text, UserMessage
from denizen.ports import SessionStore
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.spend_file import SpendFile
from denizen.sessions.spend_table import SpendTable
from denizen.sessions.tables import SharedTables
from denizen.testing import FakeClock


@pytest.fixture
def talked(denizen: Run, model: Model, repo: Path) -> str:
    """The session `talk`, with a long result in it."""
    (repo / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 100)))
    model.plays(call("read", "Let me look.", path="long.txt"), "It has 99 lines.")
    assert denizen("ask", "--session", "talk", "How long is long.txt?").status == 0
    return "talk"


def test_list_is_a_table_of_what_matters(denizen: Run, talked: str, repo: Path) -> None:
    titles, row = denizen("sessions", "list").out.splitlines()
    assert titles.split() == ["name", "when", "model", "tokens", "cost", "ended", "folder", "title"]
    assert row.split()[0] == "talk"
    assert row.split()[2:4] == ["test:scripted", "150"]
    assert row.endswith(f"  answered  {repo}  How long is long.txt?")


def test_search_finds_a_session_until_it_is_removed(denizen: Run, talked: str, home: Path) -> None:
    titles, row = denizen("sessions", "search", "99", "LINES").out.splitlines()
    assert titles.split() == ["name", "when", "hits", "text"]
    assert row.split()[0] == talked
    assert row.endswith("  1  It has 99 lines.")
    found = json.loads(denizen("sessions", "search", "--json", "long").out)
    assert (found["title"], found["role"], found["hits"]) == ("How long is long.txt?", "user", 1)
    assert denizen("sessions", "rm", "--yes", talked).status == 0
    assert b"99 lines" not in (home / "search.db").read_bytes()
    ran = denizen("sessions", "search", "lines")
    assert (ran.out, ran.err, ran.status) == ("", "No session has these words.\n", 0)


def test_list_has_folders_as_a_person_writes_them(denizen: Run, model: Model, environ: dict[str, str]) -> None:
    folder = Path(environ["HOME"]) / "src" / "shop"
    folder.mkdir(parents=True)
    model.plays("Hello.")
    denizen("ask", "--session", "s", "--workspace", str(folder), "hi")
    assert denizen("sessions", "list").out.splitlines()[1].endswith("  ~/src/shop  hi")


def test_list_on_a_narrow_terminal_has_the_end_of_a_folder_and_the_title(
    denizen: Run, model: Model, on_terminal: OnTerminal, environ: dict[str, str]
) -> None:
    folder = Path(environ["HOME"]) / "src" / "a-long-name-of-a-customer" / "shop"
    folder.mkdir(parents=True)
    model.plays("Hello.")
    denizen("ask", "--session", "s", "--workspace", str(folder), "What is sold here, and to whom?")
    screen = on_terminal("sessions", "list")
    assert screen.end() == 0
    titles, row = screen.text.splitlines()
    assert titles.split() == ["name", "when", "cost", "ended", "folder", "title"]
    assert row.endswith("…/shop  What is sold here, and to whom?")


def test_list_as_json_has_every_detail(denizen: Run, talked: str, repo: Path) -> None:
    info = json.loads(denizen("sessions", "list", "--json").out)
    assert info["key"].endswith(":talk")
    assert (info["workspace"], info["stop_reason"], info["tokens"]) == (str(repo), "answered", 150)


def test_list_has_what_all_turns_of_a_session_have_cost(denizen: Run, model: Model, environ: dict[str, str]) -> None:
    model.plays("Well.")
    denizen("ask", "--session", "dear", "hi")
    key = json.loads(denizen("sessions", "list", "--json").out)["key"]
    SpendFile(Path(environ["DENIZEN_HOME"], "spend.db")).add({key: 0.25, "day 2026-11-21": 0.25})
    SpendFile(Path(environ["DENIZEN_HOME"], "spend.db")).add({key: 0.25})
    assert json.loads(denizen("sessions", "list", "--json").out)["cost_usd"] == 0.5
    assert "$0.5000" in denizen("sessions", "list").out


def test_list_has_the_latest_first(denizen: Run, model: Model, talked: str) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "later", "hi")
    assert [line.split()[0] for line in denizen("sessions", "list").out.splitlines()] == ["name", "later", "talk"]


def test_list_without_sessions(denizen: Run) -> None:
    ran = denizen("sessions", "list")
    assert (ran.status, ran.out) == (0, "")
    assert "no sessions yet" in ran.err


def test_a_title_cannot_paint_the_terminal(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "s", "hi \x1b[2J[bold]there[/bold]")
    out = denizen("sessions", "list").out
    assert "\x1b" not in out
    assert "[bold]there[/bold]" in out


def test_show_is_for_reading_and_shortens_long_results(denizen: Run, talked: str) -> None:
    out = denizen("sessions", "show", talked).out
    for part in ("# talk\n", "## User\n\nHow long is long.txt?", "Let me look.", "path: long.txt", "It has 99 lines."):
        assert part in out
    assert "line 3" in out
    assert "line 80" not in out
    assert "--all shows them" in out


def test_show_all_shows_all(denizen: Run, talked: str) -> None:
    out = denizen("sessions", "show", talked, "--all").out
    assert "line 99" in out


def test_show_takes_the_whole_key_too(denizen: Run, talked: str) -> None:
    key = json.loads(denizen("sessions", "list", "--json").out)["key"]
    assert denizen("sessions", "show", key).out == denizen("sessions", "show", talked).out


@pytest.mark.parametrize("command", [("show",), ("export",), ("fork",), ("rm", "--yes")], ids=lambda c: c[0])
def test_a_session_that_there_is_not(denizen: Run, command: tuple[str, ...]) -> None:
    ran = denizen("sessions", *command, "nobody")
    assert ran.status == 1
    assert "There is no session nobody." in ran.err


def test_a_typo_in_a_session_name_is_answered_with_the_nearest(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "sess1", "hi")
    assert denizen("sessions", "show", "ses1").err == "error: There is no session ses1. Did you mean sess1?\n"


def test_a_fork_goes_its_own_way(denizen: Run, model: Model, talked: str) -> None:
    assert denizen("sessions", "fork", talked, "other").out == "other\n"
    model.plays("Yes.")
    denizen("ask", "--session", "other", "Are you sure?")
    assert "How long is long.txt?" in json.dumps(model.requests[-1]["messages"])
    assert "Are you sure?" not in denizen("sessions", "export", talked).out


def test_a_fork_may_begin_earlier(denizen: Run, talked: str) -> None:
    entries = [json.loads(line) for line in denizen("sessions", "export", talked).out.splitlines()]
    user = next(entry for entry in entries if entry["type"] == "user")
    name = denizen("sessions", "fork", talked, "--at", user["id"]).out.strip()
    assert '"type":"assistant"' not in denizen("sessions", "export", name).out


def test_a_fork_never_overwrites(denizen: Run, talked: str) -> None:
    assert denizen("sessions", "fork", talked, talked).status == 1


def test_rm_deletes_with_yes(denizen: Run, talked: str) -> None:
    assert denizen("sessions", "rm", talked, "--yes").status == 0
    assert denizen("sessions", "show", talked).status == 1


def test_rm_deletes_nothing_where_nobody_can_be_asked(denizen: Run, talked: str) -> None:
    ran = denizen("sessions", "rm", talked)
    assert ran.status == 2
    assert "--yes" in ran.err
    assert denizen("sessions", "show", talked).status == 0


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 130)])
def test_rm_asks_on_a_terminal(denizen: Run, on_terminal: OnTerminal, talked: str, answer: str, status: int) -> None:
    screen = on_terminal("sessions", "rm", talked)
    screen.expect("Delete talk permanently? [y/N]: ")
    screen.enter(answer)
    assert screen.end() == status
    assert (denizen("sessions", "show", talked).status == 0) == (answer == "n")


def test_export_is_the_entries_as_json_lines(denizen: Run, talked: str) -> None:
    entries = [json.loads(line) for line in denizen("sessions", "export", talked).out.splitlines()]
    types = [entry["type"] for entry in entries]
    assert (types[0], types[-1]) == ("session", "end")
    assert [types.count(kind) for kind in ("user", "assistant", "tool")] == [1, 2, 1]


def test_export_as_markdown_to_a_file_for_the_user_alone(denizen: Run, talked: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.md"
    ran = denizen("sessions", "export", talked, "--format", "markdown", "--output", str(file))
    assert (ran.status, ran.out) == (0, "")
    assert "line 99" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_fences_hold_whatever_is_in_them(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "fence.md").write_text("````\ncode\n````\n")
    model.plays(call("read", path="fence.md"), "Fenced.")
    denizen("ask", "--session", "s", "hi")
    assert "\n`````\n" in denizen("sessions", "show", "s").out


def test_export_writes_to_a_pipe_as_to_any_file(denizen: Run, talked: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    ran = denizen("sessions", "export", talked, "--format", "markdown", "--output", str(pipe))
    assert ran.status == 0
    assert os.read(reader, 1000).startswith(b"# talk")
    os.close(reader)
    assert pipe.is_fifo()


def test_a_long_name_leaves_room_for_the_rest_on_a_terminal(
    denizen: Run, model: Model, on_terminal: OnTerminal
) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "long" * 50, "hi there")
    screen = on_terminal("sessions", "list")
    shown = screen.expect("hi there")
    assert "longlong" in shown
    assert "…" in shown
    assert "long" * 50 in denizen("sessions", "list").out


def names(listed: str) -> list[str]:
    return [json.loads(line)["key"].rpartition(":")[2] for line in listed.splitlines()]


async def save(store: SessionStore, key: str, text: str) -> None:
    session = await store.open(key)
    await session.append(UserEntry(message=UserMessage([Text(text)])))
    await session.close()


async def test_list_shows_pages(denizen: Run, environ: dict[str, str]) -> None:
    store = JsonlStore(Path(environ["DENIZEN_HOME"], "sessions"), clock=SystemClock())
    for name in "abcde":
        await save(store, name, f"This is {name}")
    assert names(denizen("sessions", "list", "--json").out) == [*"edcba"]
    first = denizen("sessions", "list", "--limit", "2")
    assert [line.split()[0] for line in first.out.splitlines()] == ["name", "e", "d"]
    command = first.err.strip().partition("denizen ")[2].split()
    second = denizen(*command)
    assert [line.split()[0] for line in second.out.splitlines()] == ["name", "c", "b"]
    assert names(denizen("sessions", "list", "--json", "--before", command[-1]).out) == [*"cba"]
    assert denizen("sessions", "list", "--before", "2020-01-01").out == ""
    assert names(denizen("sessions", "list", "--json", "--limit", "9" * 20).out) == [*"edcba"]
    ran = denizen("sessions", "list", "--before", "yesterday")
    assert (ran.status, "'yesterday' isn't a date" in ran.err) == (2, True)


async def test_prune_deletes_what_the_settings_no_longer_keep(denizen: Run, environ: dict[str, str]) -> None:
    home = Path(environ["DENIZEN_HOME"])
    for name, year in (("old", 2020), ("new", 2100)):
        clock = FakeClock(datetime(year, 1, 1, tzinfo=UTC))
        await save(JsonlStore(home / "sessions", clock=clock), name, "hi")
    assert "Deleted 0 sessions and 0 sums in the home." in denizen("sessions", "prune").err
    (home / "denizen.toml").write_text("[retention]\nsession_days = 90\n")
    assert "Deleted 1 session and" in denizen("sessions", "prune").err
    assert names(denizen("sessions", "list", "--json").out) == ["new"]


async def test_list_on_a_terminal_shows_the_last_fifty(on_terminal: OnTerminal, environ: dict[str, str]) -> None:
    store = JsonlStore(Path(environ["DENIZEN_HOME"], "sessions"), clock=SystemClock())
    for number in range(51):
        await save(store, f"s{number}", "hi")
    screen = on_terminal("sessions", "list")
    assert screen.end() == 0
    assert "s50 " in screen.text
    assert "s0 " not in screen.text
    assert "There may be more: denizen sessions list --limit 50 --before" in screen.text


async def test_sessions_of_the_database_are_listed_shown_forked_exported_and_removed(
    denizen: Run, model: Model, shared: str
) -> None:
    model.plays("Hello.")
    assert denizen("ask", "--session", "here", "hi").status == 0
    tables = SharedTables(shared)
    store = PostgresStore(tables, clock=SystemClock())
    key = "agent:main:channel:http:account:default:peer:direct:ann"
    await save(store, key, "Who is the cat?")
    SpendTable(tables).add({key: 0.25})
    assert names(denizen("sessions", "list", "--json").out) == ["ann", "here"]
    assert "$0.2500" in denizen("sessions", "list", "--limit", "1").out
    assert "Who is the cat?" in denizen("sessions", "show", key).out
    assert "Hello." in denizen("sessions", "show", "here").out
    assert '"text":"Who is the cat?"' in denizen("sessions", "export", key).out
    assert denizen("sessions", "fork", key, f"{key}-2").status == 0
    assert denizen("sessions", "rm", "--yes", key).status == 0
    assert names(denizen("sessions", "list", "--json").out) == ["ann-2", "here"]
    ran = denizen("sessions", "show", key)
    assert (ran.status, f"There is no session {key}" in ran.err) == (1, True)
    tables.close()
