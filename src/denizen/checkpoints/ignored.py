"""Which files a snapshot's own rules ignore: it says nothing about them, so restoring it must not remove them."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from denizen.checkpoints.differences import Step
from denizen.checkpoints.git import Git

_RULES = ".gitignore"


async def spare_ignored(git: Git, tree: str, plan: Sequence[Step]) -> list[Step]:
    """The plan without removing what the rules in `tree` ignore, unless it must give way to something else."""
    if not any(PurePosixPath(step.path).name == _RULES for step in plan):
        return list(plan)  # the rules are as they were when the files were looked at
    ignored = await _ignored(git, tree, [step.path for step in plan if not step.new])
    taken = {step.path for step in plan if step.new}
    rooms = {str(above) for path in taken for above in PurePosixPath(path).parents}
    return [step for step in plan if step.path not in ignored or step.path in rooms or _is_below(step.path, taken)]


async def _ignored(git: Git, tree: str, paths: Sequence[str]) -> set[str]:
    """Those of the paths that the rules in `tree` ignore: git is shown a work tree of nothing but rules."""
    rules = replace(git, root=git.folder / "rules", index="rules-index")
    shutil.rmtree(rules.root, ignore_errors=True)
    rules.root.mkdir()
    try:
        entries = [line for line in (await git.run("ls-tree", "-r", "-z", tree)).split(b"\0") if _is_rules(line)]
        _copy_from_above(git, rules.root)
        await rules.run("update-index", "-z", "--index-info", data=b"".join(line + b"\0" for line in entries))
        await rules.run("checkout-index", "--all", "--force")
        data = b"".join(os.fsencode(f"./{path}\0") for path in paths)  # "./": a name is never magic
        question = ("check-ignore", "--stdin", "-z", "--no-index")
        answer = await rules.run(*question, data=data, also={"GIT_LITERAL_PATHSPECS": "0"}, may_say_no=True)
    finally:
        shutil.rmtree(rules.root, ignore_errors=True)
        (git.folder / rules.index).unlink(missing_ok=True)
    return {path.removeprefix("./") for path in os.fsdecode(answer).split("\0")[:-1]}


def _copy_from_above(git: Git, folder: Path) -> None:
    """The rules of folders that no snapshot holds, as the workspace is a part of the project."""
    for above in PurePosixPath(git.within).parents if git.within else ():
        if (git.root / above / _RULES).is_file():
            (folder / above).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(git.root / above / _RULES, folder / above / _RULES)


def _is_rules(line: bytes) -> bool:
    """Whether a line of ls-tree is about a file of rules; git follows no link there."""
    return line.startswith(b"100") and PurePosixPath(os.fsdecode(line.partition(b"\t")[2])).name == _RULES


def _is_below(path: str, others: set[str]) -> bool:
    return any(str(above) in others for above in PurePosixPath(path).parents)
