"""A character's soul: SOUL.md, its own additions (SOUL.patch.md), and the part it shares (baseline.md).

Decisions, "A soul is two files".
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from denizen.config.extras import how_to_install
from denizen.config.files import as_text, read_settings, write_private
from denizen.errors import ConfigError
from denizen.worlds.moo.folder import PATCH, SOUL
from denizen.worlds.moo.group import GROUP
from denizen.worlds.moo.quoting import one_line

BASELINE: Final = "baseline.md"
RULES, VERBS, LESSONS = "Rules of Engagement", "Verb Mapping", "Lessons Learned"
MAX_LINKED_CHARS: Final = 40_000
"""Characters that links may lead to, all together."""
MAX_LEARNED_CHARS: Final = 40_000
"""Characters of what was learned, which is part of every prompt."""

_SECTIONS: Final = ("Name", "Mission", "Persona", "Context", "Tools", RULES, VERBS, "Response Format", LESSONS)
_PATCHES: Final = {"soul_patch_rule": RULES, "soul_patch_verb": VERBS, "soul_patch_note": LESSONS}
_HEADING: Final = re.compile(r"(?P<level>#{1,2})\s+(?P<title>\S.*?)\s*#*\s*")
_ITEM: Final = re.compile(r"\s*[-*]\s+(?P<mark>!)?\s*(?P<text>\S.*)")
_ARROW: Final = re.compile(r"(?:`(?P<code>[^`]+)`|(?P<plain>.+?))\s*(?:->|→)\s*(?P<command>\S.*)")
_LINK: Final = re.compile(r"\[[^\[\]\n]{0,200}\]\((?P<path>[^()\s]{1,300}\.(?:md|txt))\)")
_MAX_RULE_BYTES: Final = 1 << 20
"""Bytes that a compiled rule may take."""
_UNRELATED_LINES: Final = ("The fog lifts.", "Tinker waves", "You leave #59 (Site Hut).", "quiet on", "12 coins", "???")
"""Lines that have nothing in common: a rule that matches nearly all of them matches everything."""


class CompiledRule(Protocol):
    """A regular expression that is ready to search."""

    def search(self, text: str, /) -> object | None:
        """Something, where the text has a match."""


class SoulRule(msgspec.Struct, frozen=True):
    """An automatic answer to a line; `for_players`: also for lines that players may have said."""

    pattern: str
    command: str
    for_players: bool = False


class Soul(msgspec.Struct, frozen=True):
    """A character; `verbs` are intents and what they mean, `problems` what is wrong in its files."""

    name: str = ""
    mission: str = ""
    persona: str = ""
    context: str = ""
    tools: Sequence[str] = ()
    rules: Sequence[SoulRule] = ()
    verbs: Sequence[tuple[str, str]] = ()
    response_format: str = ""
    lessons: Sequence[str] = ()
    problems: Sequence[str] = ()

    @property
    def prompt(self) -> str:
        """Who it is, in words for the model."""
        verbs = "\n".join(f"- {intent} -> {command}" for intent, command in self.verbs)
        parts = {
            "": f"You are {self.name}, a character in a text world." if self.name else "",
            "Mission": self.mission,
            "Persona": self.persona,
            "Context": self.context,
            VERBS: verbs,
            LESSONS: "\n".join(f"- {lesson}" for lesson in self.lessons),
            "Response Format": self.response_format,
        }
        return "\n\n".join(f"# {title}\n{text}" if title else text for title, text in parts.items() if text)


def read_soul(folder: Path, *, use_baseline: bool = True) -> Soul:
    """The character of an agent's directory. Raises ConfigError for a file that can't be read."""
    problems: list[str] = []
    own, patch = (_sections(_read(folder / name)) for name in (SOUL, PATCH))
    base = _sections(_read(folder.parent / BASELINE)) if use_baseline else {}
    shared = "\n\n".join(text for title, text in base.items() if title not in {RULES, VERBS, "Tools"} and text)
    links = _Links(folder, problems)
    context = links.followed(BASELINE, folder.parent, shared), links.followed(SOUL, folder, own.get("Context", ""))
    sources = ((SOUL, own), (PATCH, patch), (BASELINE, base))
    return Soul(
        name=own.get("Name", ""),
        mission=own.get("Mission", ""),
        persona=own.get("Persona", ""),
        context="\n\n".join(filter(None, context)),
        tools=[found[0] for _, item in _items(own.get("Tools", "")) if (found := re.search(r"\w+", item))],
        rules=[rule for name, each in sources for rule in _rules(name, each.get(RULES, ""), problems)],
        verbs=[verb for name, each in sources for verb in _verbs(name, each.get(VERBS, ""), problems)],
        response_format=own.get("Response Format", ""),
        lessons=[item for _, item in _items(patch.get(LESSONS, ""))],
        problems=problems,
    )


def patch_soul(folder: Path, name: str, text: str) -> str:
    """Add what the model has learned, by the directive of that name, unless it is there already.

    What became of it, for the log: an invalid rule isn't added. Raises ConfigError when the disk refuses.
    """
    line, section = one_line(text), _PATCHES[name]
    if section != LESSONS:
        found = _ARROW.fullmatch(line)
        if found is None:
            return f"Not learned: it has no `->`: {line}"
        what = found["code"] or found["plain"].strip("` ")
        if section == RULES and (problem := rule_problem(what)):
            return f"Not learned: {problem}"
        line = f"`{what}` -> {found['command']}" if section == RULES else f"{what} -> {found['command'].strip('` ')}"
    whole = _read(folder / PATCH)
    if f"- {line}" in whole.splitlines():
        return f"Known already: {line}"
    if len(whole) + len(line) > MAX_LEARNED_CHARS:
        return f"Not learned: {PATCH} has {len(whole):,} characters, and may have {MAX_LEARNED_CHARS:,}: {line}"
    head, heading, rest = f"\n{whole}".partition(f"\n## {section}\n")
    if heading:
        body, following, tail = rest.partition("\n## ")
        rest = f"{body.rstrip()}\n- {line}\n{following}{tail}"
    else:
        head, heading, rest = f"{head.rstrip()}\n", f"\n## {section}\n", f"- {line}\n"
    write_private(folder / PATCH, f"{head}{heading}{rest}".lstrip("\n").encode())
    return f"Learned: {line}"


def compile_rule(pattern: str) -> CompiledRule:
    """A rule's regular expression, in RE2: it takes time in proportion to the line, whatever the two are.

    Raises ConfigError for one that RE2 can't express.
    """
    try:
        import re2
    except ImportError as error:
        raise ConfigError(f"Rules need the package google-re2: {how_to_install('moo')}") from error
    options = re2.Options()
    options.log_errors, options.max_mem = False, _MAX_RULE_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace")
        raise ConfigError(f"RE2 can't read the regular expression `{pattern}`: {why}") from error


def rule_problem(pattern: str) -> str:
    """Why a regular expression can't be a rule's; empty: it can."""
    try:
        compiled = compile_rule(pattern)
    except ConfigError as error:
        return str(error)
    if (
        compiled.search("")
        or sum(compiled.search(line) is not None for line in _UNRELATED_LINES) >= len(_UNRELATED_LINES) - 1
    ):
        return f"`{pattern}` matches everything"
    return ""


def _read(path: Path) -> str:
    return as_text(read_settings(path) or b"", path)


def _sections(text: str) -> dict[str, str]:
    """The text of each section; what has no section, or one of its own, belongs to the context."""
    found: dict[str, list[str]] = {}
    title, in_fence = "Context", False
    for line in text.splitlines():
        in_fence ^= line.lstrip().startswith("```")
        heading = None if in_fence else _HEADING.fullmatch(line)
        known = next((name for name in _SECTIONS if heading and name.lower() == heading["title"].lower()), "")
        if heading:
            title = known or "Context"
        if not known:
            found.setdefault(title, []).append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


def _items(text: str) -> list[tuple[bool, str]]:
    """The items of a list, and whether each is marked with `!`."""
    items = (_ITEM.fullmatch(line) for line in text.splitlines())
    return [(bool(item["mark"]), item["text"].strip()) for item in items if item]


def _rules(name: str, text: str, problems: list[str]) -> list[SoulRule]:
    rules: list[SoulRule] = []
    for marked, item in _items(text):
        found = _ARROW.fullmatch(item)
        pattern = (found["code"] or found["plain"]).strip() if found else ""
        problem = rule_problem(pattern) if found else f"`{item}` has no `->`"
        if found and not problem:
            rules.append(SoulRule(pattern, found["command"].strip("` "), marked and name != PATCH))
        else:
            problems.append(f"{name}: a rule has no effect: {problem}.")
    return rules


def _verbs(name: str, text: str, problems: list[str]) -> list[tuple[str, str]]:
    items = [(item, _ARROW.fullmatch(item)) for _, item in _items(text)]
    problems += [f"{name}: `{item}` has no `->` and is ignored." for item, found in items if not found]
    return [(found["code"] or found["plain"], found["command"]) for _, found in items if found]


class _Links:
    """Follows links to texts in an agent's directory and, where that is in a group's, in this one."""

    def __init__(self, folder: Path, problems: list[str]) -> None:
        group = folder.parent
        is_group = any((group / name).is_file() for name in (BASELINE, GROUP))
        self._folder = (group if is_group else folder).resolve()
        self._problems = problems
        self._left = MAX_LINKED_CHARS

    def followed(self, name: str, base: Path, text: str) -> str:
        """The text of a file in `base` with what its links lead to in their place."""

        def content(link: re.Match[str]) -> str:
            path = (base / link["path"]).resolve()
            if "://" in link["path"]:
                return link[0]
            if not (path.is_relative_to(self._folder) and path.is_file()):
                return self._leave(link, f"{name}: {link['path']} isn't there, or not in {self._folder}.")
            try:
                linked = _read(path).strip()
            except ConfigError as error:
                return self._leave(link, str(error))
            if len(linked) > self._left:
                return self._leave(
                    link, f"{name}: {link['path']} isn't read: more than {MAX_LINKED_CHARS:,} characters."
                )
            self._left -= len(linked)
            return linked

        return _LINK.sub(content, text)

    def _leave(self, link: re.Match[str], problem: str) -> str:
        self._problems.append(problem)
        return link[0]
