"""Failures of providers: read from the body of a refused request, or from an error inside a stream."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, TypeVar, get_args

import msgspec

from denizen.config.pattern import pattern
from denizen.errors import ErrorKind, ModelError
from denizen.messages import AssistantMessage, Thinking
from denizen.models.parsing import decode
from denizen.models.providers import Api

MAX_MESSAGE_CHARS: Final = 600
"""Characters of a provider's sentence that are kept: enough for any, too little for a page."""

MAX_RETRY_AFTER_S: Final = 30 * 86_400.0
"""Seconds that a provider may ask to wait; for more, it can ask again."""

WINDOW_FULL: Final = "model_context_window_exceeded"
"""The stop reason of an answer that filled the window, at Anthropic and Z.ai."""

_T = TypeVar("_T")
_ANY_JSON: Final = msgspec.json.Decoder()
_MIN_SECRET_CHARS: Final = 8
"""Characters of a key that deserves the name; local servers are given words like `none`."""
_WAIT: Final = pattern(r"(?:retry|try again) in ((?:\d{1,9}(?:\.\d+)? ?(?:ms|h|m|s))+)", re.IGNORECASE)
_SPAN: Final = pattern(r"([\d.]+) ?(ms|h|m|s)", re.IGNORECASE)
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_CONTROL: Final = pattern(r"[\0-\x08\x0e-\x1a]")
"""What texts don't hold."""
_MINUTE_QUOTA: Final = pattern(r"dashscope|aliyun|alibaba|allocated quota|throttl|per[ -]minute", re.IGNORECASE)
_TITLE: Final = pattern(r"<title>(?:\s*\d{3}\b)?([^<]*)", re.IGNORECASE)
_PHRASES: Final = {each.value: each.phrase for each in HTTPStatus} | {
    520: "Unknown Error",
    521: "Web Server Is Down",
    522: "Connection Timed Out",
    523: "ModelIdentity Is Unreachable",
    524: "A Timeout Occurred",
    529: "Overloaded",
}
"""Reason phrases of statuses; the last ones aren't standardised."""


class Complaint(msgspec.Struct, frozen=True):
    """A provider's error report: its sentence, its own code, and the HTTP status (0: unknown)."""

    text: str = ""
    code: str = ""
    status: int = 0
    window: int = 0
    """Tokens that the model sees, where a field says so (llama.cpp)."""
    wait: str = ""
    """The time to wait (`"34.4s"`), if a field has it (Google)."""

    @property
    def kind(self) -> ErrorKind:
        """Its category."""
        from denizen.models.failure_words import kind_of

        return kind_of(self.status, self.code, self.text)


class ModelIdentity(msgspec.Struct, frozen=True):
    """The model that answers, as its messages and failures name it. `secret` is its key, which no failure shows."""

    model: str
    """`provider:model`"""
    provider: str
    profile_id: str = ""
    secret: str = ""
    address: str = ""
    format: str = ""
    """The wire format, where it isn't the provider's usual one: what only the two understand is marked with it."""

    @property
    def author(self) -> str:
        """The `provider` of `Opaque` blocks from this model."""
        return f"{self.provider}/{self.format}" if self.format else self.provider

    def signed(self, signature: str) -> str:
        """The signature of a thought as it is kept."""
        return f"{self.format}:{signature}" if self.format and signature else signature

    def signature_of(self, thought: Thinking, message: AssistantMessage) -> str:
        """The signature as it came, of a thought in this format by a model of this provider; else empty."""
        form, _, signature = thought.signature.partition(":")
        if form not in get_args(Api):
            form, signature = "", thought.signature
        ours = message.model.partition(":")[0] in {"", self.provider}
        return signature if ours and form == self.format else ""

    def refused(self, body: Any, status: int = 0) -> ModelError:
        """The failure in a provider's own words: a response's body (bytes), or an error in a stream."""
        from denizen.models.failure_words import longest_answer_in, window_in

        complaint = read_complaint(status, body, self._hide_secret)
        kind, text = complaint.kind, complaint.text
        if kind == "quota" and complaint.status == HTTPStatus.TOO_MANY_REQUESTS:
            # Alibaba's quota for a minute says no more than OpenAI's, which is for good
            kind = "rate_limit" if _MINUTE_QUOTA.search(f"{self.provider} {self.address} {text}") else kind
        message = f"{text.removesuffix('.')} (HTTP {complaint.status})" if complaint.status else text
        failure = self.failure(message, kind, complaint.status)
        if kind in {"rate_limit", "timeout"}:
            found = _WAIT.search(text)  # often only the words say it, as Groq's do: "try again in 1m2.5s"
            if spans := _SPAN.findall(found[1] if found else complaint.wait):
                failure.retry_after = min(
                    sum(float(n) * _UNIT_SECONDS[unit.lower()] for n, unit in spans), MAX_RETRY_AFTER_S
                )
        elif kind == "context_overflow":
            failure.window = complaint.window or window_in(text)
        failure.max_output = longest_answer_in(text)
        return failure

    def damaged(self, payload: bytes) -> ModelError:
        """The failure of an event that can't be read: it is an error of an odd shape, or is damaged."""
        return self.refused_in_event(payload) or self.failure("its stream is damaged", "timeout")

    def refused_in_event(self, payload: bytes) -> ModelError | None:
        """The failure that an event of no known kind reports; None: it reports none."""
        body = _parse(payload)
        return self.refused(body) if isinstance(body, dict) and _find(body).text else None

    def window_full(self) -> ModelError:
        """The failure of an answer that isn't whole, as the window had no room for more."""
        return self.failure("its window was full before its answer was whole", "context_overflow")

    def failure(self, what: str, kind: ErrorKind = "unknown", status: int = 0) -> ModelError:
        """Any other failure."""
        message = f"{self.model}: {self._hide_secret(what)}"
        return ModelError(message, kind=kind, status=status, provider=self.provider, profile_id=self.profile_id)

    def _hide_secret(self, text: str) -> str:
        return text.replace(self.secret, "***") if len(self.secret) >= _MIN_SECRET_CHARS else text


