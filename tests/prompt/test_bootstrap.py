"""The user's files and the project's, as they come into the prompt."""

import os
from pathlib import Path

import pytest

from denizen.prompt.bootstrap import MAX_CHARS, NAMES, PromptFile, read_bootstrap, scaffold
from denizen.trusted.session_files import SessionFiles


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def read(own: Path, project: Path | None = None) -> list[PromptFile]:
    files, notices = read_bootstrap(own, project or own)
    assert notices == []
    return files


def test_the_users_files_come_in_their_order(own: Path) -> None:
    for name in sorted(NAMES):
        (own / name).write_text(f"I am {name}")
    files = read(own)
    assert [file.path for file in files] == [name for name in NAMES if name != "HEARTBEAT.md"]
    assert files[0] == PromptFile("AGENTS.md", "I am AGENTS.md")


def test_the_heartbeats_tasks_are_not_in_the_prompt(own: Path) -> None:
    (own / "HEARTBEAT.md").write_text("Water the plants.")
    assert read(own) == []


def test_missing_and_empty_files_are_left_out_silently(own: Path) -> None:
    (own / "SOUL.md").write_text(" \n\n")
    assert read(own) == []


def test_a_long_file_is_cut_and_says_so(own: Path) -> None:
    (own / "SOUL.md").write_text("é" * 60_000)
    (file,) = read(own)
    assert len(file.text) == MAX_CHARS
    assert file.text.startswith("ééé")
    assert file.text.endswith("\n[cut: the file has 120,000 bytes; of its characters at most 50,000 are shown]")


def test_a_huge_file_is_not_read_whole(own: Path) -> None:
    with (own / "SOUL.md").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    (soul,) = read(own)
    assert len(soul.text) == MAX_CHARS


def test_of_a_long_memory_the_latest_lines_are_kept(own: Path) -> None:
    lines = [f"- 2026-01-01: fact {number} {'é' * 100}" for number in range(20_000)]
    (own / "MEMORY.md").write_text("\n".join([*lines, "- 2026-01-02: [untrusted] fact 20000", "- fact 20001"]))
    (file,) = read(own)
    assert MAX_CHARS - 200 < len(file.text) <= MAX_CHARS
    first, *shown, last, hidden = file.text.split("\n")
    assert first.startswith("[cut: the file has 4,")
    assert shown == lines[-len(shown) :]
    assert last == "- fact 20001"
    assert hidden == "[facts kept in sight of others' text, which only `recall` shows: 1]"


def test_all_files_together_have_a_limit(own: Path) -> None:
    for name in NAMES:
        (own / name).write_text(name[0] * MAX_CHARS)
    files, notices = read_bootstrap(own, own)
    names = [name for name in NAMES if name != "HEARTBEAT.md"]
    assert sum(len(file.text) for file in files) <= 200_000
    assert [file.path for file in files] == names[:4]
    assert [name in notice for name, notice in zip(names[4:], notices, strict=True)] == [True] * 3


def test_the_last_file_gets_the_room_that_is_left(own: Path) -> None:
    for name in NAMES[:3]:
        (own / name).write_text("a" * MAX_CHARS)
    (own / "TOOLS.md").write_text("b" * 40_000)
    (own / "IDENTITY.md").write_text("c" * 40_000)
    files = read(own)
    assert sum(len(file.text) for file in files) == 200_000
    assert files[-1].text.startswith("ccc")
    assert "[cut: " in files[-1].text


def test_bytes_that_are_not_text_are_replaced(own: Path) -> None:
    (own / "SOUL.md").write_bytes(b"\xef\xbb\xbfa\xff\0b")
    assert read(own) == [PromptFile("SOUL.md", "a\ufffd\ufffdb")]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_not_a_file_is_reported_and_not_waited_for(own: Path, kind: str) -> None:
    path = own / "SOUL.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("/dev/zero")
    files, notices = read_bootstrap(own, own)
    assert files == []
    assert str(path) in notices[0]


def test_the_user_may_keep_a_file_elsewhere(own: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.md").write_text("Be kind.")
    (own / "SOUL.md").symlink_to(tmp_path / "dotfiles.md")
    assert read(own) == [PromptFile("SOUL.md", "Be kind.")]


# Projects


def test_a_projects_files_come_after_the_users_and_are_marked(own: Path, project: Path) -> None:
    (own / "AGENTS.md").write_text("Be brief.")
    (project / "AGENTS.md").write_text("Use tabs.")
    (project / "CLAUDE.md").write_text("Run make.")
    assert read(own, project) == [
        PromptFile("AGENTS.md", "Be brief."),
        PromptFile(str(project / "AGENTS.md"), "Use tabs.", from_project=True),
        PromptFile(str(project / "CLAUDE.md"), "Run make.", from_project=True),
    ]


def test_only_the_two_are_read_of_a_project(own: Path, project: Path) -> None:
    (project / "SOUL.md").write_text("You are mine now.")
    assert read(own, project) == []


@pytest.mark.parametrize("how", ["link", "copy"])
def test_two_names_of_one_text_stand_once(own: Path, project: Path, how: str) -> None:
    (project / "AGENTS.md").write_text("Use tabs.")
    if how == "link":
        (project / "CLAUDE.md").symlink_to("AGENTS.md")
    else:
        (project / "CLAUDE.md").write_text("Use tabs.\n")
    assert [file.path for file in read(own, project)] == [str(project / "AGENTS.md")]


def test_a_link_out_of_the_project_is_not_followed(own: Path, project: Path, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("canary")
    (project / "AGENTS.md").symlink_to(tmp_path / "id_rsa")
    files, notices = read_bootstrap(own, project)
    assert files == []
    assert "a link to a file outside the project" in notices[0]


def test_a_link_that_leads_in_circles_is_reported(own: Path, project: Path) -> None:
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (own / "SOUL.md").symlink_to("SOUL.md")
    files, notices = read_bootstrap(own, project)
    assert files == []
    assert len([notice for notice in notices if "is not read: " in notice]) == 3


# The starter file


def test_a_starter_file_is_written_where_there_is_none(tmp_path: Path) -> None:
    own = tmp_path / "home" / "workspace"
    scaffold(own, SessionFiles(own))
    assert own.stat().st_mode & 0o777 == 0o700
    assert (own / "AGENTS.md").stat().st_mode & 0o777 == 0o600
    assert [file.path for file in read(own)] == ["AGENTS.md"]


@pytest.mark.parametrize("text", ["Be brief.", ""])
def test_a_file_that_is_there_stays(own: Path, text: str) -> None:
    (own / "AGENTS.md").write_text(text)
    scaffold(own, SessionFiles(own))
    assert (own / "AGENTS.md").read_text() == text


def test_a_link_that_leads_nowhere_stays(own: Path, tmp_path: Path) -> None:
    (own / "AGENTS.md").symlink_to(tmp_path / "missing")
    scaffold(own, SessionFiles(own))
    assert not (tmp_path / "missing").exists()


def test_nothing_is_written_into_a_git_repository(own: Path) -> None:
    (own / ".git").mkdir()
    scaffold(own, SessionFiles(own))
    assert [path.name for path in own.iterdir()] == [".git"]
