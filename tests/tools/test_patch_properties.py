"""No patch corrupts a file: what `git diff` and `difflib` write is applied to the byte, other things may be refused."""

import asyncio
import difflib
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext
from denizen.testing import FakeClock
from denizen.tools.patch import apply_patch

ODD = ["-- x", "++ y", "@@ z", "--- a/f", "+++ b/f", "```", "}", "-- ", "2.39.5", "*** End Patch", "\\ No newline"]
PLAIN = ["", " ", "a", "b", "  a", "\ta", "foo(bar)", "foo( bar )", "diff --git a/f b/f", "Index: f"]
HEADER = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)

lines = st.lists(st.sampled_from(PLAIN + ODD), max_size=25)
distinct_lines = st.lists(st.from_regex(r"[a-z]{1,3}\d{1,3}", fullmatch=True), unique=True, min_size=1, max_size=25)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text with any line ends, also none at its end."""
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]]))
    text = "".join(line + draw(st.sampled_from(ends)) for line in draw(lines))
    return text.removesuffix("\n").removesuffix("\r") if draw(st.booleans()) else text


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and what some edits made of it."""
    before = draw(texts())
    after = split(before)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(after)))
        after[at : at + draw(st.integers(0, 2))] = split(draw(texts()))[:3]
    return before, "".join(after)


@st.composite
def distinct_changes(draw: st.DrawFn) -> tuple[str, str]:
    """A text whose lines are all different, and what some edits made of it."""
    before = draw(distinct_lines)
    after = [*before]
    for number in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(after)))
        after[at : at + draw(st.integers(0, 2))] = [f"NEW {number}"] * draw(st.integers(0, 2))
    return "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)


def split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def git_diff(before: str, after: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a", before), ("b", after)):
            (Path(folder) / name).write_bytes(text.encode())
        command = ["git", "-c", "core.autocrlf=false", "diff", "--no-index", "--no-color", "a", "b"]
        diff = subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()
    return diff.replace("a/a", "a/f").replace("b/b", "b/f")


def difflib_diff(before: str, after: str) -> str:
    diff = difflib.unified_diff(split(before), split(after), "a/f", "b/f")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


def applied(patch: str, before: str) -> str:
    """What becomes of the file; a refusal must leave it as it was."""

    async def nobody(question: str) -> Answer:
        raise AssertionError(question)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        path.write_bytes(before.encode())
        turn = ToolContext("session", "call-1", Path(folder), FakeClock(), lambda line: None, nobody)
        try:
            asyncio.run(apply_patch.run({"patch": patch}, turn))
        except ToolRefused:
            assert path.read_bytes() == before.encode()
            assert [entry.name for entry in Path(folder).iterdir()] == ["f"]
            raise
        return path.read_bytes().decode()


@pytest.mark.needs("git")
@given(changes())
def test_what_git_diff_writes_is_applied_to_the_byte(change: tuple[str, str]) -> None:
    before, after = change
    assume(before != after)
    assert applied(git_diff(before, after), before) == after


@given(changes())
def test_what_difflib_writes_is_applied_to_the_byte(change: tuple[str, str]) -> None:
    before, after = change
    assume(before != after)
    assert applied(difflib_diff(before, after), before) == after


@given(distinct_changes(), st.lists(st.integers(0, 40), min_size=16, max_size=16))
def test_wrong_counts_and_numbers_do_no_harm(change: tuple[str, str], wrong: Sequence[int]) -> None:
    before, after = change
    assume(before != after and after)
    numbers = iter(wrong)
    diff = HEADER.sub(lambda _: "@@ -{},{} +{},{} @@".format(*islice(numbers, 4)), shown(change))
    assert applied(diff, before) == after


def shown(change: tuple[str, str]) -> str:
    """The diff with all lines as context, so that it also says where lines are only added."""
    before, after = (split(text) for text in change)
    return "".join(difflib.unified_diff(before, after, "a/f", "b/f", n=40))


@given(changes(), st.lists(st.integers(0, 30), min_size=40, max_size=40))
def test_a_misplaced_hunk_still_changes_just_the_lines_that_it_names(
    change: tuple[str, str], wrong: Sequence[int]
) -> None:
    before, after = change
    assume(before != after)
    numbers = iter(wrong)
    diff = HEADER.sub(lambda _: f"@@ -{next(numbers)} +{next(numbers)} @@", difflib_diff(before, after))
    try:
        result = applied(diff, before)
    except ToolRefused:
        return
    gone, come = Counter(names(before)), Counter(names(after))
    assert Counter(names(result)) == gone - (gone - come) + (come - gone)


def names(text: str) -> list[str]:
    """The lines, whatever their line ends."""
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


@given(st.text(alphabet=st.sampled_from("ab+- @*\\\n\r`"), max_size=60), texts())
def test_nonsense_is_refused_or_applied_and_never_breaks(nonsense: str, before: str) -> None:
    try:
        result = applied(f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{nonsense}", before)
    except ToolRefused:
        return  # with the file as it was: `applied` looks
    assert result != before
