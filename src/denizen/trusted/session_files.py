"""Files that sessions begin with: what a command changes in them counts only once a person accepts it."""

import difflib
import glob
import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from denizen.config.files import read_file
from denizen.config.home import places, sole_writer
from denizen.config.pins import Pins, pin_name
from denizen.config.settings import Config
from denizen.config.trust import AGENT_FOLDERS, SKILL_FOLDERS, is_trusted
from denizen.text.printable import printable
from denizen.trusted.pending_checks import PendingNote, await_commands, is_owned, read_note, remove_note

NAMES = (
    *("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md"),
    *("IDENTITY.md", "MEMORY.md", "HEARTBEAT.md", "BOOTSTRAP.md"),
)
"""Read from `agent.workspace_dir`, in this order (decisions, "The system prompt")."""

PROJECT_NAMES = ("AGENTS.md", "CLAUDE.md")
"""Read from the root of a workspace that is a project."""

_NOTES = "memory/[0-9]*/[0-9]*.md"
SKILL = "SKILL.md"
_MAX_BYTES = 1_000_000  # of a file whose text is kept: two versions of it fit into a pin, whatever characters they have
_MAX_COMPARED = 4_000_000  # of a larger one, its first and its last
_MAX_LINES = 40_000  # of two versions that are compared: it takes time

Carry = Callable[[Path, str, str], None]
"""Takes a file, its text before Denizen itself wrote it, and after."""


class _Pin(msgspec.Struct, frozen=True):
    """The text of a file that counts (empty: there is none), and what the file held when that was so."""

    place: str
    accepted: str = ""
    found: str = ""


class _Look(msgspec.Struct, frozen=True):
    """A look that is under way, as noted on disk: its patterns, and the files that were there."""

    patterns: Sequence[str]
    there: Sequence[str]

    def paths(self) -> set[Path]:
        """The files that were there or are now."""
        return {*map(Path, self.there), *_matching(self.patterns)}


class OpenLook(PendingNote):
    """A look that lasts until `close`; if its process dies, the next one closes it."""

    def __init__(self, folder: Path, look: _Look, close: Callable[[Path, _Look], str]) -> None:
        super().__init__(folder, look)
        self._look, self._close = look, close

    def close(self) -> str:
        """Set aside what has changed; what that was, for the user and the model (empty: nothing)."""
        return self._close(self.note, self._look)


