"""What a checkpoint costs, beside the user's own git on the same files."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from random import Random

from benchmarks.contenders import Entry, scratch
from benchmarks.hall import Plan
from benchmarks.report import Goal, Samples, Table
from denizen.checkpoints import Shadow, shadow_of
from denizen.runtime.clock import SystemClock

NOTE = """\
Milliseconds by the clock, from the library's call to its return, on text files of 40 lines; median (least–most) of
{repeats}, {largest:,} files once. *git* is `git add -A && git commit` in a new repository, taken in turn with *first*:
a snapshot into a new shadow repository; *× git* is over that. *Unchanged* is a snapshot when nothing has changed since;
*20 changed* one when 20 files have; *restore* takes these 20 changes back, and keeps a snapshot before and after."""
COLUMNS = ("files", "git", "first", "× git", "unchanged", "20 changed", "restore")
CHANGED = 20
AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "maintenance.auto=false")


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("Checkpoints", NOTE.format(repeats=plan.repeats, largest=plan.files[-1]), COLUMNS)
    for files in plan.files:
        with scratch() as folder:
            _fill(folder / "project", files)
            rounds = 1 if files == plan.files[-1] else plan.repeats
            _measure(result, folder, files, rounds)
    return result


def _measure(result: Table, folder: Path, files: int, rounds: int) -> None:
    git, first, unchanged, changed, restored = [[] for _ in range(5)]
    for number in range(rounds):
        git.append(_git(folder / "project", folder / f"git{number}"))
        shadow = shadow_of(folder / "project", folder / f"home{number}", clock=SystemClock(), environ=os.environ)
        for taken, figure in zip((first, unchanged, changed, restored), asyncio.run(_ours(shadow)), strict=True):
            taken.append(figure)
    base = Samples(git)
    figures = [Samples(taken) for taken in (first, unchanged, changed, restored)]
    result.add(f"{files:,}", base, figures[0], figures[0].over(base), *figures[1:])
    if files == 5000:
        result.goals.append(Goal("first checkpoint of 5,000 files, over git", 2.0, figures[0].median / base.median))
        result.goals.append(Goal("checkpoint of 5,000 unchanged files", 100.0, figures[1].median, "ms"))


async def _ours(shadow: Shadow) -> list[float]:
    os.sync()  # what others wrote is not to be waited for
    before, first = await _timed(shadow.snapshot())
    await shadow.snapshot()  # git remembers what it saw, once it is sure that it saw everything
    _, unchanged = await _timed(shadow.snapshot())
    kept = sorted(shadow.workspace.rglob("*.txt"))[:CHANGED]
    texts = [path.read_text() for path in kept]
    for path in kept:
        path.write_text("changed\n")
    after, changed = await _timed(shadow.snapshot())
    _, restored = await _timed(shadow.restore(before, expect=after))
    if [path.read_text() for path in kept] != texts:
        raise AssertionError("the files are not what they were")
    return [first, unchanged, changed, restored]


async def _timed(work: Awaitable[str]) -> tuple[str, float]:
    begun = time.perf_counter()
    answer = await work
    return answer, (time.perf_counter() - begun) * 1000


def _git(project: Path, aside: Path) -> float:
    """Milliseconds that the user's git takes; its repository is put aside afterwards."""
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    os.sync()
    begun = time.perf_counter()
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    subprocess.run(["git", *AUTHOR, "commit", "--quiet", "--message=first"], cwd=project, check=True)
    taken = (time.perf_counter() - begun) * 1000
    (project / ".git").rename(aside)
    return taken


def _fill(project: Path, files: int) -> None:
    """So many files of text, no two alike, ten in a folder."""
    random = Random(1)
    for number in range(files):
        path = project / f"d{number // 100}" / f"e{number // 10 % 10}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {random.random()} of {number}\n" for _ in range(40)))
