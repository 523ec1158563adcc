"""What a reply means: its calls, words and thoughts; and its arguments in the types that a tool's schema wants.

A reply may be one text, or messages with headers: Harmony's channels, and the recipients of Muse.
`<|start|>assistant<|channel|>commentary to=functions.NAME<|message|>{…}<|call|>`: the header says for whom the body is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from denizen.actions.recovery.marks import OTHERS, QUOTES
from denizen.actions.recovery.reading import Reader, is_quoted
from denizen.actions.recovery.scanner import OfferedTools, Scanner, WorkLimitReached, WrittenCall
from denizen.actions.recovery.values import Unreadable, Untyped, Verbatim, read_whole
from denizen.config.pattern import pattern


@dataclass(frozen=True, slots=True)
class RecoveredReply:
    """Calls with their arguments converted, words and thoughts, each in their order.

    `broken` says of other calls why they aren't among these.
    """

    calls: list[WrittenCall]
    words: list[str]
    thoughts: list[str]
    broken: Sequence[str] = ()


def read_meaning(text: str, tools: OfferedTools) -> RecoveredReply:
    """What the text says and asks for."""
    sent = _messages(text)
    if not sent:
        return _of_text(text, tools)
    meaning = RecoveredReply([], [], [])
    for message in sent:
        value = _value(message.body, tools) if message.kind in {"call", "commentary"} else None
        if message.kind == "call":  # its body are the arguments, or the call once more in a form of its own
            name = tools.find(message.recipient)
            if value is None:
                meaning.calls.extend(_of_text(message.body, tools).calls)
            elif name and isinstance(value, dict):
                meaning.calls.append(_converted(WrittenCall(name, value, message.written), message.body, tools))
        elif message.kind == "thought" or (message.kind == "commentary" and isinstance(value, dict)):
            meaning.thoughts.append(message.body)
        elif message.kind != "other's":
            meaning.words.append(message.body)
    return meaning


def _of_text(text: str, tools: OfferedTools) -> RecoveredReply:
    """Calls without marks are looked for only if there are no others: next to those they are words."""
    scanner = Scanner(text, tools)
    found = Reader(scanner)
    found.run()
    if found.doubtful and not found.calls:
        found = Reader(scanner, bare=True)
        found.run()
    return RecoveredReply(
        [_converted(call, text, tools) for call in found.calls], found.text, found.thoughts, found.broken
    )


def _value(text: str, tools: OfferedTools) -> Any:
    """The value that the text is; None if it is none."""
    try:
        return read_whole(text, Scanner(text, tools))
    except (Unreadable, WorkLimitReached):
        return None


def _converted(call: WrittenCall, text: str, tools: OfferedTools) -> WrittenCall:
    name = tools.find(call.name)
    args = Converter(tools.schemas[name], Scanner(text, tools)).arguments(call.args or {})
    return WrittenCall(name, args, call.wording)


_MARK: Final = pattern(r"<\|(start|message|end|call|return|eom|eot)\|>")
_HEADER: Final = pattern(
    r"\s{0,9}(?P<role>[\w.-]{1,128})?\s{0,9}"
    r"(?:(?:<\|channel\|>\s?\w{1,20}|to=[\w.-]{1,128}|<\|constrain\|>\s?\w{1,20})\s{0,9}){0,6}"
)
_ANOTHER: Final = pattern(f"{QUOTES}|{OTHERS}", re.MULTILINE)
_CHANNEL: Final = pattern(r"<\|channel\|>\s?(\w{1,20})")
_RECIPIENT: Final = pattern(r"\bto=([\w.-]{1,128})")
_STRIPPED: Final = pattern(
    r"(?:\A\s?|assistant\s?)(analysis|commentary|(?<=assistant)final|(?<=assistant\s)final)(?![ \t](?!to=)|\Z)\n?"
)
_STRIPPED_RECIPIENT: Final = pattern(r"\s?to=([\w.-]{1,128})\s{0,9}(?:json|code)?\s{0,9}(?=\{)")
_NOT_TOOLS: Final = {"", "user", "self", "assistant", "all"}


class _Message(NamedTuple):
    """One message: what it is (call, thought, commentary, words, or other's), and how it is written."""

    kind: str
    body: str
    recipient: str = ""
    written: str = ""


def _messages(text: str) -> list[_Message]:
    """The messages in a reply; none if text separates them, as in prose about such messages."""
    if "<|message|>" not in text:
        return _without_tokens(text)
    pieces = ["start", *_MARK.split(text), ""]  # each piece after its mark
    found: list[_Message] = []
    header = ""
    for number in range(0, len(pieces) - 2, 2):
        mark, piece, following = pieces[number : number + 3]
        if mark == "message":
            match, to = _HEADER.fullmatch(header), _RECIPIENT.search(header)
            role = (match["role"] or "") if match else ""
            *_, channel = ["", *_CHANNEL.findall(header)]
            recipient = to[1] if to else ""
            written = f"{header[to.start(1) :]}<|message|>{piece}" if to else ""
            found.append(_Message(_kind(role, channel, recipient), piece, recipient, written))
        elif following == "message" and _HEADER.fullmatch(piece):
            header = piece
        elif number == 0 and piece.strip() and following != "message" and "`" not in piece:
            if _ANOTHER.search(piece) or is_quoted(piece, len(piece), len(piece)):
                return []
            found.append(_Message("thought", piece))
        elif piece.strip() and (following == "message" or not _HEADER.fullmatch(piece)):
            return []
    return found


def _without_tokens(text: str) -> list[_Message]:
    """The messages of `analysisHm.assistantfinalIt is 4.`, a reply whose special tokens a server has taken out."""
    first, *pieces = _STRIPPED.split(text)
    found: list[_Message] = []
    for channel, body in zip(pieces[0::2], pieces[1::2], strict=True):
        to = _STRIPPED_RECIPIENT.match(body)
        recipient = to[1] if to else ""
        kind = _kind("", "final" if channel == "final" else "analysis", recipient)
        found.append(_Message(kind, body[to.end() :] if to else body, recipient, body))
    answers = any(message.kind in {"call", "words"} for message in found)
    return found if answers and not first.strip() else []


def _kind(role: str, channel: str, recipient: str) -> str:
    if role not in {"", "assistant"}:
        return "other's"  # a result that the model repeats
    if recipient not in _NOT_TOOLS:
        return "call"
    if channel == "analysis" or recipient == "self":
        return "thought"
    return "commentary" if channel == "commentary" else "words"


# Arguments in the types that a schema wants

_KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WRAPPED: Final = {"arguments", "args", "parameters", "params", "input", "kwargs"}
"""Names of a single argument that holds all the others."""


class Converter:
    """Converts the arguments of one call, by its tool's JSON schema."""

    def __init__(self, schema: Mapping[str, Any], scanner: Scanner) -> None:
        self._schema = schema
        self._scanner = scanner
        self._parts = {**schema.get("definitions", {}), **schema.get("$defs", {})}

    def arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments; values that can't be converted stay unchanged, for the tool to refuse.

        Models that write calls as text invent arguments: they are left out where all that is required is there.
        """
        properties = self._schema.get("properties") or {}
        name = next(iter(args), "")
        if len(args) == 1 and name in _WRAPPED and name not in properties:  # it holds all the others
            inner = self.value(args[name], {"type": "object"})
            args = inner if isinstance(inner, dict) and inner.keys() <= properties.keys() else args
        converted = {name: self.value(value, properties.get(name, {})) for name, value in args.items()}
        required = self._schema.get("required") or []
        if (
            not properties
            or self._schema.get("additionalProperties")
            or any(name not in converted for name in required)
        ):
            return converted
        return {name: value for name, value in converted.items() if name in properties}

    def value(self, value: Any, schema: Any) -> Any:
        """One value by its schema."""
        schema = self._resolved(schema)
        kinds = _kinds(schema)
        if isinstance(value, Untyped | Verbatim) or (isinstance(value, str) and kinds and "string" not in kinds):
            return self._typed(value, schema, kinds)
        if isinstance(value, dict):
            properties = self._alternative(schema, "object").get("properties") or {}
            inner = [*value]
            if len(inner) == 1 and (kinds == {"array"} or ("array" in kinds and inner == ["item"] and not properties)):
                items = value[inner[0]]  # elements in an element (MiniMax)
                return self.value(items if isinstance(items, list) else [items], schema)
            return {name: self.value(item, properties.get(name, {})) for name, item in value.items()}
        if isinstance(value, list):
            items = self._alternative(schema, "array").get("items", {})
            return [self.value(item, items) for item in value]
        if kinds == {"string"} and isinstance(
            value, int | float
        ):  # a number or a truth value as the text that was meant
            return str(value).lower() if isinstance(value, bool) else str(value)
        return int(value) if kinds == {"integer"} and isinstance(value, float) and value.is_integer() else value

    def _typed(self, written: str, schema: Mapping[str, Any], kinds: set[str]) -> Any:
        """The text as a value of one of the kinds; otherwise unchanged."""
        text = written[:]  # a plain string
        if kinds == {"string"} or (not kinds and isinstance(written, Verbatim)):
            return text
        try:
            value: Any = read_whole(text.strip(), self._scanner)
        except (Unreadable, WorkLimitReached):
            value = text
        if isinstance(value, Untyped) and value.isascii() and value.lstrip("+-").isdigit() and len(value) < 300:
            value = int(value)
        kind = _KINDS.get(type(value), "string")
        if kind != "string":
            if not kinds or kind in kinds or (kind == "integer" and "number" in kinds):
                return self.value(value, schema) if kind in {"array", "object"} else value
            if kind == "number" and "integer" in kinds and float(value).is_integer():
                return int(value)
        if "boolean" in kinds and "string" not in kinds:
            return _BOOLEANS.get(text.strip().lower(), text)
        return text

    def _alternative(self, schema: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
        """The one of a union's schemas that a value of this kind fulfils; else the schema."""
        choices = map(self._resolved, (*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())))
        return next((choice for choice in choices if kind in _kinds(choice)), schema)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        for _ in range(8):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            schema = self._parts.get(schema["$ref"].rpartition("/")[2], {})
        return schema if isinstance(schema, dict) else {}


def _kinds(schema: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The types that a schema allows; empty: any."""
    if "enum" in schema and "type" not in schema:
        return {_KINDS.get(type(value), "string") for value in schema["enum"]}
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {*kind}
    choices = [*(schema.get("anyOf") or []), *(schema.get("oneOf") or [])]
    found = [_kinds(choice, depth + 1) for choice in choices if isinstance(choice, dict) and depth < 8]
    return set[str]().union(*found) if all(found) else set()
