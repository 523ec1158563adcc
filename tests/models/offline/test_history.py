"""The offline model lists what changed, and what is not committed yet."""

import shutil
from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask


@pytest.mark.parametrize(
    "question", ["what changed recently?", "What's new?", "the git log", "changes since last week"]
)
async def test_lists_the_latest_commits_and_what_is_uncommitted(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "Makefile").write_text("ship:\n")
    reply = (await ask(question)).reply
    assert reply.startswith("The latest commits, newest first:")
    assert reply.index("Ada: Explain baskets") < reply.index("Ada: Open the shop")
    assert " M Makefile" in reply


async def test_lists_the_commits_of_one_file(ask: Ask, workshop: Path) -> None:
    (workshop / "README.md").write_text("A shop.\n")
    reply = (await ask("what changed in Makefile?")).reply
    assert reply.startswith("The latest commits of `Makefile`")
    assert "baskets" not in reply
    assert reply.endswith("Nothing is uncommitted (branch main).")
    assert "baskets" in (await ask("show the last 1 commits")).reply


async def test_lists_what_is_not_committed(ask: Ask, workshop: Path) -> None:
    assert (await ask("git status")).reply == "Nothing is uncommitted (branch main)."
    (workshop / "Makefile").write_text("ship:\n")
    assert " M Makefile" in (await ask("are there uncommitted changes?")).reply


async def test_says_that_there_is_no_repository(ask: Ask, workshop: Path) -> None:
    shutil.rmtree(workshop / ".git")
    for question in ("what changed recently?", "git status"):
        assert (await ask(question)).reply == (
            "I can only tell that from git, and this folder isn't a repository's root."
        )
