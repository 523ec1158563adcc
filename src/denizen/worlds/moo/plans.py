"""Plans of rooms to build or visit: written by the model or read from the world's answers, and advanced.

Decisions, "A plan is a file".
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from denizen.config.files import as_text, read_settings, write_private
from denizen.errors import ConfigError
from denizen.worlds.moo.server_text import CommandOutput
from denizen.worlds.moo.session_log import BUILT
from denizen.worlds.moo.session_values import IS_BUILT, PLAN, SUMMARY, SessionValues

BUILDS: Final = "builds"
TRAVERSAL: Final = "traversal_plan.txt"
BUILDING: Final = "The plan is written. Build its rooms now, one after the other: {}."
"""The summary after a plan was written, so that the model builds and doesn't plan again."""

_PLANS: Final = "????-??-??-??-??.yaml"
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


def save_build_plan(folder: Path, text: str, at: datetime) -> None:
    """Write a plan to `builds/`. Raises ConfigError when the disk refuses."""
    write_private(_builds(folder) / f"{at:%Y-%m-%d-%H-%M}.yaml", f"{text.rstrip()}\n".encode())


def save_traversal_plan(folder: Path, plan: Sequence[str]) -> None:
    """Keep the plan for the next start. Raises ConfigError when the disk refuses."""
    write_private(_builds(folder) / TRAVERSAL, "".join(f"{' '.join(each.split())}\n" for each in plan).encode())


def load_plan(folder: Path, *, visits: bool) -> list[str]:
    """The rooms that the last run left; only those to build if the agent doesn't visit rooms on its own.

    Raises ConfigError for a plan that can't be read.
    """
    builds = sorted((folder / BUILDS).glob(_PLANS))
    planned = room_names(_read(builds[-1])) if builds else []
    path = folder / BUILDS / TRAVERSAL
    if not path.exists():
        return planned
    left = _read(path).splitlines()
    return left if visits else [room for room in planned if room in left]


def plan_after(plan: Sequence[str], output: CommandOutput, *, is_loaded: bool = False) -> list[str]:
    """The plan after a command: without the room that it built; or the rooms that it divined.

    What was divined replaces no plan but one that is empty or `is_loaded` from disk.
    """
    built = {name.lower() for line in output.lines if (name := built_room(line))}
    rest = [each for each in plan if each.lower() not in built]
    if plan and not is_loaded:
        return rest
    return divined_rooms(output.lines) or rest


def built_room(line: str) -> str:
    """The room that a line of output reports as dug, burrowed or made, or an empty string."""
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


def plan_problems(folder: Path) -> list[str]:
    """Problems of the build plans in an agent's directory, a sentence each. Raises ConfigError."""
    plans = sorted((folder / BUILDS).glob(_PLANS))
    return [f"{BUILDS}/{path.name}: no rooms (`- name: ...`) in it." for path in plans if not room_names(_read(path))]


class Plans:
    """The plan of an agent: kept in its session, where the model sees it, and in `builds/` for its next start.

    `note` logs its changes, and write errors, which don't stop the agent.
    """

    def __init__(self, folder: Path, values: SessionValues, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._values = values
        self._note = note
        self._is_loaded = False

    @property
    def rooms(self) -> list[str]:
        """The rooms that are left to visit or to build."""
        return self._values.get(PLAN, list[str]) or []

    @property
    def is_built(self) -> bool:
        """Whether all rooms of a plan were built, and there is no other yet."""
        return self._values.get(IS_BUILT, bool) or False

    async def begin(self, *, visits: bool) -> None:
        """Take up what the last run left (`load_plan`). Raises ConfigError."""
        await self._keep(load_plan(self._folder, visits=visits))
        self._is_loaded = True

    async def write(self, text: str, at: datetime) -> None:
        """Write a BUILD_PLAN, and follow it; it is ignored while there is one, or if it has no rooms."""
        rooms = room_names(text)
        if not rooms or not all(map(_ID.fullmatch, self.rooms)):  # a list of numbers came from a token page
            self._note(f"[Plan] Ignored: {'there is one already' if rooms else 'it names no rooms'}.")
            return
        self._save(lambda: save_build_plan(self._folder, text, at))
        await self.change(rooms)
        await self._values.keep(SUMMARY, BUILDING.format(", ".join(rooms)))

    async def change(self, rooms: Sequence[str]) -> None:
        """Follow another plan from now on."""
        await self._keep(rooms)
        self._save(lambda: save_traversal_plan(self._folder, rooms))
        self._is_loaded = False

    async def advance(self, output: CommandOutput) -> None:
        """Take up what a command has built or divined."""
        before = self.rooms
        after = plan_after(before, output, is_loaded=self._is_loaded)
        if after == before:
            return
        await self.change(after)
        if not after:
            await self._values.keep(IS_BUILT, True)
            self._note(BUILT)

    async def _keep(self, rooms: Sequence[str]) -> None:
        await self._values.keep(PLAN, [*rooms])
        await self._values.keep(IS_BUILT, False)

    def _save(self, save: Callable[[], None]) -> None:
        try:
            save()
        except ConfigError as error:
            self._note(str(error))


def _builds(folder: Path) -> Path:
    builds = folder / BUILDS
    try:
        builds.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{builds} can't be made: {error.strerror}.") from error
    return builds


def _read(path: Path) -> str:
    return as_text(read_settings(path) or b"", path)
