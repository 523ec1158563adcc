"""`analyze security`: risky places in the syntax tree, by the rules of `security.toml`.

Secrets written into the code and SQL built from pieces are found by rules of their own here; a secret is never shown.
"""

import functools
import re
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from denizen.config.redact import KNOWN_KEY
from denizen.structure.languages import grammar, parse
from denizen.text.plural import counted
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.analysis.scope import Findings, Scope

if TYPE_CHECKING:
    from tree_sitter import Node, Query

SEVERITIES = ("high", "medium", "low")
MAX_PLACE_BYTES = 4_000  # bytes of a place that the rules see
MAX_NAME_CHARS = 60  # characters of it that are shown
_RULES = Path(__file__).with_name("security.toml")
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|testdata|fixtures)/|(?:^|/)test_|[._-](?:test|spec)\.\w+$"
)
_CONSTANT = re.compile(r"""[\s(]*(?:"[^"{}$#\\]*"|'[^'{}$#\\]*')[\s)]*""")
_NAMED = re.compile(
    r"""(?:passw(?:or)?d|passphrase|pwd|secret|token(?!s)(?!i[sz]er)|api[_-]?key|access[_-]?key|private[_-]?key|credential)
    (?!\w*(?:field|name|template|prefix|url|path|file|type|header|label|message)\b)
    \w*(?=["'\]]*\s*(?::\s*[\w<>\[\].?& ]+\s*)?(?:=>|:=|[=:])\s*[bfru@$]{0,2}$)""",
    re.IGNORECASE | re.VERBOSE,
)
_NAME = re.compile(r"[\w.-]*$")
_NO_SECRET = re.compile(
    r"(?i)|.{0,5}|(?-i:[A-Z][A-Z\d_]*_[A-Z\d_]*)"
    r"|.*(?:example|changeme|placeholder|dummy|your[_-]|xxx|\*\*\*|<|\$\{|\{\{|%s|\s).*"
    r"|[\w.-]*(?:password|passwd|token|secret|api_?key|key)s?\d?"
    r"|bearer|basic|none|null|true|false|default|string|required"
)
_DEFAULTS = frozenset(
    {"default_parameter", "typed_default_parameter", "assignment_pattern", "required_parameter", "optional_parameter"}
    | {"parameter", "simple_parameter", "parameter_declaration", "optional_parameter_declaration", "keyword_parameter"}
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_.-]*")
_SQL = re.compile(
    r"""(?i)^[^\w]{0,4}[bfru@$]{0,2}[^\w]{0,4}
    (?:select\s.+?\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|drop\s+table\s)""",
    re.VERBOSE | re.DOTALL,
)
_PIECES = frozenset(
    {"interpolation", "template_substitution", "interpolated_expression", "variable_name", "interpolated_identifier"}
)
_JOINING = frozenset(
    {"concatenated_string", "parenthesized_expression", "argument", "binary_operator", "binary_expression"}
    | {"additive_expression", "binary"}
)
_STRINGS = re.compile("string|text")
_QUOTES = re.compile(r"""^[bfruBFRU@$]{0,3}(?:#*["'`]+)|(?:["'`]+#*)$""")
MAX_JOINED = 50  # parts of a string concatenation that are looked at


class SecurityRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule, as `security.toml` explains them."""

    id: str
    severity: str
    says: str
    languages: list[str]
    call: str = "(?!)"
    unless_call: str = "(?!)"
    args: str = ""
    unless: str = "(?!)"
    code: str = "(?!)"
    file: str = ""
    dynamic: bool = False

    def matches_call(self, callee: str, args: str) -> bool:
        """Whether it is about this call."""
        if not _pattern(rf"(?:(?<![\w$])|(?=\.))(?:{self.call})$").search(callee):
            return False
        if _pattern(rf"(?:{self.unless_call})$").search(callee) or (self.dynamic and _CONSTANT.fullmatch(args)):
            return False
        return bool(_pattern(self.args).search(args)) and not _pattern(self.unless).search(args)


@dataclass(frozen=True, slots=True)
class RiskyPlace:
    """A risky place: how bad it may be, the rule, what it is, and what to do."""

    severity: str
    rule: str
    line: int
    what: str
    says: str


def security(scope: Scope) -> Findings:
    """The risky places, the worst first."""
    found: list[tuple[int, str, RiskyPlace]] = []
    for file, risky in scope.measured(f"risks {zlib.crc32(_RULES.read_bytes())}", risks, RiskyPlace):
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
    """The languages with rules."""
    return list(_table()["languages"])


def risks(source: bytes, language: str) -> list[RiskyPlace]:
    """The risky places of one file, none if there are no rules. Call it only in functions that `parsed` runs."""
    import tree_sitter

    if language not in languages():
        return []
    query, rules = _rules(language)
    found: dict[tuple[int, str], RiskyPlace] = {}
    for _, captures in tree_sitter.QueryCursor(query).matches(parse(source, language).root_node):
        nodes = {name: found[0] for name, found in captures.items()}
        start = min(node.start_byte for node in nodes.values())
        for risk in _risks(rules, source, nodes, language):
            found.setdefault((start, risk.rule), risk)
    return [*found.values()]


def _risks(
    rules: Sequence[SecurityRule], source: bytes, nodes: "dict[str, Node]", language: str
) -> Iterator[RiskyPlace]:
    if string := nodes.get("string"):
        text, line = _text(source, string.start_byte, string.end_byte), string.start_point[0] + 1
        name = "a key or token" if KNOWN_KEY.search(text) else _secret_name(string, source, text)
        if name:
            yield RiskyPlace("high", "secret", line, name, "is in the code; keep it outside")
        if _SQL.match(text) and _is_built(string, text, language):
            yield RiskyPlace("high", "sql", line, "a query", "is built from pieces; pass the values as parameters")
    elif call := nodes.get("call"):
        border = nodes["arguments"].start_byte if "arguments" in nodes else nodes["head"].end_byte
        callee = _text(source, max(call.start_byte, border - 200), border).strip()
        args = _text(source, border, call.end_byte)
        for rule in rules:
            if rule.matches_call(callee, args) and _pattern(rule.file.encode()).search(source):
                name = " ".join(callee.split())[-MAX_NAME_CHARS:]
                yield RiskyPlace(rule.severity, rule.id, call.start_point[0] + 1, name, rule.says)
    elif code := nodes.get("code"):
        text = _text(source, code.start_byte, code.end_byte)
        for rule in rules:
            if _pattern(rule.code).match(text) and _pattern(rule.file.encode()).search(source):
                yield RiskyPlace(rule.severity, rule.id, code.start_point[0] + 1, rule.id, rule.says)


def _secret_name(string: "Node", source: bytes, text: str) -> str:
    """The name of the variable that a secret is given to; empty if the text isn't a secret."""
    start = max(source.rfind(b"\n", 0, string.start_byte) + 1, string.start_byte - 200)
    before = source[start : string.start_byte].decode(errors="replace")
    named = _NAMED.search(before)
    value = _QUOTES.sub("", text)
    is_default = string.parent is not None and string.parent.type in _DEFAULTS
    if not named or _NO_SECRET.fullmatch(value) or (is_default and _WORD.fullmatch(value)):
        return ""
    return _NAME.findall(before[: named.end()])[0]


def _is_built(string: "Node", text: str, language: str) -> bool:
    """Whether other values are part of the text, or joined with it."""
    if language == "kotlin" and re.search(r"\$[\w{]", text):
        return True
    if any(child.type in _PIECES for child in string.children):
        return True
    if language == "rust" and string.parent and string.parent.type == "token_tree" and "{" in text:
        return True
    parent = string.parent
    for _ in range(MAX_JOINED):
        if not parent or parent.type not in _JOINING:
            break
        if any(not _STRINGS.search(child.type) and child.type not in _JOINING for child in parent.named_children):
            return parent.type != "argument"
        parent = parent.parent
    if not parent or parent.type not in {"attribute", "field_expression", "member_expression"}:
        return False
    return (parent.text or b"").rstrip().endswith((b".format", b".concat"))


def _text(source: bytes, start: int, end: int) -> str:
    return source[start : min(end, start + MAX_PLACE_BYTES)].decode(errors="replace")


@functools.cache
def _rules(language: str) -> "tuple[Query, Sequence[SecurityRule]]":
    """The rules of one language, and the query for the nodes that they are about."""
    import tree_sitter

    table = _table()
    rules = [rule for rule in msgspec.convert(table["rules"], list[SecurityRule]) if language in rule.languages]
    return tree_sitter.Query(grammar(language), table["languages"][language]), rules


_pattern = functools.cache(re.compile)


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads(_RULES.read_text("utf-8"))
