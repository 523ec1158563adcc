"""Finding our tool for the name that others use."""

import pytest

from denizen.text.tool_aliases import resolve_alias

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
def test_alias_resolves_to_the_tool_that_does_the_job(name: str, tool: str) -> None:
    assert resolve_alias(name, EVERY) == tool


@pytest.mark.parametrize("name", ["read", "open", "ls", "tree"])
def test_alias_resolves_to_the_next_tool_where_one_is_missing(name: str) -> None:
    assert resolve_alias(name, EVERY - {"read", "ls"}) == "view"


def test_alias_of_a_missing_tool_resolves_to_nothing() -> None:
    assert resolve_alias("cat", {"bash"}) == ""