def decode_event(decoder: msgspec.json.Decoder[_T], payload: bytes, identity: ModelIdentity) -> _T:
    """An event of a stream. Raises ModelError for one that is damaged, or an error of an odd shape."""
    try:
        return decode(decoder, payload)
    except ValueError as error:
        raise identity.damaged(payload) from error


def read_complaint(status: int, body: Any, hide_secret: Callable[[str], str] = str) -> Complaint:
    """The error report in the body of a failed response (bytes), or in a 200 stream (parsed).

    Secrets are hidden before the text is cut: what is left of one then wouldn't be found.
    """
    found = _find(_parse(body) if isinstance(body, bytes) else body)
    status = found.status if status in {0, HTTPStatus.OK} else status
    text = hide_secret(found.text)
    if "Traceback (most recent call last)" in text:  # as servers in Python send it
        text = text.strip().rpartition("\n")[2]
    text = " ".join(text.split())[:MAX_MESSAGE_CHARS] or _PHRASES.get(status, "no reason given")
    return Complaint(text, found.code, status, found.window, found.wait)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); None: the provider doesn't say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    wish = headers.get("retry-after")
    seconds = _number(wish) if milliseconds is None else milliseconds / 1000
    if wish and seconds is None:
        try:
            since = parsedate_to_datetime(headers["date"]) if "date" in headers else now
            seconds = max(0.0, (parsedate_to_datetime(wish) - since).total_seconds())
        except (ValueError, TypeError, OverflowError):  # not a date, or one without a zone
            return None
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_S)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _parse(body: bytes) -> Any:
    """The JSON; else the text, of a web page its title (without the number of the status, which is shown anyway)."""
    try:
        return decode(_ANY_JSON, body)
    except ValueError:
        text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        from html import unescape

        found = _TITLE.search(text)
        return unescape(found[1]) if found else ""
    return "" if _CONTROL.search(text) else text


def _find(body: Any) -> Complaint:
    """The complaint in a body, in the shapes of all providers: an error may be in an error, however deep, or a list."""
    while True:
        match body:
            case [inner, *_] | {"error": dict() | list() as inner}:
                body = inner
            case {"error": str(text)} | {"message": str(text)} | {"detail": str(text)} | {"msg": str(text)}:
                break
            case {"detail": dict() | list() as inner} | {"message": dict() | list() as inner}:
                body = inner
            case str(text):
                return Complaint(text)
            case _:
                text = ""
                break
    if not isinstance(body, dict):
        return Complaint()
    match body:
        case {"metadata": {"raw": str(raw)}}:  # a router's sentence, and that of the provider it asked
            cause = _find(_parse(raw.encode())).text
            text = f"{text}: {cause}" if cause and cause not in text else text
    code = " ".join(body[key] for key in ("code", "type", "status") if isinstance(body.get(key), str))
    number = str(body.get("code", ""))
    if number.isdecimal() and 400 <= int(number) < 600:
        status = int(number)
    else:
        from denizen.models.failure_words import table

        codes = table().codes
        status = next((codes[word] for word in code.lower().split() if word in codes), 0)
    window = body.get("n_ctx")
    details = body.get("details")
    waits = [each.get("retryDelay") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    wait = next((each for each in waits if isinstance(each, str)), "")
    return Complaint(text, code, status, window if text and isinstance(window, int) else 0, wait)
