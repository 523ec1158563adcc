"""Keeps secrets out of whatever is shown, logged, sent or kept."""

import functools
import json
import logging
import re
import typing
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from denizen.config.secrets import SECRET_WORDS, words_of
from denizen.messages import AssistantMessage, ToolResult

Cleaned = TypeVar("Cleaned", AssistantMessage, ToolResult)

MARK = re.compile(r"\[redacted:[^\[\]\n]{1,200}\]")
"""What is put in a secret's place: it names the secret, so that it can be put back."""
SHORTEST = 8
"""Characters of the shortest secret that is looked for: replacing a shorter one would destroy ordinary text."""
KNOWN_KEY = re.compile(
    r"""\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}
    |sk-(?:ant-|proj-)?[\w-]{20,}|sk_live_\w{16,}|AIza[\w-]{35}|npm_\w{36}|pypi-[\w-]{50,})
    |-----BEGIN[ A-Z]*PRIVATE\ KEY-----""",
    re.VERBOSE,
)
"""What keys of well-known services look like, wherever they are."""

_ENCODER = msgspec.json.Encoder(enc_hook=repr)  # a tool's details may hold anything
_NAMED_PLACE = re.compile(r"(?i)_(FILE|PATH|DIR|HOME)$|^PWD$")
_WORDS = r"(?:[a-z]{,15} | [A-Z]{,15} | [A-Z][a-z]{,14}) (?:[-_\ ] (?:[a-z]{,15} | [A-Z]{,15}))?"
_PLACES = r"""
      [-+]?\d[\d.,_-]*(?:-[a-z]{,15})?                    # a number, a date, a version
    | [A-Za-z][A-Za-z\d+.-]*://[^\s@?]*                   # an address without a password or a query
    | (?:~|\.{1,2})(?:/[\w.@+\ -]+)*/?                    # a path
    | /[A-Za-z][a-z]*(?:/[\w.@+\ -]+)*/?
    | [\w.-]+(?:/[\w.-]+)+\.[a-z]{2,5}
"""
_PLAIN = re.compile(f"(?x){_WORDS}|{_PLACES}")
_PLACE = re.compile(f"(?x){_PLACES}")
_PERCENT = re.compile("%[0-9A-F]{2}")
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


class Redactor:
    """Replaces secrets by marks that name them, `[redacted:NAME]`, also where they are escaped for JSON or a URL.

    Each line of a secret is one, too: `[redacted:NAME#2]`. Those shorter than 8 characters are ignored.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._marks = _marks(secrets or {})
        self._secrets = {mark: form for form, mark in self._marks.items()}
        forms = self._marks.keys()
        self._bytes = [form.encode() for form in _longest_first({*forms, *map(_escaped, forms)})]
        self._ends = _Ends(self._marks)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> "Redactor":
        """Takes for secrets: `extra`, the values of variables named like one, and the passwords in any that is a URL.

        `extra` are named values, too. What isn't like a secret, such as POSTGRES_PASSWORD=postgres, is ignored.
        """
        named = {name: value for name, value in environ.items() if is_secret(name, value)}
        named |= {name: value for name, value in (extra or {}).items() if not _PLAIN.fullmatch(value)}
        return cls(named | _passwords(environ))

    def text(self, text: str) -> str:
        """The text without secrets; the very same object where there are none."""
        return self._ends.redact(text) if any(form in text for form in self._marks) else text

    def found_in(self, data: bytes) -> bool:
        """Whether a secret is in these bytes of UTF-8 text or JSON."""
        for form in self._bytes:  # noqa: SIM110 - any() costs three times as much, for every line that is written
            if data.find(form) >= 0:  # `in` also takes a number, and makes a TypeError first where it gets none
                return True
        return False

    def value(self, value: Any) -> Any:
        """Any nesting of dicts, lists, tuples and structs without secrets in its strings; the same where none are."""
        return map_text(value, self.text) if self._marks else value

    def message(self, message: Cleaned) -> Cleaned:
        """The message without secrets, wherever in it they are, and without halves of characters."""
        try:
            encoded = _ENCODER.encode(message)
        except UnicodeEncodeError:
            message = map_text(message, whole_characters)
            encoded = _ENCODER.encode(message)
        return self.value(message) if self.found_in(encoded) else message

    def secret(self, mark: str) -> str:
        """What the mark was put in the place of; empty: no secret that is known here."""
        return self._secrets.get(mark, "")

    def put_back(self, value: Any, marks: Collection[str]) -> Any:
        """The value with these marks replaced by their secrets."""
        return map_text(value, lambda text: MARK.sub(lambda mark: self._put_back(mark[0], marks), text))

    def _put_back(self, mark: str, marks: Collection[str]) -> str:
        return self._secrets[mark] if mark in marks else mark

    def stream(self) -> "RedactedStream":
        """For text that comes in pieces."""
        return RedactedStream(self._ends)


def is_secret(name: str, value: str, *, even_words: bool = False) -> bool:
    """Whether a variable is named like a secret (by whole words: not KEYCLOAK_URL), and its value can be one.

    Numbers, paths, and addresses without credentials are none; nor are words, but for `even_words`.
    """
    plain = _PLACE if even_words else _PLAIN
    return bool(words_of(name) & SECRET_WORDS) and not _NAMED_PLACE.search(name) and not plain.fullmatch(value.strip())


class _Ends:
    """What all streams of a redactor share: the secrets, and where a text may end in the beginning of one."""

    def __init__(self, marks: Mapping[str, str]) -> None:
        forms = _longest_first(marks)
        self.marks = marks
        self.pattern = re.compile("|".join(map(re.escape, forms)))
        self.forms = sorted(forms)
        self.suspects = _beginnings(forms)
        self._firsts = re.compile("[" + "".join({re.escape(form[0]) for form in forms}) + "]" if forms else "(?!)")
        self._most = max(map(len, forms), default=1) - 1

    def redact(self, text: str) -> str:
        """The text with a mark for each secret."""
        return self.pattern.sub(lambda found: self.marks[found[0]], text)

    def unsure(self, text: str, start: int) -> int:
        """Where the longest end of `text` begins that is the beginning of a secret."""
        for first in self._firsts.finditer(text, max(start, len(text) - self._most)):
            end = text[first.start() :]
            place = bisect_right(self.forms, end)
            if place < len(self.forms) and self.forms[place].startswith(end):
                return first.start()
        return len(text)


class RedactedStream:
    """Redacts text that comes in pieces: an end that may be the beginning of a secret is held back."""

    def __init__(self, ends: _Ends) -> None:
        self._ends = ends
        self._held = ""

    def feed(self, delta: str) -> str:
        """What can be shown once `delta` has come."""
        ends = self._ends
        if not self._held and not ends.suspects.search(delta):
            return delta
        text = self._held + delta
        shown, done, hold = "", 0, ends.unsure(text, 0)
        if any(form in text for form in ends.forms):
            for secret in ends.pattern.finditer(text):
                if secret.start() >= hold:
                    break
                shown += text[done : secret.start()] + ends.marks[secret[0]]
                done = secret.end()
                hold = ends.unsure(text, done)
        self._held = text[hold:]
        return shown + text[done:hold]

    def flush(self) -> str:
        """What is left when nothing more will come."""
        held, self._held = self._held, ""
        return self._ends.redact(held) if held else held


def _beginnings(forms: Iterable[str]) -> re.Pattern[str]:
    """Finds what may be the beginning of a secret: three characters of it anywhere, fewer at the end."""
    found = {re.escape(form[:3]) for form in forms}
    found |= {re.escape(form[:length]) + r"\Z" for form in forms for length in (1, 2)}
    return re.compile("|".join(sorted(found)) or "(?!)")


class RedactingFilter(logging.Filter):
    """Redacts log records, their tracebacks included. Add it to handlers: a logger's filter misses its children."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redactor.text(_message(record)), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_info = None
        record.exc_text = record.exc_text and self._redactor.text(record.exc_text)
        record.stack_info = record.stack_info and self._redactor.text(record.stack_info)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments don't fit the message; logging would print both
        return f"{record.msg} {record.args!r}"


