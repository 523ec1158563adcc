"""One commit of what the agent changed: its message, and what is in it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from denizen.errors import DenizenError
from denizen.worlds.code.commit import commit, in_other_repositories, message_of, repository_of, without_message

ENVIRON = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}
ODD = ["-n", ":(top)x", 'a b\n"c"', "*.py", "ü"]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, env=ENVIRON, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def repo(empty: Path) -> Path:
    for name in ("kept.txt", "old.txt"):
        (empty / name).write_text(f"{name}\n" * 10)
    git(empty, "add", "--all")
    git(empty, "commit", "--quiet", "--message", "first")
    return empty


def committed(folder: Path) -> Sequence[str]:
    return git(folder, "show", "-z", "--name-status", "--no-renames", "--format=").split("\0")[:-1]


def test_the_message_is_what_the_answer_says() -> None:
    reply = "Done.\n\n## Commit\nAdd a parser\n\nThe old one was slow.\n\n## Steps\n1. …"
    assert message_of("task", reply) == "Add a parser\n\nThe old one was slow.\n"


def test_a_fence_around_it_is_taken_off() -> None:
    assert message_of("task", "## Commit\n```text\nAdd a parser\n```") == "Add a parser\n"


def test_without_one_it_is_the_task_and_the_answer() -> None:
    assert message_of("Add a parser\nplease", "I added it.") == "Add a parser\n\nI added it.\n"


def test_a_long_subject_is_cut_and_a_long_body_wrapped() -> None:
    subject, _, body = message_of("word " * 40, "thought " * 40).partition("\n\n")
    assert len(subject) <= 72
    assert subject.endswith("…")
    assert max(map(len, body.splitlines())) <= 72


def test_of_two_sections_the_last_is_the_message() -> None:
    reply = "## Commit\nis what I looked at.\n\n## Commit\nAdd a parser"
    assert (message_of("task", reply), without_message(reply)) == (
        "Add a parser\n",
        "## Commit\nis what I looked at.",
    )


def test_the_person_reads_the_answer_without_it() -> None:
    reply = "Done.\n\n## Commit\nAdd a parser\n\nIt was slow.\n\n## Steps\n1. …"
    assert without_message(reply) == "Done.\n\n## Steps\n1. …"


def test_an_answer_that_is_nothing_else_is_read_as_it_is_meant() -> None:
    assert without_message("## Commit\n```\nAdd a parser\n```\n") == "Add a parser"


@pytest.mark.parametrize(
    ("reply", "message", "shown"),
    [
        (
            "Did it.\n\n## Commit\n```\nAdd x\n\nBecause y.\n```\n\nNote: test_z still fails; look at it.",
            "Add x\n\nBecause y.\n",
            "Did it.\n\nNote: test_z still fails; look at it.",
        ),
        (
            "Did it.\n\n## Commit\n\n```text\nAdd x\n\n## Why\nBecause y.\n```\n## Steps\n1. …",
            "Add x\n\n## Why\nBecause y.\n",
            "Did it.\n\n## Steps\n1. …",
        ),
        (
            "It asks for this:\n````\n```\n## Commit\nSubject\n````\nI added that.\n\n## Notes\nNone.",
            "Task\n\nIt asks for this:\n````\n```\n## Commit\nSubject\n````\nI added that.\n\n## Notes\nNone.\n",
            "It asks for this:\n````\n```\n## Commit\nSubject\n````\nI added that.\n\n## Notes\nNone.",
        ),
        ("Did it.\n\n## Commit\n~~~\nAdd `x`\n", "Add `x`\n", "Did it."),
        (
            "Did it.\n\n## Commit\nAdd x\n\n```\n## how\n```\nBecause y.\n\n## Notes\nNone.",
            "Add x\n\n```\n## how\n```\nBecause y.\n",
            "Did it.\n\n## Notes\nNone.",
        ),
    ],
    ids=["a note after the fence", "a heading in the fence", "a quotation", "an open fence", "a fence in the body"],
)
def test_only_what_is_the_message_is_taken_out_of_the_answer(reply: str, message: str, shown: str) -> None:
    assert (message_of("Task", reply), without_message(reply)) == (message, shown)


async def test_renamed_and_deleted_files_are_in_it(repo: Path) -> None:
    (repo / "old.txt").rename(repo / "new.txt")
    await commit(repo, ["new.txt", "old.txt"], "Rename it", ENVIRON, repository=repo)
    assert committed(repo) == ["A", "new.txt", "D", "old.txt"]
    assert git(repo, "status", "--porcelain") == ""


async def test_odd_names_are_names(empty: Path) -> None:
    for name in ODD:
        (empty / name).write_text("x")
    (empty / "a.py").write_text("not in it")
    await commit(empty, ODD, "The first, and odd", ENVIRON, repository=empty)
    assert sorted(committed(empty)[1::2]) == sorted(ODD)


async def test_what_the_user_staged_stays_staged_and_out_of_it(repo: Path) -> None:
    (repo / "mine.txt").write_text("mine")
    (repo / "kept.txt").write_text("mine")
    git(repo, "add", "--all")
    (repo / "made.txt").write_text("made")
    await commit(repo, ["made.txt"], "Make it", ENVIRON, repository=repo)
    assert committed(repo) == ["A", "made.txt"]
    assert git(repo, "status", "--porcelain").splitlines() == ["M  kept.txt", "A  mine.txt"]


async def test_a_deleted_file_that_git_never_knew_is_left_out(repo: Path) -> None:
    (repo / "made.txt").write_text("made")
    await commit(repo, ["made.txt", "scratch.txt"], "Make it", ENVIRON, repository=repo)
    assert committed(repo) == ["A", "made.txt"]
    with pytest.raises(DenizenError, match="nothing to commit"):
        await commit(repo, ["scratch.txt"], "Tidy up", ENVIRON, repository=repo)


def test_paths_in_repositories_within_are_found(repo: Path) -> None:
    (repo / "lib" / "sub" / ".git").mkdir(parents=True)
    (repo / "lib" / "own").mkdir()
    assert in_other_repositories(repo, ["a.txt", "lib/own/b.txt", "lib/sub/c.txt"]) == ["lib/sub/c.txt"]


async def test_a_detached_head_gets_its_commit(repo: Path) -> None:
    git(repo, "checkout", "--quiet", "--detach")
    (repo / "made.txt").write_text("made")
    made = await commit(repo, ["made.txt"], "Make it", ENVIRON, repository=repo)
    assert git(repo, "rev-parse", "--short", "HEAD").strip() == made


async def test_a_hook_that_refuses_is_reported_and_the_changes_stay(repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho tabs, please\nexit 1\n")
    hook.chmod(0o755)
    (repo / "made.txt").write_text("made")
    with pytest.raises(DenizenError, match=r"tabs, please.*uncommitted"):
        await commit(repo, ["made.txt"], "Make it", ENVIRON, repository=repo)
    assert (repo / "made.txt").read_text() == "made"
    assert git(repo, "log", "--format=%s") == "first\n"


async def test_without_git_it_is_said(repo: Path, tmp_path: Path) -> None:
    (repo / "made.txt").write_text("made")
    with pytest.raises(DenizenError, match="git"):
        await commit(repo, ["made.txt"], "Make it", {"PATH": str(tmp_path)}, repository=repo)


def evil_hook(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "pre-commit").write_text("#!/bin/sh\ntouch ran\n")
    (folder / "pre-commit").chmod(0o755)


async def test_a_repository_that_the_task_made_is_not_committed_to(repo: Path) -> None:
    project = repo / "part"
    project.mkdir()
    assert repository_of(project) == repo
    git(project, "init", "--quiet", "--template=")
    evil_hook(project / ".git" / "hooks")
    (project / "made.txt").write_text("made")
    with pytest.raises(DenizenError, match="has left the repository"):
        await commit(project, ["made.txt"], "Make it", ENVIRON, repository=repo)
    assert not (project / "ran").exists()


@pytest.mark.parametrize(("path", "folder"), [("hooks", "hooks"), (".husky/_", ".husky")])
async def test_hooks_that_the_task_changed_are_not_run(path: str, folder: str, repo: Path) -> None:
    git(repo, "config", "core.hooksPath", path)
    evil_hook(repo / path)
    (repo / folder / "pre-push").write_text("changed")
    with pytest.raises(DenizenError, match=rf"The task changed {folder}/pre-push, which git runs on commit"):
        await commit(repo, [f"{folder}/pre-push"], "Change it", ENVIRON, repository=repo)
    assert not (repo / "ran").exists()
    (repo / "made.txt").write_text("made")
    await commit(repo, ["made.txt"], "Make it", ENVIRON, repository=repo)
    assert (repo / "ran").exists()
