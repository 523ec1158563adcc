"""What a provider says when it refuses: read from the body of a failed response, or from an error inside a stream."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from denizen.errors import ErrorKind, ModelError
from denizen.models.classify import STATUS_OF_CODE, classify, longest_named, window_named
from denizen.models.parsing import decode

LONGEST: Final = 600
"""Characters of a provider's sentence that are kept: enough for any, too little for a page."""

LONGEST_WAIT: Final = 30 * 86_400.0
"""Seconds that a provider may ask to wait; for more, it can ask again."""

WINDOW_FULL: Final = "model_context_window_exceeded"
"""Why such an answer ends, in the words of Anthropic and Z.ai."""

_ANYTHING: Final = msgspec.json.Decoder()

_SECRET: Final = 8
"""Characters of a key that deserves the name; local servers are given words like `none`."""

_TRACE: Final = "Traceback (most recent call last)"
_WAIT: Final = re.compile(r"(?:retry|try again) in ((?:\d{1,9}(?:\.\d+)? ?(?:ms|h|m|s))+)", re.IGNORECASE)
_SPAN: Final = re.compile(r"([\d.]+) ?(ms|h|m|s)", re.IGNORECASE)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_CONTROL: Final = re.compile(r"[\0-\x08\x0e-\x1a]")
"""What texts don't hold: the body is compressed, or something else altogether."""
_BY_THE_MINUTE: Final = re.compile(r"dashscope|aliyun|alibaba|allocated quota|throttl|per[ -]minute", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title>(?:\s*\d{3}\b)?([^<]*)", re.IGNORECASE)

_PHRASES: Final = {
    520: "Unknown Error",
    521: "Web Server Is Down",
    522: "Connection Timed Out",
    523: "Origin Is Unreachable",
    524: "A Timeout Occurred",
    529: "Overloaded",
}
"""What statuses mean that no standard knows."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a provider says went wrong: its sentence, its own code for it, and the HTTP status (0: unknown)."""

    text: str = ""
    code: str = ""
    status: int = 0
    window: int = 0
    """Tokens that the model sees, where a field says so (llama.cpp)."""

    @property
    def kind(self) -> ErrorKind:
        """Its category."""
        return classify(self.status, self.code, self.text)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who answers: named in its messages and in its failures. `secret` is its key, which no failure shows."""

    model: str
    """`provider:model`"""
    provider: str
    profile_id: str = ""
    secret: str = ""
    address: str = ""

    def complained(self, body: Any, status: int = 0) -> ModelError:
        """The failure that a provider's own words tell of: a response's body (bytes), or an error in a stream."""
        complaint = read_complaint(status, body, self._hidden)
        told = f"{complaint.text.removesuffix('.')} (HTTP {complaint.status})" if complaint.status else complaint.text
        kind = complaint.kind
        if kind == "quota" and complaint.status == HTTPStatus.TOO_MANY_REQUESTS and self._by_the_minute(complaint.text):
            kind = "rate_limit"
        failure = self.failure(told, kind, complaint.status)
        if failure.kind in {"rate_limit", "timeout"}:
            failure.retry_after = _wait_told(complaint.text)
        elif failure.kind == "context_overflow":
            failure.window = complaint.window or window_named(complaint.text)
        failure.max_output = longest_named(complaint.text)
        return failure

    def _by_the_minute(self, text: str) -> bool:
        """Whether a quota is one for a minute: Alibaba's says no more than OpenAI's, which is for good."""
        return bool(_BY_THE_MINUTE.search(f"{self.provider} {self.address} {text}"))

    def damaged(self, payload: bytes) -> ModelError:
        """The failure behind an event that can't be read: it tells of an error in an odd shape, or is damaged."""
        return self.odd(payload) or self.failure("its stream is damaged", "timeout")

    def odd(self, payload: bytes) -> ModelError | None:
        """The failure that an event of no known kind tells of; None: it tells of none."""
        body = _parsed(payload)
        return self.complained(body) if isinstance(body, dict) and _read(body).text else None

    def window_full(self) -> ModelError:
        """The failure of an answer that isn't whole, as the window had no room for more."""
        return self.failure("its window was full before its answer was whole", "context_overflow")

    def failure(self, what: str, kind: ErrorKind = "unknown", status: int = 0) -> ModelError:
        """Any other failure."""
        who, profile = self.provider, self.profile_id
        told = f"{self.model}: {self._hidden(what)}"
        return ModelError(told, kind=kind, status=status, provider=who, profile_id=profile)

    def _hidden(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self.secret, "***") if len(self.secret) >= _SECRET else text


def read_complaint(status: int, body: Any, without: Callable[[str], str] = str) -> Complaint:
    """What is said by the body of a failed response (bytes), or by the error in a 200 stream (parsed).

    `without` takes secrets out, before the text is cut: what is left of one then wouldn't be found.
    """
    complaint = _read(_parsed(body) if isinstance(body, bytes) else body)
    status = complaint.status if status in {0, HTTPStatus.OK} else status
    return replace(complaint, text=_sentence(without(complaint.text))[:LONGEST] or _phrase(status), status=status)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); None: the provider doesn't say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    wish = headers.get("retry-after")
    seconds = _number(wish) if milliseconds is None else milliseconds / 1000
    if wish and seconds is None:
        seconds = _until(wish, headers.get("date"), now)
    return None if seconds is None else min(seconds, LONGEST_WAIT)


