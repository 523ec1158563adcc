"""The list of snapshots, each a commit without parents and a numbered ref; and the differences between them."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from denizen.checkpoints.git import Git, GitError
from denizen.errors import DenizenError
from denizen.runtime.clock import Clock

_REFS = "refs/checkpoints/"
_LAST = "refs/heads/last"
_FORMAT = "%(refname)%09%(objectname)%09%(tree)%09%(committerdate:unix)%09%(subject)"
_RETENTION = timedelta(days=30)
_MIN_KEPT = 64
"""However old: a running turn may have begun with the oldest of them."""
_MAX_KEPT = 1000
_PRUNE_EVERY = 32
"""Snapshots after which the old ones go."""
_MIN_ID_CHARS = 4
"""Letters of an id that name a snapshot."""
_NO_BLOB = "0" * 40


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a workspace at one moment.

    `paths` are those that it covers, if not the whole workspace: restoring it touches nothing else. `left_out`
    are files that can't be kept (unreadable, not regular files, larger than 100 MB). `note` says why it was made, where
    nobody asked for it. `tree` is the same for the same files.
    """

    id: str
    at: datetime
    label: str = ""
    note: str = ""
    paths: Sequence[str] = ()
    left_out: Sequence[str] = ()
    tree: str = field(default="", repr=False)
    number: int = field(default=0, repr=False)


class TreeEntry(NamedTuple):
    """A file in a snapshot: its mode, as git writes it, and its content's id."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path that differs: what is there before (None: nothing), and after."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The paths that differ, and how, as a patch."""

    paths: Sequence[str]
    text: str


async def all_snapshots(git: Git) -> list[Snapshot]:
    """All snapshots, the newest first."""
    return await _snapshots(git, _REFS)


async def latest_snapshots(git: Git) -> list[Snapshot]:
    """The snapshot that the index was last compared with, if any, and the newest."""
    return await _snapshots(git, "--count=2", _LAST, _REFS)


def find(snapshots: Sequence[Snapshot], name: str) -> Snapshot:
    """The snapshot of that id, or that begins so; else the newest of that label. Raises DenizenError."""
    exact = [each for each in snapshots if each.id == name]
    begun = {each.id: each for each in snapshots if len(name) >= _MIN_ID_CHARS and each.id.startswith(name)}
    labelled = [each for each in snapshots if name and each.label == name]
    if len(begun) > 1 and not exact and not labelled:
        raise DenizenError(f"Several checkpoints begin with {name}: give more of its id.")
    for found in (*exact, *labelled, *begun.values()):
        return found
    raise DenizenError(f"There is no checkpoint {name}; `denizen checkpoints list` shows the available ones.")


async def record(git: Git, snapshot: Snapshot, *, previous: str) -> Snapshot:
    """Keep a snapshot under the number it has; it becomes the last one, after `previous`, unless it is about paths."""
    about = {"label": snapshot.label, "note": snapshot.note, "paths": snapshot.paths, "left_out": snapshot.left_out}
    message = json.dumps({name: value for name, value in about.items() if value})
    when = f"{snapshot.at.timestamp():.0f} +0000"
    dated = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    commit = await git.run("commit-tree", snapshot.tree, data=message.encode(), env=dated)
    snapshot = replace(snapshot, id=commit.decode().strip())
    updates = f"create {_ref(snapshot)} {snapshot.id}\n"
    if not snapshot.paths:
        updates += f"update {_LAST} {snapshot.id} {previous or '0' * 40}\n"
    await git.run("update-ref", "--no-deref", "--stdin", data=updates.encode())
    return snapshot


async def prune(git: Git, snapshot: Snapshot, clock: Clock) -> None:
    """Every now and then, drop old snapshots, and pack the rest if there is much of it.

    Snapshots go after 30 days, or when there are 1,000 newer ones; the newest 64 stay, and the newest of each label.
    """
    if snapshot.number % _PRUNE_EVERY:
        return
    labels: set[str] = set()
    old: list[Snapshot] = []
    for place, each in enumerate(await all_snapshots(git)):
        is_old = each.at < clock.now() - _RETENTION and place >= _MIN_KEPT
        if (is_old or place >= _MAX_KEPT) and (not each.label or each.label in labels):
            old.append(each)
        labels.add(each.label)
    await git.run("update-ref", "--stdin", data="".join(f"delete {_ref(each)}\n" for each in old).encode())
    with contextlib.suppress(GitError):  # there may be no room for it; nothing is lost, and it is tried again later
        await git.run("gc", "--auto", "--quiet", "--prune=now")


def _ref(snapshot: Snapshot) -> str:
    return f"{_REFS}{snapshot.number:010}"


async def _snapshots(git: Git, *selection: str) -> list[Snapshot]:
    found: list[Snapshot] = []
    answer = await git.run("for-each-ref", f"--format={_FORMAT}", "--sort=-refname", *selection)
    for line in answer.decode().splitlines():
        ref, commit, tree, at, message = line.split("\t", 4)
        about, number = json.loads(message), ref.removeprefix(_REFS)
        found.append(
            Snapshot(
                id=commit,
                at=datetime.fromtimestamp(int(at), UTC),
                label=about.get("label", ""),
                note=about.get("note", ""),
                paths=tuple(about.get("paths", ())),
                left_out=tuple(about.get("left_out", ())),
                tree=tree,
                number=int(number) if number.isdecimal() else 0,
            )
        )
    return found


async def path_changes(git: Git, old: str, new: str) -> dict[str, PathChange]:
    """Every path that differs between two trees."""
    fields = await git.items("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    found: dict[str, PathChange] = {}
    for words, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, mode, old_blob, blob, _ = words.lstrip(":").split()
        found[path] = PathChange(
            path,
            None if old_blob == _NO_BLOB else TreeEntry(old_mode, old_blob),
            None if blob == _NO_BLOB else TreeEntry(mode, blob),
        )
    return found


async def changed_paths(git: Git, pairs: Sequence[tuple[str, str]]) -> list[Sequence[str]]:
    """The paths that differ between each two trees, for people: odd characters in quotes."""
    questions = [f"{old} {new}" for old, new in pairs]
    command = ["diff-tree", "--stdin", "-r", *_relative(git), "--name-only", "--no-renames"]
    answer = await git.run(*command, data="".join(f"{question}\n" for question in questions).encode())
    found: list[list[str]] = []
    for line in answer.decode(errors="replace").split("\n")[:-1]:
        if len(found) < len(questions) and line == questions[len(found)]:
            found.append([])
        else:
            found[-1].append(line)
    return list(found)


async def difference(git: Git, old: str, new: str) -> Difference:
    """The differences for people: paths relative to the workspace."""
    command = ("diff-tree", "-r", *_relative(git))
    paths = await git.items(*command, "-z", "--name-only", "--no-renames", old, new)
    text = await git.run(*command, "-p", "--find-renames", "--no-ext-diff", "--no-textconv", old, new)
    return Difference(paths, text.decode(errors="replace"))


def _relative(git: Git) -> list[str]:
    return [f"--relative={git.within}/"] if git.within else []