def map_text(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with every string in it changed: keys and items of dicts, lists, tuples, and structs' free text.

    The very same object where nothing changed. A struct's fields with a fixed set of values stay as they are.
    """
    match value:
        case str():
            return change(value)
        case dict():
            pairs = {map_text(key, change): map_text(item, change) for key, item in value.items()}
            return value if all(map(_same, _flat(pairs), _flat(value))) else pairs
        case list() | tuple():
            items = [map_text(item, change) for item in value]
            return value if all(map(_same, items, value)) else tuple(items) if isinstance(value, tuple) else items
        case msgspec.Struct():
            fields = {name: map_text(getattr(value, name), change) for name in _free_fields(type(value))}
            changed = {name: new for name, new in fields.items() if new is not getattr(value, name)}
            return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _flat(pairs: dict[Any, Any]) -> Iterator[Any]:
    for pair in pairs.items():
        yield from pair


def _same(one: object, other: object) -> bool:
    return one is other


@functools.cache
def _free_fields(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(struct)
    return tuple(field.name for field in fields if typing.get_origin(field.type) is not Literal)


def _passwords(environ: Mapping[str, str]) -> dict[str, str]:
    """The passwords in addresses, by the variables that hold them."""
    found = {name: _URL_PASSWORD.findall(value) for name, value in environ.items()}
    return {f"{name}.password": "\n".join(passwords) for name, passwords in found.items() if passwords}


def _marks(secrets: Mapping[str, str]) -> dict[str, str]:
    """What is looked for, and the mark that goes in its place; where two secrets are the same, the first one's."""
    marks: dict[str, str] = {}
    for name, secret in secrets.items():
        for number, form in enumerate(dict.fromkeys(_forms(secret.strip())), 1):
            marks.setdefault(form, f"[redacted:{name}]" if number == 1 else f"[redacted:{name}#{number}]")
    return marks


def _forms(secret: str) -> Iterator[str]:
    """The secret as it is, its lines, then each of these as JSON and URLs write them."""
    lines = [line.strip() for line in secret.splitlines() if not line.startswith("-----")]
    parts = [part for part in dict.fromkeys([secret, *lines]) if len(part) >= SHORTEST]
    yield from parts
    for part in parts:
        urls = [quote(part, safe=safe, errors="replace") for safe in ("", "/")]
        small = [_PERCENT.sub(lambda sign: sign[0].lower(), url) for url in urls]
        yield from (_escaped(part), json.dumps(part)[1:-1], *urls, *small)


def _escaped(text: str) -> str:
    return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1].decode()


def _longest_first(forms: Iterable[str]) -> list[str]:
    return sorted(forms, key=len, reverse=True)


def whole_characters(text: str) -> str:
    """The text with a question mark for each half of a character."""
    return text.encode(errors="replace").decode()