class SessionFiles:
    """The files that match the absolute `patterns`, with their pins in `home`. Of skills, whole folders are pinned.

    While something runs that was looked at before, changes don't count, except what Denizen itself writes
    (`writing`). What then differs is set aside: the version from before counts, with what else changes later, until a
    person accepts it. Pins and looks are on disk: whoever comes next ends the looks of a process that died.

    All methods raise ConfigError when the home can't be used.
    """

    def __init__(self, home: Path, patterns: Sequence[str] = ()) -> None:
        self.home = home
        self._patterns = patterns
        self._pins = Pins(home / "pins", _Pin)
        self._looks = home / "looks"
        self._unchanged: dict[Path, tuple[int, ...]] = {}

    @classmethod
    def of(cls, config: Config) -> "SessionFiles":
        """Those of a located configuration: the agent's own, and the project's."""
        home, workspace = places(config)
        own = config.agent.workspace_dir
        agents, project = glob.escape(str(home)), glob.escape(str(workspace))
        patterns = [f"{glob.escape(str(own))}/{name}" for name in (*NAMES, _NOTES, f"skills/*/{SKILL}")]
        patterns.append(f"{agents}/agents/*.md")
        if workspace != own:
            patterns += [f"{project}/{name}" for name in PROJECT_NAMES]
            names = [*(f"{each}/*/{SKILL}" for each in SKILL_FOLDERS), *(f"{each}/*.md" for each in AGENT_FOLDERS)]
            patterns += [f"{project}/{name}" for name in names if is_trusted(home, workspace)]
        return cls(home, patterns)

    def look(self) -> OpenLook:
        """Note what there is, before something runs that may change it."""
        with self._locked() as looks:
            there = _matching(self._patterns)
            for path in there.difference(*(look.paths() for look in looks)):
                if self._has_changed(path):
                    self._settle(path)
            return OpenLook(self._looks, _Look(self._patterns, sorted(map(str, there))), self._close)

    @contextmanager
    def watch(self, report: Callable[[str], object]) -> Generator[None]:
        """Look before and after what runs meanwhile, and report what was set aside, if anything was."""
        look = self.look()
        try:
            yield
        finally:
            if words := look.close():
                report(words)

    @contextmanager
    def writing(self) -> Generator[Carry]:
        """Changes carried in this block count, even while a command runs."""
        with self._locked() as looks:

            def carry(path: Path, before: str, after: str) -> None:
                if any(path in look.paths() for look in looks):
                    pin = self._pin(path)
                    self._write(msgspec.structs.replace(pin, accepted=_carried_over(pin.accepted, before, after)))

            yield carry

    def counted(self, paths: Sequence[Path]) -> list[str | None]:
        """The texts that count of these files; None if it is what the file holds."""
        with self._locked() as looks:
            under_way = set[Path]().union(*(look.paths() for look in looks))
            return [self._pin(path).accepted if path in under_way else self._merged(path) for path in paths]

    def text(self, path: Path) -> str:
        """The text of a file that counts."""
        [counted] = self.counted([path])
        return text_of(path) if counted is None else counted

    def set_aside(self) -> list[Path]:
        """The files with a change that waits to be accepted; of skills, their pins say it."""
        paths = [path for path in sorted(_matching(self._patterns)) if path.name != SKILL]
        counted = zip(paths, self.counted(paths), strict=True)
        return [path for path, text in counted if text is not None and text != text_of(path)]

    def difference(self, path: Path) -> str:
        """How a file differs from the text that counts, as a diff; empty: not at all."""
        old, new = self.text(path).splitlines(), text_of(path).splitlines()
        return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, "counts", str(path), lineterm=""))

    def accept(self, path: Path) -> None:
        """Let a file count as it is now."""
        with self._locked():
            now = text_of(path)
            self._write(_Pin(str(path), now, now))

    @contextmanager
    def _locked(self) -> Generator[list[_Look]]:
        """The looks that are under way, after those were ended that nobody else can; meanwhile nobody else has them."""
        if not any(self._looks.glob("*.json")):
            yield []
            return
        with sole_writer(self.home):
            looks: list[_Look] = []
            orphaned: list[tuple[Path, _Look]] = []
            for note in [*self._looks.glob("*.json")]:
                look = read_note(note.read_bytes(), _Look) or _Look(self._patterns, [])
                if is_owned(note):
                    looks.append(look)
                else:
                    orphaned.append((note, look))
            if orphaned:
                await_commands(self.home)
            for note, look in orphaned:
                self._judge(note, look)
            yield looks

    def _close(self, note: Path, look: _Look) -> str:
        with self._locked():
            changed = ", ".join(printable(str(path)) for path in self._judge(note, look))
        return changed and (
            f"[set aside, because sessions begin with it: {changed}. Until the user accepts the change (denizen skills "
            "check, denizen trust FILE), the version from before counts.]"
        )

    def _judge(self, note: Path, look: _Look) -> list[Path]:
        """End a look: take down what there is now, and return what is set aside thereby."""
        changed: list[Path] = []
        for path in sorted(filter(self._has_changed, look.paths())):
            pin, now = self._pin(path), text_of(path)
            if now != pin.found:
                self._write(msgspec.structs.replace(pin, found=now))
                changed += [path] if now != pin.accepted else []
        remove_note(note)
        return changed

    def _settle(self, path: Path) -> None:
        """Take what was changed since the last look for a person's work: nothing ran."""
        version, pin, now = _version(path), self._pin(path), text_of(path)
        same = pin.accepted == pin.found
        settled = _Pin(str(path), now if same else _carried_over(pin.accepted, pin.found, now), now)
        if settled != pin:
            self._write(settled)
        if settled.accepted == now:
            self._unchanged[path] = version

    def _has_changed(self, path: Path) -> bool:
        """Whether it isn't the very file any more whose text was accepted as a whole."""
        return self._unchanged.get(path) != _version(path)

    def _merged(self, path: Path) -> str | None:
        """The text of a file that counts while nothing runs; None: what it holds."""
        pin = self._pin(path)
        return None if pin.accepted == pin.found else _carried_over(pin.accepted, pin.found, text_of(path))

    def _pin(self, path: Path) -> _Pin:
        return self._pins.read(pin_name(path)) or _Pin(str(path))

    def _write(self, pin: _Pin) -> None:
        self._pins.write(pin_name(Path(pin.place)), pin, sync=False)


def _matching(patterns: Sequence[str]) -> set[Path]:
    """The files that match; a pattern without a match stands for itself: such a file may be made."""
    return {Path(path) for pattern in patterns for path in glob.glob(pattern) or [pattern]}  # noqa: PTH207 (faster)


def _version(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)  # noqa: PTH116 (faster)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def text_of(path: Path) -> str:
    """A file's text, or the digest of a large one; empty if it isn't there or can't be read."""
    try:
        data = read_file(path, _MAX_COMPARED) or b""
        if len(data) > _MAX_BYTES:
            end = read_file(path, _MAX_COMPARED, from_end=True) or b""
            return f"[too large to keep; SHA-256 {hashlib.sha256(data + end).hexdigest()}]\n"
    except OSError:
        return ""
    return data.decode("utf-8-sig", errors="replace")


def _carried_over(accepted: str, before: str, after: str) -> str:
    """The accepted text with the lines that differ between two versions of the file, unless there are too many."""
    lines, old, new = (text.splitlines(keepends=True) for text in (accepted, before, after))
    if before == after or len(old) + len(new) > _MAX_LINES:
        return accepted
    places = [len(lines)] * (len(old) + 1)  # of each old line, where it is, or would be, in the accepted text
    for tag, start, end, to, _ in difflib.SequenceMatcher(None, old, lines).get_opcodes():
        places[start:end] = range(to, to + end - start) if tag == "equal" else [to] * (end - start)
    changes = difflib.SequenceMatcher(None, old, new).get_opcodes()
    for tag, start, end, first, last in reversed(changes):
        if tag != "equal":
            lines[places[start] : places[end]] = new[first:last]
    return "".join(lines)
