"""Files that change often and are complex: where the next fault is likely, and tidying pays."""

import shlex
from collections import Counter
from collections.abc import Mapping

from denizen.errors import ToolRefused
from denizen.plural import counted
from denizen.ports import ToolContext
from denizen.tools.analysis.functions import Function, functions
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable
from denizen.tools.git import git_tool

COMMITS = 1000
"""The latest that are looked at."""
_MOST_BYTES = 10_000_000


async def changed_files(below: str, environ: Mapping[str, str], turn: ToolContext) -> Counter[str]:
    """In how many of the latest commits each file was changed. Raises ToolRefused where git can't tell."""
    args = f"log -n {COMMITS} --no-merges --no-renames --format= --name-only -- {shlex.quote(below)}"
    answer = await git_tool(environ, most=_MOST_BYTES).run({"args": args}, turn)
    if answer.is_error:
        raise ToolRefused(f"hotspots need the history of a git repository; git says: {answer.text.strip()}")
    return Counter(line for line in answer.text.splitlines() if line and not line.startswith("["))


def hotspots(scope: Scope, changes: Mapping[str, int]) -> Findings:
    """The files by the number of their changes times the complexity of all their functions."""
    by_file: dict[str, list[Function]] = {}
    for function in functions(scope):
        by_file.setdefault(function.file, []).append(function)
    scores = {path: changes.get(path, 0) * sum(each.complexity for each in found) for path, found in by_file.items()}
    changed = [path for path in by_file if scores[path]]
    findings = Findings(
        f"{counted(len(changed), 'file')} changed in the latest {COMMITS:,} commits; changes x complexity, file"
    )
    for path in sorted(changed, key=lambda path: (-scores[path], path)):
        complexity = sum(each.complexity for each in by_file[path])
        worst = max(by_file[path], key=lambda each: each.complexity)
        row = f"{scores[path]:>6}  {path}  {changes[path]} x {complexity}, most in {worst.name} ({worst.complexity})"
        facts = {"score": scores[path], "file": path, "changes": changes[path], "complexity": complexity}
        findings.add(printable(row), **facts, worst=worst.name)
    return findings
