"""Keeps secrets out of whatever is shown, logged, sent or kept."""

import functools
import json
import logging
import re
import typing
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

import msgspec

MARK = "[redacted]"
"""What stands in a secret's place."""
SHORTEST = 8
"""Characters of the shortest secret that is looked for: replacing a shorter one would destroy ordinary text."""

_NAMED_SECRET = re.compile(r"(?i)KEY(?!BOARD)|TOKEN(?!IZER)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|_PAT$")
_NAMED_PLACE = re.compile(r"(?i)_(FILE|PATH|DIR|HOME)$")
_WORD = re.compile(r"[A-Za-z]{,15}")
_PERCENT = re.compile("%[0-9A-F]{2}")
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


class Redactor:
    """Replaces secrets by `[redacted]`, also where they are escaped for JSON or a URL.

    Of a secret of several lines each line is one, too. Those shorter than 8 characters are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret.strip())}
        self._forms = _longest_first(forms)
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))
        self._bytes = [form.encode() for form in _longest_first(forms | {_escaped(form) for form in forms})]
        self._bytes_pattern = re.compile(b"|".join(map(re.escape, self._bytes)))
        self._ends = _Ends(self._pattern, self._forms)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], extra: Iterable[str] = ()) -> "Redactor":
        """Takes for secrets: `extra`, the values of variables named like one (`…KEY…`, `…TOKEN…`, `…SECRET…`,
        `…PASSWORD…`, …), and the passwords in any variable that is a URL.

        What was found by its variable's name but is a short word (POSTGRES_PASSWORD=postgres) is ignored.
        """
        return cls([*extra, *_secrets_of(environ)])

    def text(self, text: str) -> str:
        """The text without secrets; the very same object where there are none."""
        return self._pattern.sub(MARK, text) if any(form in text for form in self._forms) else text

    def data(self, data: bytes) -> bytes:
        """Bytes of UTF-8 text or JSON without secrets; the very same object where there are none."""
        return self._bytes_pattern.sub(MARK.encode(), data) if self.found_in(data) else data

    def found_in(self, data: bytes) -> bool:
        """Whether a secret stands in these bytes."""
        for form in self._bytes:  # noqa: SIM110 - any() costs three times as much, for every line that is written
            if data.find(form) >= 0:  # `in` also takes a number, and makes a TypeError first where it gets none
                return True
        return False

    def value(self, value: Any) -> Any:
        """Any nesting of dicts, lists, tuples and structs without secrets in its strings; the same where none are."""
        return map_text(value, self.text) if self._forms else value

    def stream(self) -> "RedactedStream":
        """For text that comes in pieces."""
        return RedactedStream(self._ends)


class _Ends:
    """What all streams of a redactor share: the secrets, and where a text may end in the beginning of one."""

    def __init__(self, pattern: re.Pattern[str], forms: list[str]) -> None:
        self.pattern = pattern
        self.forms = sorted(forms)
        self.suspects = _beginnings(forms)
        self._firsts = re.compile("[" + "".join({re.escape(form[0]) for form in forms}) + "]" if forms else "(?!)")
        self._most = max(map(len, forms), default=1) - 1

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
                shown += text[done : secret.start()] + MARK
                done = secret.end()
                hold = ends.unsure(text, done)
        self._held = text[hold:]
        return shown + text[done:hold]

    def flush(self) -> str:
        """What is left when nothing more will come."""
        held, self._held = self._held, ""
        return self._ends.pattern.sub(MARK, held) if held else held


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


def _secrets_of(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        yield from _URL_PASSWORD.findall(value)
        if _NAMED_SECRET.search(name) and not _NAMED_PLACE.search(name) and not _WORD.fullmatch(value):
            yield value


def _forms(secret: str) -> Iterator[str]:
    """The secret as it is, its lines, and each of these as JSON and URLs write them."""
    lines = [line.strip() for line in secret.splitlines() if not line.startswith("-----")]
    for part in {secret, *lines}:
        if len(part) >= SHORTEST:
            urls = [quote(part, safe=safe, errors="replace") for safe in ("", "/")]
            small = [_PERCENT.sub(lambda sign: sign[0].lower(), url) for url in urls]
            yield from (part, _escaped(part), json.dumps(part)[1:-1], *urls, *small)


def _escaped(text: str) -> str:
    return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1].decode()


def _longest_first(forms: Iterable[str]) -> list[str]:
    return sorted(forms, key=len, reverse=True)
