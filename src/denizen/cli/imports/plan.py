"""What an import does with each file of another assistant's folder."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from denizen.cli.imports.assistants import Assistant
from denizen.config.files import read_file
from denizen.prompt import SkillPins, texts
from denizen.prompt.skills import read_skill
from denizen.text.plural import counted

MAX_BYTES = 1_000_000
"""Bytes of a file; larger ones aren't imported."""
_SKILL = re.compile(r"(?:workspace/)?skills/(?:[^./][^/]*/)+SKILL\.md")
"""Not in hidden folders, where Hermes keeps its hub's skills, even untrusted ones."""


_IGNORED = (".git", "__pycache__")


class PlannedFile(NamedTuple):
    """A file to import, its target in our workspace (or why it has none), and the bytes to write (None: nothing)."""

    source: str
    state: str
    target: str
    size: int = 0
    data: bytes | None = None
    mode: int = 0o600


def plan_import(name: str, assistant: Assistant, folder: Path, workspace: Path, pins: SkillPins) -> list[PlannedFile]:
    """Plan the import without writing or following links. A skill is imported whole, or not at all."""
    paths = [*_paths(folder)]
    skills = {path.parent for path in paths if _SKILL.fullmatch(path.as_posix())}
    units, others, taken = dict[Path, list[tuple[Path, list[str]]]](), Counter[str](), set[str]()
    for path in paths:
        if skill := next((each for each in reversed(path.parents) if each in skills), None):
            targets = [f"skills/{skill.name}/{path.relative_to(skill).as_posix()}"]
        elif target := assistant.target(path.as_posix()):
            targets = [target, f"{target.removesuffix('.md')}.from-{name}.md"]
        else:
            others["/".join(path.parts[: 2 if path.parts[0] == "workspace" else 1])] += 1
            continue
        units.setdefault(skill or path, []).append((path, targets))
    planned = list[PlannedFile]()
    for unit, files in units.items():
        try:
            found = [_plan_file(folder / path, path, targets, workspace, taken) for path, targets in files]
            if unit in skills:
                pins.state(read_skill(folder / unit / "SKILL.md"))  # raises the errors of loading it
                # SKILL.md comes last, so that no half-imported skill loads.
                found.sort(key=lambda each: each.source.endswith("/SKILL.md"))
            planned += found
        except (OSError, ValueError) as error:
            why = "it isn't UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
            planned.append(PlannedFile(unit.as_posix(), "left out", getattr(error, "strerror", None) or str(why)))
    why = "not memory, persona or a skill"
    return planned + [PlannedFile(top, "left out", f"{why} ({counted(others[top], 'file')})") for top in others]


def _plan_file(path: Path, source: Path, targets: list[str], workspace: Path, taken: set[str]) -> PlannedFile:
    """Plan for the first free target; nothing if one has the same content. Raises OSError or ValueError."""
    if path.is_symlink():
        raise ValueError(f"{source} is a link, and links aren't followed")
    data = read_file(path, MAX_BYTES + 1) or b""
    if len(data) > MAX_BYTES:
        raise ValueError(f"{source} is larger than {MAX_BYTES:,} bytes")
    if not targets[0].startswith("skills/") and "\0" in data.decode():
        raise ValueError("it isn't text")
    if targets[0] in taken:
        raise ValueError(f"another imported file goes to {targets[0]}")
    taken.add(targets[0])
    for target in targets:
        there = read_file(workspace / target, MAX_BYTES + 1)
        if there == data:
            return PlannedFile(str(source), "same", target, len(data))
        if there is None or (target == "AGENTS.md" and there == texts.STARTER.encode()):
            return PlannedFile(str(source), "new", target, len(data), data, path.stat().st_mode & 0o700)
    raise ValueError(f"{' and '.join(targets)} exist with other content, and are kept")


def _paths(folder: Path) -> Iterator[Path]:
    """All files and links in the folder, relative to it."""
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        folders[:] = sorted({*folders}.difference(links, _IGNORED))
        yield from (Path(here, name).relative_to(folder) for name in sorted([*names, *links]))
