"""Keeps secrets out of everything that is shown, logged, sent or kept."""

import functools
import json
import logging
import re
import typing
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from operator import is_
from typing import Any, Literal, TypeVar
from urllib.parse import quote, unquote, unquote_plus

import msgspec

from denizen.config.pattern import pattern
from denizen.config.settings import Config
from denizen.config.toml import dotted, strings
from denizen.messages import AssistantMessage, ToolResult

Cleaned = TypeVar("Cleaned", AssistantMessage, ToolResult)

MARK = pattern(r"\[redacted:[^\[\]\n]{1,200}\]")
"""The mark that replaces a secret; it names the secret, so that it can be put back."""
MIN_SECRET_CHARS = 8
"""Characters of the shortest secret that is looked for: replacing a shorter one would destroy ordinary text."""
KNOWN_KEY = pattern(
    r"""\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}
    |sk-(?:ant-|proj-)?[\w-]{20,}|sk_live_\w{16,}|AIza[\w-]{35}|npm_\w{36}|pypi-[\w-]{50,})
    |-----BEGIN[ A-Z]*PRIVATE\ KEY-----""",
    re.VERBOSE,
)
"""The form of well-known services' keys, wherever they are."""

_ENCODER = msgspec.json.Encoder(enc_hook=repr)  # a tool's details may hold anything
_SECRET_WORDS = frozenset(
    {
        *("KEY", "KEYS", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SECRET", "SECRETS", "PAT"),
        *("TOKEN", "TOKENS", "APITOKEN", "ACCESSTOKEN", "AUTHTOKEN", "CREDENTIAL", "CREDENTIALS"),
        *("PASSWORD", "PASSWORDS", "PGPASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "PASS", "PWD"),
    }
)
"""Words in the names of secrets."""
_NAME_WORD = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HEADER_WORDS = _SECRET_WORDS | {"AUTH", "AUTHORIZATION", "COOKIE"}
_NAMED_PLACE = pattern(r"(?i)_(FILE|PATH|DIR|HOME)$|^PWD$")
_WORDS = r"(?:[a-z]{,15} | [A-Z]{,15} | [A-Z][a-z]{,14}) (?:[-_\ ] (?:[a-z]{,15} | [A-Z]{,15}))?"
_PLACES = r"""
      [-+]?\d[\d.,_-]*(?:-[a-z]{,15})?                    # a number, a date, a version
    | [A-Za-z][A-Za-z\d+.-]*://[^\s@?]*                   # an address without a password or a query
    | (?:~|\.{1,2})(?:/[\w.@+\ -]+)*/?                    # a path
    | /[A-Za-z][a-z]*(?:/[\w.@+\ -]+)*/?
    | [\w.-]+(?:/[\w.-]+)+\.[a-z]{2,5}
"""
_PLAIN = pattern(f"(?x){_WORDS}|{_PLACES}")
_PLACE = pattern(f"(?x){_PLACES}")
_PERCENT = pattern("%[0-9A-F]{2}")
_URL_PASSWORD = pattern(r"://[^/\s:@]*:([^/\s@]+)@")


class Redactor:
    """Replaces secrets by marks that name them, `[redacted:NAME]`, even if they are escaped for JSON or a URL.

    Each line of a secret is one, too: `[redacted:NAME#2]`. Those shorter than 8 characters are ignored.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._marks = _marks(secrets or {})
        self._secrets = {mark: form for form, mark in self._marks.items()}
        forms = sorted(self._marks, key=len, reverse=True)
        escaped = {*forms, *map(_escaped, forms)}
        self._bytes = [form.encode() for form in sorted(escaped, key=len, reverse=True)]
        self._pattern = re.compile("|".join(map(re.escape, forms)) or "(?!)")
        self._sorted = sorted(forms)
        self._longest = max(map(len, forms), default=1)
        self._first_characters = re.compile("|".join({re.escape(form[0]) for form in forms}) or "(?!)")
        # what may be the beginning of a secret: three characters of it anywhere, fewer at the end
        beginnings = {re.escape(form[:3]) for form in forms}
        beginnings |= {re.escape(form[:length]) + r"\Z" for form in forms for length in (1, 2)}
        self.beginnings = re.compile("|".join(sorted(beginnings)) or "(?!)")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> "Redactor":
        """Takes for secrets: `extra`, the values of variables named like one, and the passwords in any that is a URL.

        `extra` are named values, too. What isn't like a secret, such as POSTGRES_PASSWORD=postgres, is ignored.
        """
        named = {name: value for name, value in environ.items() if is_secret(name, value)}
        named |= {name: value for name, value in (extra or {}).items() if not _PLAIN.fullmatch(value)}
        for name, value in environ.items():
            if passwords := _URL_PASSWORD.findall(value):
                named[f"{name}.password"] = "\n".join(passwords)
        return cls(named)

    def text(self, text: str) -> str:
        """The text without secrets; the same object if it has none."""
        if not any(form in text for form in self._marks):
            return text
        return self._pattern.sub(lambda found: self._marks[found[0]], text)

    def found_in(self, data: bytes) -> bool:
        """Whether a secret is in these bytes of UTF-8 text or JSON."""
        for form in self._bytes:  # noqa: SIM110 - any() costs three times as much, for every line that is written
            if data.find(form) >= 0:  # `in` also takes a number, and makes a TypeError first where it gets none
                return True
        return False

    def value(self, value: Any) -> Any:
        """Any nesting of dicts, lists, tuples and structs without secrets in its strings; the same if none are."""
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
        """The secret that the mark replaced; empty if the mark isn't known."""
        return self._secrets.get(mark, "")

    def put_back(self, value: Any, marks: Collection[str]) -> Any:
        """The value with these marks replaced by their secrets."""

        def secret_of(mark: re.Match[str]) -> str:
            return self._secrets[mark[0]] if mark[0] in marks else mark[0]

        return map_text(value, lambda text: MARK.sub(secret_of, text))

    def stream(self) -> "RedactedStream":
        """For text that comes in pieces."""
        return RedactedStream(self)

    def redact_complete(self, text: str) -> tuple[str, str]:
        """The part of the text that no later text can change, redacted, and the rest, which may begin a secret."""
        shown, done, hold = "", 0, self._unsure_from(text, 0)
        for secret in self._pattern.finditer(text):
            if secret.start() >= hold:
                break
            shown += text[done : secret.start()] + self._marks[secret[0]]
            done = secret.end()
            hold = self._unsure_from(text, done)
        return shown + text[done:hold], text[hold:]

    def _unsure_from(self, text: str, start: int) -> int:
        """The start of the longest suffix of `text` that is a prefix of a secret."""
        for first in self._first_characters.finditer(text, max(start, len(text) - self._longest + 1)):
            end = text[first.start() :]
            place = bisect_right(self._sorted, end)
            if place < len(self._sorted) and self._sorted[place].startswith(end):
                return first.start()
        return len(text)


class RedactedStream:
    """Redacts text that comes in pieces: an end that may be the beginning of a secret is held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._may_begin = redactor.beginnings.search
        self._held = ""

    def feed(self, delta: str) -> str:
        """The text that can be shown once `delta` has arrived."""
        if not (self._held or self._may_begin(delta)):  # nearly always
            return delta
        shown, self._held = self._redactor.redact_complete(self._held + delta)
        return shown

    def flush(self) -> str:
        """The rest of the text, at its end."""
        held, self._held = self._held, ""
        return self._redactor.text(held)


def is_secret(name: str, value: str, *, even_words: bool = False) -> bool:
    """Whether a variable is named like a secret (by whole words: not KEYCLOAK_URL), and its value can be one.

    Numbers, paths, and addresses without credentials are none; nor are words, but for `even_words`.
    """
    plain = _PLACE if even_words else _PLAIN
    return bool(_words(name) & _SECRET_WORDS) and not _NAMED_PLACE.search(name) and not plain.fullmatch(value.strip())


def is_secret_header(name: str) -> bool:
    """Whether a header's name says that its value is a secret."""
    return bool(_words(name) & _HEADER_WORDS)


def secrets_of(config: Config, dotenv: Mapping[str, str]) -> dict[str, str]:
    """The secrets of the settings by their places: keys, headers like `Authorization`, what MCP servers get in `env`,
    and all of the home's `.env`.
    """
    found = {f".env:{name}": value for name, value in dotenv.items()}
    found |= {"memory.embeddings": config.memory.embeddings.api_key, "web.search": config.web.search.api_key}
    found |= _of_address("proxy", config.proxy)
    found |= _of_address("memory.embeddings.base_url", config.memory.embeddings.base_url)
    found |= _of_address("web.search.base_url", config.web.search.base_url)
    for provider, settings in config.providers.items():
        found |= _of_address(f"{provider}.base_url", settings.base_url)
        found |= {f"{provider}.{profile.id}": profile.api_key for profile in settings.auth_profiles}
        found |= _of_headers(provider, settings.headers)
    for server, settings in config.mcp.items():
        found |= _of_address(f"mcp.{server}.url", settings.url)
        found |= {f"mcp.{server}.{name}": value for name, value in settings.env.items() if value}
        found |= _of_headers(f"mcp.{server}", settings.headers)
    for channel, settings in config.channels.items():
        for key, value in strings(msgspec.to_builtins(settings)):
            found |= _of_address(f"channels.{channel}.{dotted(key)}", value)
            if is_secret(str(key[-1]), value, even_words=True):
                found[f"channels.{channel}.{dotted(key)}"] = value
    for world in config.__struct_fields__[len(Config.__struct_fields__) :]:
        for name, value in msgspec.structs.asdict(getattr(config, world)).items():
            if isinstance(value, list):  # of addresses whose keys may be in any place
                found |= {f"{world}.{name}[{at}]": each for at, each in enumerate(value) if "://" in str(each)}
            elif isinstance(value, msgspec.Struct):
                found[f"{world}.{name}.api_key"] = getattr(value, "api_key", "")
            elif isinstance(value, str) and "://" in value:
                found |= _of_address(f"{world}.{name}", value)
            elif isinstance(value, str) and is_secret(name, value):
                found[f"{world}.{name}"] = value
    return found


def _of_headers(place: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are secrets, each as a whole and, of `Bearer …`, the token alone."""
    secret = {name: value for name, value in headers.items() if is_secret_header(name)}
    return {f"{place}.{name}": f"{value}\n{value.rpartition(' ')[2]}" for name, value in secret.items()}


def _of_address(name: str, address: str) -> dict[str, str]:
    """The password of an address, and what follows its `?`, each value for itself."""
    password = unquote(address.partition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")[2])
    values = [piece.partition("=")[2] or piece for piece in address.partition("?")[2].split("&")]
    found = {f"{name}?{number}": unquote_plus(value) for number, value in enumerate(values, 1)}
    return {place: secret for place, secret in {f"{name}.password": password, **found}.items() if secret}


def _words(name: str) -> set[str]:
    """The words of a name, in capitals: `apiKey`, `API_KEY` and `api-key` are API and KEY."""
    return {word.upper() for word in _NAME_WORD.findall(name)}


class RedactingFilter(logging.Filter):
    """Redacts log records, their tracebacks included. Add it to handlers: a logger's filter misses its children."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            said = record.getMessage()
        except (TypeError, ValueError, KeyError):  # the arguments don't fit the message; logging would print both
            said = f"{record.msg} {record.args!r}"
        record.msg, record.args = self._redactor.text(said), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_info = None
        record.exc_text = record.exc_text and self._redactor.text(record.exc_text)
        record.stack_info = record.stack_info and self._redactor.text(record.stack_info)
        return True


def map_text(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with every string in it changed: keys and items of dicts, lists, tuples, and structs' free text.

    The very same object if nothing changed. A struct's fields with a fixed set of values stay as they are.
    """
    match value:
        case str():
            return change(value)
        case dict():
            pairs = {map_text(key, change): map_text(item, change) for key, item in value.items()}
            before, after = chain.from_iterable(value.items()), chain.from_iterable(pairs.items())
            return value if len(pairs) == len(value) and all(map(is_, before, after)) else pairs
        case list() | tuple():
            items = [map_text(item, change) for item in value]
            return value if all(map(is_, items, value)) else tuple(items) if isinstance(value, tuple) else items
        case msgspec.Struct():
            fields = {name: map_text(getattr(value, name), change) for name in _free_fields(type(value))}
            changed = {name: new for name, new in fields.items() if new is not getattr(value, name)}
            return msgspec.structs.replace(value, **changed) if changed else value
    return value


@functools.cache
def _free_fields(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(struct)
    return tuple(field.name for field in fields if typing.get_origin(field.type) is not Literal)


def _marks(secrets: Mapping[str, str]) -> dict[str, str]:
    """The mark for each text that is looked for; where two secrets are the same, the first one's.

    Looked for are a secret as it is, its lines, then each of these as JSON and URLs write them.
    """
    marks: dict[str, str] = {}
    for name, secret in secrets.items():
        lines = [line.strip() for line in secret.strip().splitlines() if not line.startswith("-----")]
        parts = [part for part in dict.fromkeys([secret.strip(), *lines]) if len(part) >= MIN_SECRET_CHARS]
        forms = [*parts]
        for part in parts:
            urls = [quote(part, safe=safe, errors="replace") for safe in ("", "/")]
            small = [_PERCENT.sub(lambda sign: sign[0].lower(), url) for url in urls]
            forms += [_escaped(part), json.dumps(part)[1:-1], *urls, *small]
        for number, form in enumerate(dict.fromkeys(forms), 1):
            marks.setdefault(form, f"[redacted:{name}]" if number == 1 else f"[redacted:{name}#{number}]")
    return marks


def _escaped(text: str) -> str:
    return msgspec.json.encode(whole_characters(text))[1:-1].decode()


def whole_characters(text: str) -> str:
    """The text with a question mark for each half of a character."""
    return text.encode(errors="replace").decode()
