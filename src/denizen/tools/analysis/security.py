"""Risky places, found in the syntax tree by the rules of `security.toml`: hints to look at, not proof of a fault."""

import functools
import re
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from denizen.plural import counted
from denizen.structure.languages import grammar, parse
from denizen.tools.analysis.risky_text import risky_text
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable

if TYPE_CHECKING:
    from tree_sitter import Node, Query

SEVERITIES = ("high", "medium", "low")
LONGEST = 4_000
"""Bytes of a place that are held against the rules."""
LONGEST_NAME = 60
"""Characters of it that are shown."""
_RULES = Path(__file__).with_name("security.toml")
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|testdata|fixtures)/|(?:^|/)test_|[._-](?:test|spec)\.\w+$"
)
_PLAIN = re.compile(r"""[\s(]*(?:"[^"{}$#\\]*"|'[^'{}$#\\]*')[\s)]*""")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule, as `security.toml` explains."""

    id: str
    severity: str
    says: str
    languages: list[str]
    call: str = ""
    unless_call: str = ""
    args: str = ""
    unless: str = ""
    code: str = ""
    file: str = ""
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule with its patterns compiled."""

    rule: Rule
    call: re.Pattern[str]
    unless_call: re.Pattern[str]
    args: re.Pattern[str]
    unless: re.Pattern[str]
    code: re.Pattern[str]
    file: re.Pattern[bytes]

    def fits_call(self, head: str, args: str) -> bool:
        """Whether it is about a call with those words before its arguments."""
        if not self.rule.call or not self.call.search(head) or self.unless_call.search(head):
            return False
        if self.rule.dynamic and _PLAIN.fullmatch(args):
            return False
        return bool(self.args.search(args)) and not self.unless.search(args)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one language, and what of its files they look at."""

    query: "Query"
    rules: Sequence[_Rule]


@dataclass(frozen=True, slots=True)
class Risk:
    """A risky place: how bad it may be, the rule, what it is, and what to do."""

    severity: str
    rule: str
    line: int
    what: str
    says: str


def security(scope: Scope) -> Findings:
    """The risky places, the worst first."""
    found: list[tuple[int, str, Risk]] = []
    for file, risky in scope.measured(f"risks {zlib.crc32(_RULES.read_bytes())}", risks, Risk):
        for risk in risky:
            severity = "low" if risk.rule == "secret" and _TESTS.search(file.path) else risk.severity
            found.append((SEVERITIES.index(severity), file.path, replace(risk, severity=severity)))
    found.sort(key=lambda each: (each[0], each[1], each[2].line))
    counts = [f"{sum(each[0] == at for each in found)} {name}" for at, name in enumerate(SEVERITIES)]
    findings = Findings(f"{counted(len(found), 'place')}: {', '.join(counts)}")
    for _, path, risk in found:
        row = f"{risk.severity:<6}  {path}:{risk.line}  {risk.rule}: {risk.what}  {risk.says}"
        findings.add(printable(row), file=path, **msgspec.to_builtins(risk))
    findings.remarks = [
        "hints by patterns: where the data comes from isn't followed, and what no rule names isn't seen"
    ]
    return findings


def languages() -> Sequence[str]:
    """Those that there are rules for."""
    return list(_table()["languages"])


def risks(source: bytes, language: str) -> list[Risk]:
    """The risky places of one file, none where there are no rules. Only for what `parsed` runs."""
    import tree_sitter

    if language not in languages():
        return []
    rules = _rules(language)
    found: dict[tuple[int, str], Risk] = {}
    for _, captures in tree_sitter.QueryCursor(rules.query).matches(parse(source, language).root_node):
        nodes = {name: found[0] for name, found in captures.items()}
        start = min(node.start_byte for node in nodes.values())
        for risk in _risks(rules, source, nodes, language):
            found.setdefault((start, risk.rule), risk)
    return [*found.values()]


def _risks(rules: Rules, source: bytes, nodes: "dict[str, Node]", language: str) -> Iterator[Risk]:
    if string := nodes.get("string"):
        for severity, rule, what, says in risky_text(string, source, language):
            yield Risk(severity, rule, string.start_point[0] + 1, what, says)
    elif call := nodes.get("call"):
        yield from _calls(rules, source, call, nodes)
    elif code := nodes.get("code"):
        text = _text(source, code.start_byte, code.end_byte)
        for each in rules.rules:
            if each.rule.code and each.code.match(text) and each.file.search(source):
                yield _risk(each.rule, code, text)


def _calls(rules: Rules, source: bytes, call: "Node", nodes: "dict[str, Node]") -> Iterator[Risk]:
    border = nodes["arguments"].start_byte if "arguments" in nodes else nodes["head"].end_byte
    head = _text(source, max(call.start_byte, border - 200), border).strip()
    args = _text(source, border, call.end_byte)
    for each in rules.rules:
        if each.fits_call(head, args) and each.file.search(source):
            yield _risk(each.rule, call, head)


def _risk(rule: Rule, node: "Node", what: str) -> Risk:
    word = " ".join(what.split())
    return Risk(
        rule.severity, rule.id, node.start_point[0] + 1, word[-LONGEST_NAME:] if rule.call else rule.id, rule.says
    )


def _text(source: bytes, start: int, end: int) -> str:
    return source[start : min(end, start + LONGEST)].decode(errors="replace")


@functools.cache
def _rules(language: str) -> Rules:
    import tree_sitter

    table = _table()
    rules = [_compiled(rule) for rule in msgspec.convert(table["rules"], list[Rule]) if language in rule.languages]
    return Rules(tree_sitter.Query(grammar(language), table["languages"][language]), rules)


def _compiled(rule: Rule) -> _Rule:
    never = "(?!)"
    return _Rule(
        rule,
        re.compile(rf"(?:(?<![\w$])|(?=\.))(?:{rule.call})$" if rule.call else never),
        re.compile(rf"(?:{rule.unless_call})$" if rule.unless_call else never),
        re.compile(rule.args),
        re.compile(rule.unless or never),
        re.compile(rule.code or never),
        re.compile(rule.file.encode()),
    )


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(_RULES.read_text("utf-8"))
