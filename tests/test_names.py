"""The tool that is meant by what others call it."""

import pytest

from denizen.names import meant_by

EVERY = {"ls", "read", "view", "grep", "find", "edit", "bash", "task", "git", "done"}


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("cat", "read"),
        ("ReadFile", "read"),
        ("read-many-files", "read"),
        ("list_dir", "ls"),
        ("search", "grep"),
        ("Glob", "find"),
        ("str_replace_based_edit_tool", "edit"),
        ("execute", "bash"),
        ("shell", "bash"),
        ("TodoWrite", "task"),
        ("git_diff", "git"),
        ("finish", "done"),
        ("weather", ""),
        ("", ""),
    ],
)
def test_the_tool_that_does_the_job_is_meant(name: str, tool: str) -> None:
    assert meant_by(name, EVERY) == tool


@pytest.mark.parametrize("name", ["read", "open", "ls", "tree"])
def test_where_a_tool_is_missing_the_one_that_does_its_job_is_meant(name: str) -> None:
    assert meant_by(name, EVERY - {"read", "ls"}) == "view"


def test_a_tool_that_is_not_there_is_not_meant() -> None:
    assert meant_by("cat", {"bash"}) == ""
