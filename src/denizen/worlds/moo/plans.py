"""What is still to be built or visited: plans that a model writes, that the world's answers yield, and that advance.

Seed 000, "Plan Persistence" and "Auto-extracted plans".
"""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from denizen.config.files import as_text, read_settings, write_private
from denizen.worlds.moo.server_text import Output

BUILDS: Final = "builds"
TRAVERSAL: Final = "traversal_plan.txt"
BUILDING: Final = "The plan is written. Build its rooms now, one after the other: {}."
"""The summary after a plan was written, so that the model builds and doesn't plan again."""

_NAME: Final = re.compile(r"(?P<indent> *)- name: *(?P<name>\S.*?) *")
_ID: Final = re.compile(r"#\d+")
_DUG: Final = re.compile(
    r"Dug an exit \w+ to \"(?P<dug>.+)\" \(#\d+\)\.|Dug \w+ to (?P<burrowed>.+) \(#\d+\)\."
    r"|Created #\d+ \((?P<made>.+)\) .*"
)
_DIVINED: Final = re.compile(r"\s*\S.* \((?P<id>#\d+)\)\s*")


def room_names(text: str) -> list[str]:
    """The rooms of a build plan: its items with the least indent, which is of two spaces at most."""
    found = [match for line in text.splitlines() if (match := _NAME.fullmatch(line)) and len(match["indent"]) <= 2]
    least = min((len(match["indent"]) for match in found), default=0)
    return [match["name"].strip("\"'") for match in found if len(match["indent"]) == least]


def is_visit_list(plan: Sequence[str]) -> bool:
    """Whether a plan is of rooms' numbers alone: a list from a token page, which a plan of names replaces."""
    return all(map(_ID.fullmatch, plan))


def save_build_plan(folder: Path, text: str, at: datetime, plan: Sequence[str]) -> list[str] | None:
    """Write a plan to `builds/` and give its rooms; None where there is a plan of names already, or it has no rooms.

    Raises ConfigError when the disk refuses.
    """
    rooms = room_names(text)
    if not rooms or not is_visit_list(plan):
        return None
    builds = _builds(folder)
    write_private(builds / f"{at:%Y-%m-%d-%H-%M}.yaml", f"{text.rstrip()}\n".encode())
    return rooms


def load_build_plan(folder: Path) -> list[str]:
    """The rooms of the last build plan; none where there is none."""
    plans = sorted((folder / BUILDS).glob("????-??-??-??-??.yaml"))
    return room_names(_read(plans[-1])) if plans else []


def save_traversal_plan(folder: Path, plan: Sequence[str]) -> None:
    """Keep the plan for the next start. Raises ConfigError when the disk refuses."""
    write_private(_builds(folder) / TRAVERSAL, "".join(f"{' '.join(each.split())}\n" for each in plan).encode())


def load_traversal_plan(folder: Path) -> list[str]:
    """The plan that was kept last."""
    return _read(folder / BUILDS / TRAVERSAL).splitlines()


def plan_after(plan: Sequence[str], output: Output, *, is_loaded: bool = False) -> list[str]:
    """The plan after a command: without the room that it built; or the rooms that it divined.

    What was divined replaces no plan but one that is empty or `is_loaded` from disk.
    """
    built = {name.lower() for line in output.lines if (name := built_room(line))}
    rest = [each for each in plan if each.lower() not in built]
    if plan and not is_loaded:
        return rest
    return divined_rooms(output.lines) or rest


def built_room(line: str) -> str:
    """The name of the room that was dug, burrowed or made, as a line of a command's output says; empty: none."""
    found = _DUG.fullmatch(line.strip())
    return next(filter(None, found.groups()), "") if found else ""


def divined_rooms(lines: Sequence[str]) -> list[str]:
    """The rooms' numbers that `@divine` gave, in order, each once."""
    header = next((at for at, line in enumerate(lines) if line.startswith("Impressions surface")), len(lines))
    ids: list[str] = []
    for line in lines[header + 1 :]:
        match = _DIVINED.fullmatch(line)
        if match is None:
            break
        ids += [match["id"]] if match["id"] not in ids else []
    return ids


def _builds(folder: Path) -> Path:
    builds = folder / BUILDS
    builds.mkdir(mode=0o700, exist_ok=True)
    return builds


def _read(path: Path) -> str:
    return as_text(read_settings(path) or b"", path)