def _wait_told(text: str) -> float | None:
    """Seconds to wait where only the words say it, as Gemini's and Groq's do: "try again in 1m2.5s"."""
    found = _WAIT.search(text)
    spans = _SPAN.findall(found[1]) if found else ()
    return min(sum(float(count) * _SECONDS[unit.lower()] for count, unit in spans), LONGEST_WAIT) if spans else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _until(date: str, server_date: str | None, now: datetime) -> float | None:
    try:
        since = parsedate_to_datetime(server_date) if server_date else now
        return max(0.0, (parsedate_to_datetime(date) - since).total_seconds())
    except (ValueError, TypeError, OverflowError):  # not a date, or one without a zone
        return None


def _parsed(body: bytes) -> Any:
    try:
        return decode(_ANYTHING, body)
    except ValueError:
        text = body.decode("utf-8", "replace").strip()
        return _title(text) if text.startswith("<") else "" if _CONTROL.search(text) else text


def _read(body: Any) -> Complaint:
    """The shapes of all providers."""
    match _unwrapped(body):
        case str(text):
            return Complaint(text)
        case {"error": str(text)} | {"message": str(text)} | {"detail": str(text)} | {"msg": str(text)} as told:
            window = told.get("n_ctx")
            return Complaint(
                _with_cause(text, told), _code(told), _status(told), window if isinstance(window, int) else 0
            )
        case dict() as told:
            return Complaint("", _code(told), _status(told))
    return Complaint()


def _unwrapped(body: Any) -> Any:
    """An error may lie in an error, however deep, and a single one in a list."""
    while True:
        match body:
            case [inner, *_] | {"error": dict() | list() as inner}:
                body = inner
            case {"error": str()} | {"message": str()} | {"detail": str()} | {"msg": str()}:
                return body
            case {"detail": dict() | list() as inner} | {"message": dict() | list() as inner}:
                body = inner
            case _:
                return body


def _code(body: Mapping[str, Any]) -> str:
    return " ".join(body[key] for key in ("code", "type", "status") if isinstance(body.get(key), str))


def _status(body: Mapping[str, Any]) -> int:
    code = str(body.get("code", ""))
    if code.isdecimal() and 400 <= int(code) < 600:
        return int(code)
    return next((STATUS_OF_CODE[word] for word in _code(body).lower().split() if word in STATUS_OF_CODE), 0)


def _with_cause(text: str, body: Mapping[str, Any]) -> str:
    """A router's sentence and, behind it, that of the provider it asked."""
    match body:
        case {"metadata": {"raw": str(raw)}}:
            cause = _read(_parsed(raw.encode())).text
            return f"{text}: {cause}" if cause and cause not in text else text
    return text


def _sentence(text: str) -> str:
    """In one line; of a trace, as servers in Python send it, its last."""
    return " ".join(text.strip().rpartition("\n")[2].split() if _TRACE in text else text.split())


def _title(page: str) -> str:
    """What a web page says, in a few words; the number of the status is told anyway."""
    from html import unescape

    found = _TITLE.search(page)
    return " ".join(unescape(found[1]).split()) if found else ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return _PHRASES.get(status, "no reason given")
