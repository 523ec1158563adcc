"""Risky texts in code: secrets that are written down, and SQL put together from pieces. A secret is never shown."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from denizen.config.redact import KNOWN_KEY

if TYPE_CHECKING:
    from tree_sitter import Node

Told = tuple[str, str, str, str]
"""How bad, the rule, what it is, and what to do."""

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
_AROUND = frozenset(
    {
        "concatenated_string",
        "parenthesized_expression",
        "argument",
        "binary_operator",
        "binary_expression",
        "additive_expression",
        "binary",
    }
)
_TEXTS = re.compile("string|text")
_QUOTES = re.compile(r"""^[bfruBFRU@$]{0,3}(?:#*["'`]+)|(?:["'`]+#*)$""")
MOST_JOINED = 50
"""Joints of a text with others that are looked at."""
LONGEST = 4_000
"""Bytes of a text that are looked at."""


def risky_text(string: "Node", source: bytes, language: str) -> Iterator[Told]:
    """What is wrong with a text in the code."""
    text = source[string.start_byte : min(string.end_byte, string.start_byte + LONGEST)].decode(errors="replace")
    if KNOWN_KEY.search(text):
        yield "high", "secret", "a key or token", "is written down; keep it outside the code"
    elif name := _secret_name(string, source, text):
        yield "high", "secret", name, "is written down; keep it outside the code"
    if _SQL.match(text) and _is_built(string, text, language):
        yield "high", "sql", "a query", "is put together from pieces; give the values as parameters"


def _secret_name(string: "Node", source: bytes, text: str) -> str:
    """The name that a secret is given; empty where the text isn't one."""
    start = max(source.rfind(b"\n", 0, string.start_byte) + 1, string.start_byte - 200)
    before = source[start : string.start_byte].decode(errors="replace")
    named = _NAMED.search(before)
    value = _QUOTES.sub("", text)
    is_default = string.parent is not None and string.parent.type in _DEFAULTS
    if not named or _NO_SECRET.fullmatch(value) or (is_default and _WORD.fullmatch(value)):
        return ""
    return _NAME.findall(before[: named.end()])[0]


def _is_built(string: "Node", text: str, language: str) -> bool:
    """Whether the text holds something else, or is joined with it."""
    if language == "kotlin" and re.search(r"\$[\w{]", text):
        return True
    if any(child.type in _PIECES for child in string.children):
        return True
    if language == "rust" and string.parent and string.parent.type == "token_tree" and "{" in text:
        return True
    above = string.parent
    for _ in range(MOST_JOINED):
        if not above or above.type not in _AROUND:
            break
        if any(not _TEXTS.search(child.type) and child.type not in _AROUND for child in above.named_children):
            return above.type != "argument"
        above = above.parent
    return bool(above and above.type in {"attribute", "field_expression", "member_expression"} and _formats(above))


def _formats(node: "Node") -> bool:
    return (node.text or b"").rstrip().endswith((b".format", b".concat"))
