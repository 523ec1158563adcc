"""What skills held when they were first used: one that was changed since is left out until the user trusts it."""

import difflib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from denizen.config.files import read_file
from denizen.config.pins import Pins, pin_name
from denizen.errors import ConfigError
from denizen.prompt.skills import Skill
from denizen.trusted.session_files import SessionFiles

_MAX_FILES = 1000
_MAX_BYTES = 20_000_000
"""Bytes of all files of a skill."""
_MAX_TEXT_BYTES = 100_000
"""Bytes of a file whose text is kept to show what changed; of the others only the hash is."""
_MAX_KEPT_BYTES = 500_000
"""Bytes of text that are kept of one skill."""
_IGNORED = {"__pycache__", ".git"}
"""Folders that change by running scripts, or by updating."""


class _PinnedFile(msgspec.Struct, frozen=True):
    """The SHA-256 of a file, and its text where it is short."""

    hash: str
    text: str | None = None


class _Pin(msgspec.Struct, frozen=True):
    """A skill's folder, and the files that were in it."""

    folder: str
    files: Mapping[str, _PinnedFile]


class SkillPins:
    """The pins of skills, a file each in the home's `skills/`; the skills that come with Denizen have none.

    A skill that has none yet isn't admitted where something made it that only a person can accept.
    """

    def __init__(self, home: Path) -> None:
        self._pins = Pins(home / "skills", _Pin)
        self._files = SessionFiles(home)

    def admit(self, skills: Sequence[Skill]) -> tuple[list[Skill], list[str]]:
        """The skills that are new or as they were when they were first used, with notices of those that aren't."""
        admitted: list[Skill] = []
        notices: list[str] = []
        for skill in skills:
            try:
                state = self.state(skill)
            except (OSError, ValueError) as error:
                notices.append(f"The skill {skill.path} is left out: {error}.")
                continue
            if state != "changed":
                admitted.append(skill)
                continue
            notices.append(
                f"The skill {skill.name} is left out: {skill.path.parent} has changed since it was first used. "
                f"See how: denizen skills check {skill.name}. To use it again: denizen skills trust {skill.name}"
            )
        return admitted, notices

    def use(self, skills: Sequence[Skill]) -> tuple[list[Skill], list[str]]:
        """What `admit` admits; from now on new ones must stay as they are. Raises ConfigError if that isn't kept."""
        admitted, notices = self.admit(skills)
        for skill in admitted:
            if self.state(skill) == "new":
                self.pin(skill)
        return admitted, notices

    def state(self, skill: Skill) -> Literal["new", "same", "changed"]:
        """Whether the skill is unchanged. Raises OSError or ValueError when its folder can't be read or is too large.

        A pin that can't be read counts as another one.
        """
        if skill.origin == "built-in":
            return "same"
        now = _files(skill.path.parent)
        try:
            pin = self._pins.read(pin_name(skill.path.parent))
        except ConfigError:
            return "changed"
        if pin is None:
            return "new" if self._files.counted([skill.path]) == [None] else "changed"
        return "same" if _hashes(pin.files) == _hashes(now) else "changed"

    def pin(self, skill: Skill) -> None:
        """Pin the skill's present contents. Raises OSError, ValueError, or ConfigError."""
        folder = skill.path.parent
        self._pins.write(pin_name(folder), _Pin(str(folder.resolve()), _files(folder)))
        self._files.accept(skill.path)

    def difference(self, skill: Skill) -> str:
        """How the skill differs from what it was, as a diff; of files that aren't short texts, that they do."""
        now = _files(skill.path.parent)
        try:
            pin = self._pins.read(pin_name(skill.path.parent))
        except ConfigError as damaged:
            return f"What it was isn't known: {damaged}\n"
        before = pin.files if pin else {}
        return "".join(_changed(name, before.get(name), now.get(name)) for name in sorted({*before, *now}))


def _hashes(files: Mapping[str, _PinnedFile]) -> dict[str, str]:
    return {name: file.hash for name, file in files.items()}


def _files(folder: Path) -> dict[str, _PinnedFile]:
    """What a folder holds, by relative path, that of linked folders without its text, as it may be anything of the
    user's. Raises OSError, or ValueError for too much.
    """
    root = os.path.realpath(folder)
    found: dict[str, _PinnedFile] = {}
    size = kept = 0
    for path in _paths(folder):
        if len(found) == _MAX_FILES:
            raise ValueError(f"it has more than {_MAX_FILES:,} files, too many to check")
        data = _content(path, _MAX_BYTES - size + 1)
        size += len(data)
        if size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES:,} bytes, too many to check")
        is_own = Path(os.path.realpath(path.parent)).is_relative_to(root)
        text = _as_text(data) if is_own and kept + len(data) <= _MAX_KEPT_BYTES else None
        kept += len(data) if text is not None else 0
        name = str(path.relative_to(folder)).encode(errors="backslashreplace").decode()
        found[name] = _PinnedFile(hashlib.sha256(data).hexdigest(), text)
    return found


def _paths(folder: Path) -> Iterator[Path]:
    """Its files and links, and those of linked folders elsewhere: each once, also where links lead in a circle."""
    root, walked = Path(os.path.realpath(folder)), set[Path]()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = Path(os.path.realpath(here))
        is_link_within = real.is_relative_to(root) and real != root / Path(here).relative_to(folder)
        if is_link_within or real in walked:
            folders.clear()
            continue
        walked.add(real)
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        links = [name for name in folders if Path(here, name).is_symlink()]
        yield from (Path(here, name) for name in sorted([*files, *links]))


def _content(path: Path, most: int) -> bytes:
    """A file's bytes, at most so many; of a link, where it leads and the hash of a file there, never its text."""
    if path.is_symlink():
        leads = b"link to " + os.fsencode(path.readlink())
        if not path.is_file():
            return leads
        return leads + f"\nthat holds {hashlib.sha256(read_file(path, most) or b'').hexdigest()}\n".encode()
    data = read_file(path, most)
    if data is None:
        raise FileNotFoundError(0, f"{path} has gone")
    return data


def _as_text(data: bytes) -> str | None:
    if len(data) > _MAX_TEXT_BYTES or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _changed(name: str, before: _PinnedFile | None, now: _PinnedFile | None) -> str:
    """What happened to a file; empty: nothing."""
    if before and now and before.hash == now.hash:
        return ""
    old, new = before.text if before else "", now.text if now else ""
    what = "changed" if before else "new"
    if not now:
        what = "gone"
    lines: Iterator[str] = iter(())
    if old is not None and new is not None:
        names = (name if before else "(new)", name if now else "(gone)")
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
    return "".join(f"{line}\n" for line in lines) or f"{name}: {what}\n"
