"""Whatever is done to a tree, restoring makes it what it was, and undoing that makes it what it had become."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.checkpoints.conftest import Tree, tree

from denizen.checkpoints import Conflict, Shadow, shadow_of
from denizen.testing import FakeClock

PATHS = ["a", "b", "d", "d/a", "d/e", "d/e/f", "b/ü\n", "x.log", "d/x.log", "d/e/x.log", "a/x.log/y"]
TARGETS = ["a", "d", "../b", "nowhere", "/"]
Operation = tuple[str, str, str]

paths = st.sampled_from(PATHS)
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "append"]), paths, st.sampled_from(["", "1", "2\n", "3\r\n\0"])),
        st.tuples(st.just("link"), paths, st.sampled_from(TARGETS)),
        st.tuples(st.just("rename"), paths, paths),
        st.tuples(st.sampled_from(["delete", "chmod", "mkdir"]), paths, st.just("")),
    ),
    max_size=8,
)
ignoring = st.lists(st.tuples(st.just("write"), st.just(".gitignore"), st.sampled_from(["", "*.log\n", "d/\n", "*\n"])))


@settings(max_examples=25)
@given(operations, operations)
@example([("write", "d", "1")], [("write", "d/x.log", "2")])
def test_restoring_gives_the_identical_tree(first: Sequence[Operation], then: Sequence[Operation]) -> None:
    async def check(shadow: Shadow, folder: Path) -> None:
        (folder / ".gitignore").write_text("*.log\n")
        perform(folder, first)
        was, before = tree(folder), await shadow.snapshot()
        perform(folder, then)
        became = tree(folder)
        undo = await shadow.restore(before)
        assert kept(tree(folder)) == kept(was)
        assert ignored(tree(folder)).items() <= ignored(became).items()
        await shadow.restore(undo)
        assert tree(folder) == became

    run(check)


@settings(max_examples=25)
@given(operations, ignoring, operations)
def test_undoing_a_restore_brings_everything_back_whatever_is_ignored(
    first: Sequence[Operation], rules: Sequence[Operation], then: Sequence[Operation]
) -> None:
    async def check(shadow: Shadow, folder: Path) -> None:
        perform(folder, first)
        was, before = tree(folder), await shadow.snapshot()
        perform(folder, [*then, *rules])
        became = tree(folder)
        await shadow.restore(await shadow.restore(before))
        assert became.items() <= tree(folder).items()
        more = tree(folder).items() - became.items()
        assert more <= was.items(), "only what the rules ignore now, and so nothing removes, may be left of it"
        assert not more or rules

    run(check)


@settings(max_examples=25)
@given(operations, operations, operations)
@example([("write", "a", "1")], [("write", "a", "2\n")], [("write", "b", "1")])
@example([("link", "a", "a"), ("link", "d", "a")], [("write", "a/x.log/y", "")], [("rename", "d/x.log", "a")])
def test_undo_leaves_other_changes_or_touches_nothing(
    first: Sequence[Operation], agents: Sequence[Operation], users: Sequence[Operation]
) -> None:
    async def check(shadow: Shadow, folder: Path) -> None:
        perform(folder, first)
        was, before = tree(folder), await shadow.snapshot()
        perform(folder, agents)
        did, after = tree(folder), await shadow.snapshot()
        perform(folder, users)
        found = tree(folder)
        refused: Sequence[str] = ()
        undo = ""
        try:
            undo = await shadow.restore(before, expect=after)
        except Conflict as conflict:
            refused = conflict.paths
        if refused:
            assert tree(folder) == found
            assert all(did.get(path) != found.get(path) for path in refused)
            return
        changed = {path for path in {*was, *did} if was.get(path) != did.get(path)}
        wanted = {path: was.get(path) if path in changed else found.get(path) for path in {*was, *found}}
        assert tree(folder) == {path: file for path, file in wanted.items() if file}
        await shadow.restore(undo)
        assert tree(folder) == found

    run(check)


def run(check: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        shadow = shadow_of(workspace, Path(folder) / "home", clock=FakeClock(), environ=os.environ)
        body: Coroutine[Any, Any, None] = check(shadow, workspace)
        asyncio.run(body)


def kept(found: Tree) -> Tree:
    return {path: file for path, file in found.items() if ".log" not in path}


def ignored(found: Tree) -> Tree:
    return {path: file for path, file in found.items() if ".log" in path}


def perform(folder: Path, operations: Sequence[Operation]) -> None:
    for name, path, value in operations:
        place = folder / path
        match name:
            case "write":
                make_room(folder, place)
                place.write_text(value)
            case "append" if place.is_file():
                with place.open("a") as file:
                    file.write(value)
            case "link":
                make_room(folder, place)
                place.symlink_to(value)
            case "mkdir":
                make_room(folder, place)
                place.mkdir()
            case "delete":
                remove(place)
            case "chmod" if place.is_file() and not place.is_symlink():
                place.chmod(place.stat().st_mode ^ 0o100)
            case "rename" if os.path.lexists(place) and not is_within(value, path) and not is_within(path, value):
                away = folder / ".git-away"
                place.rename(away)
                make_room(folder, folder / value)
                away.rename(folder / value)


def is_within(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/")


def make_room(folder: Path, place: Path) -> None:
    for above in [*reversed(place.relative_to(folder).parents[:-1]), place.relative_to(folder)]:
        if (folder / above).is_symlink() or not (folder / above).is_dir() or folder / above == place:
            remove(folder / above)
    place.parent.mkdir(parents=True, exist_ok=True)


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
