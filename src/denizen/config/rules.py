"""Matching the user's policy rules: the parts of a command, paths, addresses, otherwise the arguments as JSON.

A rule that allows must cover all that a call would do, so what isn't understood is never allowed by a pattern; a rule
that asks or denies needs to meet but one part of it. A rule is a wish, not a boundary: the sandbox is the boundary.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from denizen.config.commands import is_compound, possible_commands, simple_commands
from denizen.config.settings import Rule
from denizen.config.shell_script import UNKNOWN
from denizen.errors import ConfigError

_TOKEN = re.compile(r"\[!?\]?[^]]*\]|.", re.DOTALL)
"""A piece of a shell pattern."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")
_STRICTEST_FIRST = ("deny", "ask", "allow")
_VERBS = {"allow": "allows", "ask": "asks about", "deny": "denies"}


class RuleSubject(msgspec.Struct, frozen=True):
    """One thing that a call would do.

    A rule that allows must match all of `surely` (empty: only the exact `whole` will do); one that asks or denies needs
    to match only one of `perhaps`, where `UNKNOWN` may be any text. What an allowed command runs by itself (`inner`)
    needs no rule of its own that allows it.
    """

    whole: str
    surely: tuple[str, ...]
    perhaps: tuple[str, ...]
    inner: bool = False


def deciding_rule(
    rules: Sequence[Rule],
    tool: str,
    args: Mapping[str, Any],
    workspace: Path | None = None,
    paths: Sequence[str] = (),
) -> Rule | None:
    """The rule that decides a call: the last that matches; of a call with several parts, the strictest of theirs.

    None: no rule matches, or not every part is allowed by one, and the default policy decides. A rule that would deny
    or ask, depending on what isn't known before the command runs, is returned as one that asks. Relative paths are
    those of `workspace`; `paths` are further ones that the call is about (those in a patch).
    """
    relevant = [rule for rule in reversed(rules) if fnmatchcase(tool, rule.tool)]
    if not relevant:
        return None
    whole = all_arguments(args)
    found = [(_last_match(relevant, part, whole), part.inner) for part in _parts(args, workspace, paths)]
    allowed = (None, False) not in found
    return _strictest([rule for rule, inner in found if rule and (rule.decide != "allow" or (allowed and not inner))])


class DeniedPaths:
    """The paths of a workspace that rules deny to a tool, even if it comes upon them by itself.

    `patterns` are those of the rules, relative to the workspace.
    """

    def __init__(self, rules: Sequence[Rule] = (), tool: str = "", workspace: Path = Path()) -> None:
        self._rules = [
            rule for rule in reversed(rules) if fnmatchcase(tool, rule.tool) and not rule.match.startswith("{")
        ]
        self._workspace = workspace
        self.patterns = [
            rule.match.removeprefix(f"{workspace}/")
            for rule in self._rules
            if rule.decide == "deny" and rule.match.strip("*")
        ]

    def __contains__(self, path: object) -> bool:
        """Whether a path, relative to the workspace and without detours, is denied."""
        if not self.patterns:
            return False
        forms = (f"{path}", f"{path}/", f"{self._workspace}/{path}", f"{self._workspace}/{path}/")
        rule = _last_match(self._rules, RuleSubject(f"{path}", forms[:1], forms), "")
        return rule is not None and rule.decide == "deny"


def check_examples(rule: Rule) -> None:
    """Raise ConfigError when one of the rule's examples isn't matched by it, or one of `not_examples` is."""
    for wanted, examples in ((True, rule.examples), (False, rule.not_examples)):
        for example in examples:
            parts = _command_parts(example) if rule.tool == "bash" else [RuleSubject(example, (example,), (example,))]
            if (all if rule.decide == "allow" else any)(_matches(rule, part) for part in parts) != wanted:
                raise ConfigError(
                    f"The rule that {_VERBS[rule.decide]} {rule.tool} {rule.match!r} "
                    f"{'does not match its example' if wanted else 'matches what it must not'}: {example!r}. "
                    "Change the pattern or the example."
                )


def main_argument(args: Mapping[str, Any]) -> str:
    """The main argument of a call as text: its command, path or address, otherwise its arguments as JSON."""
    for name in ("command", "path", "url"):
        if isinstance(args.get(name), str):
            return args[name]
    return all_arguments(args)


def all_arguments(args: Mapping[str, Any]) -> str:
    """A call's arguments as JSON: what a rule that begins with `{` is held against."""
    return msgspec.json.encode(args, order="sorted").decode()


def literally(text: str) -> str:
    """The pattern that matches this very text."""
    return re.sub(r"([*?[])", r"[\1]", text)


