"""What a provider's refusal means: from its words, as `failure_words.toml` has them, to a category and to advice."""

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from denizen.errors import ErrorKind


class Meaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What some words mean, as `failure_words.toml` explains it."""

    words: list[str]
    kind: ErrorKind | None = None
    advice: str = ""
    weak: bool = False

    def is_said(self, text: str) -> bool:
        """Whether a text has one of the words."""
        return any(re.search(word, text, re.IGNORECASE) for word in self.words)


@functools.cache
def _meanings() -> Sequence[Meaning]:
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return msgspec.convert(data["meanings"], list[Meaning])


def kind_of(status: int, code: str, text: str) -> ErrorKind:
    """The category of a failure; the words decide where the status (0: none) says too little."""
    said = f"{code} {text}"
    by_status = _KIND_OF_STATUS.get(status) or ("timeout" if status >= 500 else None)
    # a rate limit is a failure of length only if one request alone is beyond it
    not_of_length = status in {401, 402, 403, 529} or (status == 429 and not _BEYOND_THE_RATE.search(said))
    for each in _meanings():
        if not each.kind or (each.weak and by_status) or (each.kind == "context_overflow" and not_of_length):
            continue
        if each.is_said(said):
            return each.kind
    return by_status or "unknown"


def advice_for(status: int, text: str, *, words_only: bool = False) -> str:
    """What to do about a failure in these words, or with this status; empty: neither says."""
    by_words = next((each.advice for each in _meanings() if each.advice and each.is_said(text)), "")
    return by_words or ("" if words_only else _ADVICE_OF_STATUS.get(status, ""))


def says_no_such_model(status: int, text: str) -> bool:
    """Whether a failure means that there is no such model, or none for this key."""
    return status in {400, 403, 404, 422} and bool((_MODEL if status == 404 else _NO_MODEL).search(text))


def window_in(text: str) -> int:
    """Tokens that the model sees, as a refusal for length names them; 0: it doesn't."""
    return next((_number(found) for pattern in _WINDOW if (found := pattern.search(text))), 0)


def longest_answer_in(text: str) -> int:
    """Tokens that the model can answer, as the refusal of a larger `max_tokens` names them; 0: it doesn't."""
    found = _LONGEST.search(text)
    return _number(found) if found else 0


def setting_in(text: str) -> str:
    """The setting of `[agent]` that a refusal names; empty: none."""
    found = _SETTING.search(text)
    return re.sub("completion_|output_", "", (found[1] or found[2]).lower()) if found else ""


def _number(found: re.Match[str]) -> int:
    return int(found[found.lastindex or 0].replace(",", ""))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_BEYOND_THE_RATE: Final = _any(r"tokens must be reduced|context_length_exceeded")  # OpenAI, a request above its limit

_KIND_OF_STATUS: Final[Mapping[int, ErrorKind]] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "timeout",
    409: "timeout",
    413: "context_overflow",
    425: "timeout",
    429: "rate_limit",
    451: "unknown",
    499: "timeout",
}

_ADVICE_OF_STATUS: Final[Mapping[int, str]] = {
    407: "write the user and password of the proxy into its address, in `proxy` or HTTPS_PROXY: "
    "http://me:password@proxy.example:3128",
    410: "take another model: `denizen models {provider}`",
    511: "log in to this network first: it shows any browser where",
}

STATUS_OF_CODE: Final[Mapping[str, int]] = {
    code: status
    for status, codes in {
        400: "invalid_request_error",
        401: "authentication_error invalid_api_key unauthenticated",
        402: "billing_error",
        403: "permission_error permission_denied",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error rate_limit_exceeded too_many_requests insufficient_quota resource_exhausted",
        500: "api_error server_error internal_error internal_server_error internal",
        503: "service_unavailable unavailable",
        504: "timeout_error deadline_exceeded",
        529: "overloaded_error overloaded",
    }.items()
    for code in codes.split()
}
"""The status that a provider would have sent with its code, had the error not come inside a stream."""

_MODEL: Final = _any(r"\bmodels?\b|endpoints found")
_NO_MODEL: Final = _any(
    r"\bmodel\b.{0,80}(\bnot|n.t) (exist|found)|access to (the )?model|unable to access model|no endpoints found for",
    r"(invalid|unknown|no such) model(s| name| id)?(\.?$|:|,| ['\"`(])|not a valid model|model identifier is invalid",
)
_WINDOW: Final = (
    _any(r"\d(?: tokens)? > (\d+) maximum|\d \+ \d+ > (\d+)"),  # Anthropic, whose sentence fits the next one, too
    _any(r"(?:context|prompt|model|token)[ _](?:length|size|limit|window)(?: of| is|:)*(?: only)? \(?(\d[\d,]+)"),
    _any(r"n_ctx(?:_slot)?\W{1,3}(\d+)|max_model_len\W{1,3}(\d+)"),  # llama.cpp, vLLM
    _any(r"(?:exceeds the (?:maximum|limit).{0,40}?|limit (?:is )?|must be <= |\[\d+, ?|for model with )\(?(\d[\d,]+)"),
)
_LONGEST: Final = _any(
    r"max_tokens\W{1,4}\d+ > (\d+)",  # Anthropic
    r"at most (\d+) completion tokens",  # OpenAI
    r"range of .?max_tokens.{0,12}\[\d+, ?(\d+)\]",  # DeepSeek, Alibaba
    r"max_(?:completion_|output_)?tokens\W+(?:must|should) be (?:less than or equal to|<=|at most) \W?(\d+)",  # Groq
    r"maximum tokens you requested exceeds the model limit of (\d+)",  # Bedrock
)
_SETTING: Final = re.compile(
    r"\b(max_(?:completion_|output_)?tokens|temperature|top_[pk]|(?:frequency|presence)_penalty)\b|['\"`](seed|stop)['\"`]",
    re.IGNORECASE,
)
