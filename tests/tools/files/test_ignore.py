"""What git ignores is what the tools leave out, to the last odd pattern."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from denizen.tools.files.walk import SkippedEntries, walk
from denizen.tools.files.workspace import Workspace

ODD = [
    "*[",
    "[]]",
    "[]-]",
    "[a-]",
    "[!]a]",
    "[[:alpha:]]",
    "[[:nonsense:]]",
    "\\a",
    "a\\",
    "a**b",
    "\\#c",
    "\\!x",
    "a\\ b",
]
PLAIN = ["*", "**", "*.py", "?", "a*", "*b", "[ab]", "[!a]", "[^b]*", "a?", "[a-c]*", "*.*", "{a,b}", "#c", "!x", "a "]

names = st.sampled_from(["a", "b", "ab", "a.py", "b.txt", "-", "]", "a b", "!x", "#c", "x!"])
parts = st.one_of(names, st.sampled_from(PLAIN + ODD))


@st.composite
def patterns(draw: st.DrawFn) -> str:
    path = "/".join(draw(st.lists(parts, min_size=1, max_size=3)))
    return draw(st.sampled_from(["", "!", "/", "!/"])) + path + draw(st.sampled_from(["", "/", " ", "\r", "  \\ "]))


def every_path(folder: str, above: str = "") -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.name != ".git":
            yield above + entry.name
            if entry.is_dir():
                yield from every_path(entry.path, f"{above}{entry.name}/")


def ours(root: Path, paths: Sequence[str]) -> set[str]:
    """The paths that are ignored, or below an ignored folder."""
    entries = walk(Workspace(root), ".", SkippedEntries(), threading.Event())
    return {*paths} - {"/".join(entry.names) for entry in entries}


def gits(root: Path, paths: Sequence[str]) -> set[str]:
    command = ["git", "check-ignore", "-z", "--stdin", "--no-index"]
    found = subprocess.run(command, cwd=root, input="\0".join(paths).encode(), capture_output=True, check=False).stdout
    return set(filter(None, found.decode().split("\0")))


@pytest.mark.needs("git")
@settings(max_examples=60)
@given(
    st.lists(patterns(), max_size=5),
    st.lists(patterns(), max_size=3),
    st.lists(patterns(), max_size=2),
    st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
)
@example(top=["*", "!*/", "!*.py"], nested=["/b"], exclude=[], paths={"a/b", "a/a.py", "b.txt", "a/ab/a.py"})
@example(top=["!b.txt"], nested=[], exclude=["*b*", "a/**"], paths={"a/b", "ab", "b.txt"})
@example(top=["a\\/a"], nested=[], exclude=[], paths={"a/a"})
@example(top=["*[/-/[a-]"], nested=[], exclude=[], paths={"-", "a/-"})
@example(top=["**/a", "b/**/a.py", "ab/**"], nested=[], exclude=[], paths={"b/a/a.py", "b/a.py", "ab/b", "x!/a"})
def test_the_same_is_ignored_as_by_git(top: list[str], nested: list[str], exclude: list[str], paths: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        for path in paths:
            if not any(parent.is_file() for parent in (root / path).parents) and not (root / path).exists():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).touch()
        (root / ".gitignore").write_bytes("\n".join(top).encode())
        (root / ".git/info/exclude").write_bytes("\n".join(exclude).encode())
        if (root / "a").is_dir():
            (root / "a/.gitignore").write_bytes(("\ufeff" + "\r\n".join(nested)).encode())
        every = list(every_path(folder))
        assert ours(root, every) == gits(root, every)


async def test_a_hostile_pattern_takes_no_longer_than_any_other(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*a" * 100 + "b\n" + "**/a*" * 50 + "\n" + "[" * 5000 + "\n")
    (workspace / ("a" * 250)).touch()
    assert ours(workspace, ["a" * 250]) == set()


def test_rules_that_cannot_be_read_are_no_rules(workspace: Path) -> None:
    (workspace / "a").mkdir()
    (workspace / "a/.gitignore").mkdir()
    (workspace / "rules").write_text("*\n")
    (workspace / ".gitignore").symlink_to("/etc/hostname")
    os.mkfifo(workspace / "pipe")
    assert ours(workspace, ["a", "rules", "pipe"]) == set()