def plain_url(url: str) -> str:
    """The address as rules see it: scheme and host in small letters, and a path; empty when it isn't an address."""
    try:
        pieces = urlsplit(url)
    except ValueError:
        return ""
    plain = pieces._replace(scheme=pieces.scheme.lower(), netloc=pieces.netloc.lower(), path=pieces.path or "/")
    return plain.geturl() if pieces.netloc else ""


def _parts(args: Mapping[str, Any], workspace: Path | None, further: Sequence[str] = ()) -> list[RuleSubject]:
    if isinstance(args.get("command"), str):
        return _command_parts(args["command"])
    listed = args["paths"] if isinstance(args.get("paths"), list) else []
    paths = [path for path in (args.get("path"), *listed, *further) if isinstance(path, str)]
    if paths:
        return [_path_part(path, workspace) for path in paths]
    whole = main_argument(args)
    if isinstance(args.get("url"), str):
        plain = plain_url(whole)
        return [RuleSubject(whole, (plain,) if plain else (), (whole, plain))]
    return [RuleSubject(whole, (whole,), (whole,))]


def _command_parts(command: str) -> list[RuleSubject]:
    possible = possible_commands(command)
    if certain := simple_commands(command):
        possible = [*certain, *(part for part in possible if part.inner or UNKNOWN in part.unquoted)]
    return [
        RuleSubject(
            command,
            (part.text,) if certain else (),
            (part.text, part.unquoted, *part.effective_commands()),
            inner=bool(certain) and part not in certain,
        )
        for part in possible
    ]


def _path_part(path: str, workspace: Path | None) -> RuleSubject:
    """A path as written, without its detours, and as the file system resolves it: `docs/link` may be `secrets`."""
    if "\0" in path:
        return RuleSubject(path, (), (path,))
    plain = posixpath.normpath(path)
    surely = {plain}
    if workspace:
        place = workspace / path
        surely = {_within(posixpath.normpath(place), workspace), _within(os.path.realpath(place), workspace.resolve())}
    perhaps = {path, plain, *surely}
    return RuleSubject(path, tuple(surely), (*perhaps, *(f"{place}/" for place in perhaps)))


def _within(place: str, folder: Path) -> str:
    return str(Path(place).relative_to(folder)) if Path(place).is_relative_to(folder) else place


def _last_match(latest_first: Iterable[Rule], part: RuleSubject, whole: str) -> Rule | None:
    unclear: list[Rule] = []
    for rule in latest_first:
        if _matches(rule, part) or (rule.match.startswith("{") and fnmatchcase(whole, rule.match)):
            return _strictest([rule, *unclear])
        if rule.decide != "allow" and any(_could_match(text, rule.match) for text in part.perhaps):
            unclear = [msgspec.structs.replace(rule, decide="ask")]
    return _strictest(unclear)


def _strictest(rules: Sequence[Rule]) -> Rule | None:
    return min(rules, key=lambda rule: _STRICTEST_FIRST.index(rule.decide), default=None)


def _could_match(text: str, pattern: str) -> bool:
    """Whether the pattern matches for some value of what isn't known: of the program, or of a word that it names."""
    if UNKNOWN not in text or (pattern[0] in "*?[" and text[0] != UNKNOWN):
        return False
    tokens = _TOKEN.findall(pattern)
    places = _after_stars([0], tokens)
    for char in text:
        if char == UNKNOWN:
            places = {*range(min(places), len(tokens) + 1)}
        else:
            stay = [place for place in places if tokens[place : place + 1] == ["*"]]
            step = [place + 1 for place in places if place < len(tokens) and fnmatchcase(char, tokens[place])]
            places = _after_stars([*stay, *step], tokens)
        if not places:
            return False
    return len(tokens) in places


def _after_stars(places: Iterable[int], tokens: Sequence[str]) -> set[int]:
    found = {*places}
    for place, piece in enumerate(tokens):
        if place in found and piece == "*":
            found.add(place + 1)
    return found


def _matches(rule: Rule, part: RuleSubject) -> bool:
    if rule.match == "*":
        return True
    if rule.decide != "allow":
        texts = (part.whole,) if is_compound(rule.match) else part.perhaps
        return any(fnmatchcase(text, rule.match) for text in texts)
    if len(rule.match) >= len(part.whole) and rule.match == literally(part.whole):
        return True
    return bool(part.surely) and all(_covers(rule.match, text) for text in part.surely)


def _covers(pattern: str, text: str) -> bool:
    """Whether a pattern that allows matches; in an address, its `*` in the host's name ends with that."""
    if _ADDRESS.match(text) and not fnmatchcase(_site(text), _site(pattern)):
        return False
    return fnmatchcase(text, pattern)


def _site(address: str) -> str:
    return "/".join(address.split("/")[: 3 if "://" in address else 1])
