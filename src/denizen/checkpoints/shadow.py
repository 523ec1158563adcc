"""Checkpoints of a workspace: its files, kept in a repository of their own that the project's doesn't know of."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from denizen.checkpoints import history
from denizen.checkpoints.git import Git
from denizen.checkpoints.history import Difference, Snapshot, all_snapshots, changed_paths, difference, path_changes
from denizen.checkpoints.repository import open_repository
from denizen.checkpoints.restore import PathBlocked, carry_out, find_in_the_way, plan_restore
from denizen.checkpoints.staging import Staged, include, stage
from denizen.checkpoints.worktree import Worktree, make_copy, reopen_copy, tree_of
from denizen.errors import DenizenError
from denizen.ports.checkpoints import CheckpointSpan, Conflict
from denizen.runtime.clock import Clock
from denizen.trusted.programs import trusted_environ


def shadow_of(workspace: Path, home: Path, *, clock: Clock, environ: Mapping[str, str]) -> "Shadow":
    """The checkpoints of a workspace, in the home."""
    workspace = workspace.resolve()
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return Shadow(home / "checkpoints" / name, workspace, clock=clock, environ=environ, private=home)


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """The paths that a restore would change, and those among them that were changed since the latest snapshot."""

    paths: Sequence[str]
    since: Sequence[str]


class Shadow:
    """Snapshots of the files in `workspace`, kept in the git directory `folder`, which is made on first use.

    What git ignores there isn't kept, and never touched; neither is the project's own `.git`. `private` is a folder
    that is never kept either. Several processes may work on one shadow: one at a time, the others wait. All methods
    raise DenizenError.
    """

    def __init__(
        self, folder: Path, workspace: Path, *, clock: Clock, environ: Mapping[str, str], private: Path | None = None
    ) -> None:
        self.workspace = workspace.resolve()
        self._git = Git(folder.resolve(), self.workspace, trusted_environ(environ, self.workspace))
        self._clock = clock
        self._private = private and private.resolve()

    def opened(self) -> AbstractAsyncContextManager[Git]:
        """The repository, held until the end."""
        return open_repository(self._git, self._clock, self._private)

    async def snapshot(self, label: str = "", paths: Collection[str | Path] = ()) -> str:
        """Keep the files as they are; returns the snapshot's id, which stays the same while nothing has changed.

        A labelled one is always an entry of its own. With `paths`, restoring it touches only these.
        """
        scope: list[str] = []
        for path in sorted(map(str, paths)):
            absolute = Path(os.path.normpath(self.workspace / path))
            if not absolute.is_relative_to(self.workspace):
                raise DenizenError(f"{path} is outside of {self.workspace}: a checkpoint covers only files in it.")
            if absolute != self.workspace:
                scope.append(absolute.relative_to(self.workspace).as_posix())
        async with self.opened() as git:
            staged = await stage(git)
            if staged.last and not staged.changed and not label and not scope:
                return staged.last
            return (await self._record(git, staged, label=label, paths=scope)).id

    async def list(self) -> Sequence[Snapshot]:
        """All snapshots, the newest first."""
        async with self.opened() as git:
            return await all_snapshots(git)

    async def changed(self, pairs: Sequence[tuple[Snapshot, Snapshot]]) -> Sequence[Sequence[str]]:
        """The paths that differ between each two snapshots."""
        async with self.opened() as git:
            return await changed_paths(git, [(old.tree, new.tree) for old, new in pairs])

    async def touched(self, pairs: Sequence[tuple[str, str]]) -> set[str]:
        """The paths that differ between the two snapshots of any of the pairs."""
        async with self.opened() as git:
            known = await all_snapshots(git) if pairs else []
            trees = [(history.find(known, old).tree, history.find(known, new).tree) for old, new in pairs]
            return {git.shown(path) for old, new in trees for path in await path_changes(git, old, new)}

    async def ours_alone(self, done: CheckpointSpan) -> set[str]:
        """The paths that the agent changed. Raises Conflict if somebody else changed one of them meanwhile."""
        ours = await self.touched(done.ours)
        if both := ours & await self.touched(done.theirs):
            raise Conflict(sorted(both))
        return ours

    async def find(self, name: str) -> Snapshot:
        """The snapshot of that id, or that begins so; else the newest of that label."""
        return history.find(await self.list(), name)

    async def diff(self, old: str, new: str = "") -> Difference:
        """The changes from one snapshot to another, or to the current files."""
        async with self.opened() as git:
            known = await all_snapshots(git)
            if new:
                tree = history.find(known, new).tree
            else:
                await stage(git)
                tree = await git.write_tree()
            return await difference(git, history.find(known, old).tree, tree)

    async def restore(self, snapshot: str, *, expect: str = "", force: bool = False, only: Collection[str] = ()) -> str:
        """Make the files what they were; returns the snapshot of what they were until now: restoring it undoes this.

        With `expect`, what happened between `snapshot` and that later one is taken back: other changes since stay, and
        where both changed a file, nothing is touched and Conflict raised. Without it, or forced, the files become those
        of the snapshot. With `only`, nothing but these paths is touched. PathBlocked is raised when something that no
        snapshot holds is in the way.
        """
        async with self.opened() as git:
            known = await all_snapshots(git)
            wanted = history.find(known, snapshot)
            wanted = replace(wanted, paths=tuple(only)) if only else wanted
            expected = history.find(known, expect).tree if expect and not force else ""
            return await self._restore(git, wanted, expected)

    async def preview(self, snapshot: str) -> RestorePreview:
        """The changes that restoring a snapshot would make."""
        async with self.opened() as git:
            wanted = history.find(await all_snapshots(git), snapshot)
            staged = await stage(git)
            plan = [git.shown(change.path) for change in await plan_restore(git, wanted.tree, scope=wanted.paths)]
            by_hand = await path_changes(git, staged.last, await git.write_tree()) if staged.last else {}
            changed = {git.shown(path) for path in by_hand}
            return RestorePreview(plan, [path for path in plan if path in changed])

    @asynccontextmanager
    async def worktree(self, snapshot: str, within: Path | None = None) -> AsyncGenerator[Worktree]:
        """A copy of a snapshot to work in, outside of the project, until the end; `apply` brings it into the project.

        It is made in a new folder in `within` (default: the system's for temporary files).
        """
        made = await self.copy(snapshot, within)
        try:
            yield made
        finally:
            await made.discard()

    async def copy(self, snapshot: str, within: Path | None = None) -> Worktree:
        """A copy as `worktree` makes it, which stays until it is discarded."""
        folder = Path(tempfile.mkdtemp(prefix="denizen-", dir=within)).resolve()
        try:
            async with self.opened() as git:
                return await make_copy(git, history.find(await all_snapshots(git), snapshot), folder)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise

    async def copy_in(self, folder: Path) -> Worktree | None:
        """The copy that an earlier process made and left in a folder, not long ago; None if there is none."""
        async with self.opened() as git:
            return reopen_copy(git, await all_snapshots(git), folder, self._clock.now())

    async def worked_in(self, worktree: Worktree) -> bool:
        """Whether anything was done in a copy."""
        async with self.opened() as git:
            return await tree_of(git, worktree) != worktree.start.tree

    async def apply(self, worktree: Worktree) -> str:
        """Do to the project what was done to the copy; returns the snapshot of what the files were until now.

        Files that were changed in the project meanwhile stay as they are; where the copy changed them, too, nothing is
        touched and Conflict raised.
        """
        async with self.opened() as git:
            tree = await tree_of(git, worktree)
            made = replace(worktree.start, id="", label="the edits of a copy", tree=tree, paths=())
            return await self._restore(git, made, worktree.start.tree)

    async def _restore(self, git: Git, wanted: Snapshot, expected: str) -> str:
        staged = await stage(git)
        plan = await plan_restore(git, wanted.tree, expected=expected, scope=wanted.paths)
        if found := await asyncio.to_thread(find_in_the_way, git, plan):
            if expected:
                raise Conflict([git.shown(path) for path in found])
            await include(git, found)
            plan = await plan_restore(git, wanted.tree, scope=wanted.paths)
            if still := await asyncio.to_thread(find_in_the_way, git, plan):
                raise PathBlocked([git.shown(path) for path in still])
        name = wanted.label or wanted.id[:10]
        before = await self._record(git, staged, note=f"before restoring {name}")
        if plan:
            await carry_out(git, plan)
            await include(git, [change.path for change in plan if change.new])
            await self._record(git, await stage(git), note=f"restored {name}")
        return before.id

    async def _record(
        self, git: Git, staged: Staged, *, label: str = "", note: str = "", paths: Sequence[str] = ()
    ) -> Snapshot:
        """Keep what is staged; without label and paths the last snapshot will do if it holds just that."""
        tree = await git.write_tree()
        latest = await history.latest_snapshots(git)
        if latest and latest[0].id == staged.last and latest[0].tree == tree and not label and not paths:
            return latest[0]
        number = max((each.number for each in latest), default=0) + 1
        made = Snapshot("", self._clock.now(), label, note, paths, staged.left_out, tree, number)
        made = await history.record(git, made, previous=staged.last)
        await history.prune(git, made, self._clock)
        return made
