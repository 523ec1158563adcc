"""What differs between two snapshots."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from denizen.checkpoints.git import Git

_NOTHING = "0" * 40


class Entry(NamedTuple):
    """A file in a snapshot: its mode, as git writes it, and its content's id."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True)
class Step:
    """A path that differs: what is there before (None: nothing), and after."""

    path: str
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The paths that differ, and how, as a patch."""

    paths: Sequence[str]
    text: str


async def steps(git: Git, old: str, new: str) -> dict[str, Step]:
    """Every path that differs between two trees."""
    answer = await git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    fields = os.fsdecode(answer).split("\0")[:-1]
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return {path: _step(path, *words.lstrip(":").split()) for words, path in pairs}


async def paths(git: Git, pairs: Sequence[tuple[str, str]]) -> list[Sequence[str]]:
    """The paths that differ between each two trees, for people: odd letters in quotes."""
    questions = [f"{old} {new}" for old, new in pairs]
    answer = await git.run(
        *("diff-tree", "--stdin", "-r", *_relative(git), "--name-only", "--no-renames"),
        data="".join(f"{question}\n" for question in questions).encode(),
    )
    found: list[list[str]] = []
    for line in answer.decode(errors="replace").split("\n")[:-1]:
        if len(found) < len(questions) and line == questions[len(found)]:
            found.append([])
        else:
            found[-1].append(line)
    return list(found)


async def difference(git: Git, old: str, new: str) -> Difference:
    """What differs, for people: paths as the workspace has them."""
    options = ["-r", *_relative(git)]
    names = await git.run("diff-tree", *options, "-z", "--name-only", "--no-renames", old, new)
    text = await git.run("diff-tree", *options, "-p", "--find-renames", "--no-ext-diff", "--no-textconv", old, new)
    return Difference(os.fsdecode(names).split("\0")[:-1], text.decode(errors="replace"))


def _relative(git: Git) -> list[str]:
    return [f"--relative={git.within}/"] if git.within else []


def _step(path: str, old_mode: str, mode: str, old_blob: str, blob: str, _: str) -> Step:
    return Step(
        path,
        None if old_blob == _NOTHING else Entry(old_mode, old_blob),
        None if blob == _NOTHING else Entry(mode, blob),
    )
