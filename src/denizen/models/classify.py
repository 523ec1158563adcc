"""What a provider's failure means: its status, code and words become one of seed 003's categories."""

import re
from collections.abc import Mapping
from typing import Final

from denizen.errors import ErrorKind


def classify(status: int, code: str, text: str) -> ErrorKind:
    """The category of a failure; the words decide where the status (0: none) says too little."""
    told = f"{code} {text}"
    if _too_long(status, told):
        return "context_overflow"
    if "insufficient_quota" in code:
        return "quota"
    if _BILLING.search(told):
        return "billing"
    return _by_status(status) or next((kind for kind, pattern in _WORDS if pattern.search(told)), "unknown")


def says_no_such_model(status: int, text: str) -> bool:
    """Whether a failure means that there is no such model, or none for this key."""
    return status in {400, 403, 404, 422} and bool((_MODEL if status == 404 else _NO_MODEL).search(text))


def window_named(text: str) -> int:
    """Tokens that the model sees, as a refusal for length names them; 0: it doesn't."""
    return next((_number(found) for pattern in _WINDOW if (found := pattern.search(text))), 0)


def longest_named(text: str) -> int:
    """Tokens that the model can answer, as the refusal of a larger `max_tokens` names them; 0: it doesn't."""
    found = _LONGEST.search(text)
    return _number(found) if found else 0


def _number(found: re.Match[str]) -> int:
    return int(found[found.lastindex or 0].replace(",", ""))


def _too_long(status: int, told: str) -> bool:
    """A rate limit may speak of length too; waiting mends it, unless one request alone is beyond the limit."""
    if status in {401, 402, 403, 529}:
        return False
    return bool((_BEYOND_THE_RATE if status == 429 else _OVERFLOW).search(told))


def _by_status(status: int) -> ErrorKind | None:
    return _KINDS.get(status) or ("timeout" if status >= 500 else None)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_KINDS: Final[Mapping[int, ErrorKind]] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "timeout",
    409: "timeout",
    413: "context_overflow",
    425: "timeout",
    429: "rate_limit",
    451: "unknown",
}

STATUS_OF_CODE: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "billing_error": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "internal": 500,
    "service_unavailable": 503,
    "unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "overloaded_error": 529,
    "overloaded": 529,
}
"""The status that a provider would have sent with its code, had the error not come inside a stream."""

_OVERFLOW: Final = _any(
    r"context_length_exceeded|exceed_context_size|too_many_prompt_tokens|context_window_exceeded",
    r"(prompt|input) (is )?too long|input length and .?max_tokens.? exceed",  # Anthropic, Bedrock, Fireworks, Ollama
    r"maximum (context|prompt|model) length|longer than the (model'?s |maximum )?(context|model) length",  # most
    r"exceeds? (the |your |model'?s? )*(available |maximum |max )?(context|token limit|max length|limit of \d+ tokens)",
    r"exceeded (model )?token limit|context (window|length|size) exceed|greater than the context length",
    r"context length of only|context the overflows|context size has been exceeded",  # LM Studio
    r"context shift is disabled",  # llama.cpp, amid an answer
    r"(input|prompt) token count .{0,40}exceeds|prompt contains \d+ tokens",  # Gemini, Copilot, Mistral
    r"reduce the length of the (messages|prompt|input)|reduce your message size",  # Groq, Cerebras
    r"inputs.? (tokens )?.{0,30}must (be <=|have less than)|range of input length should be",  # TGI, Alibaba
    r"total length of all messages is too long|too many (input )?tokens|too many total text bytes",
    r"tokens in request more than max|prompt exceeds max",  # Z.ai
)
_WINDOW: Final = (
    _any(r"\d(?: tokens)? > (\d+) maximum|\d \+ \d+ > (\d+)"),  # Anthropic, whose sentence fits the next one, too
    _any(r"(?:context|prompt|model|token)[ _](?:length|size|limit|window)(?: of| is|:)*(?: only)? \(?(\d[\d,]+)"),
    _any(r"(?:exceeds the (?:maximum|limit).{0,40}?|limit (?:is )?|must be <= |\[\d+, ?|for model with )\(?(\d[\d,]+)"),
)
_LONGEST: Final = _any(
    r"max_tokens\W{1,4}\d+ > (\d+)",  # Anthropic
    r"at most (\d+) completion tokens",  # OpenAI
    r"range of .?max_tokens.{0,12}\[\d+, ?(\d+)\]",  # DeepSeek, Alibaba
    r"max_(?:completion_)?tokens\W+(?:must|should) be (?:less than or equal to|<=|at most) \W?(\d+)",  # Groq
    r"maximum tokens you requested exceeds the model limit of (\d+)",  # Bedrock
)
_BEYOND_THE_RATE: Final = _any(r"tokens must be reduced|context_length_exceeded")  # OpenAI, a request above its limit
_BILLING: Final = _any(
    r"credit balance is too low|insufficient[ _](balance|credits?|funds)|out of credits",
    r"(buy|add|purchase) (more )?credits",
    r"(used all|exhausted) .{0,30}credits|spend(ing)?[ _]limit|billing (hard )?limit|billing_not_active",
)
_MODEL: Final = _any(r"\bmodels?\b|endpoints found")
_NO_MODEL: Final = _any(
    r"\bmodel\b.{0,80}(\bnot|n.t) (exist|found)|access to (the )?model|unable to access model|no endpoints found for",
    r"(invalid|unknown|no such) model(s| name| id)?(\.?$|:|,| ['\"`(])|not a valid model|model identifier is invalid",
)
_WORDS: Final[tuple[tuple[ErrorKind, re.Pattern[str]], ...]] = (
    ("rate_limit", _any(r"rate[ _-]?limit|too many requests|throttl")),
    ("quota", _any(r"quota")),
    ("auth", _any(r"(invalid|incorrect|missing|expired|no) api[ _]?key|api key (not valid|expired)|unauthori[sz]ed")),
    (
        "timeout",
        _any(
            r"time[ds]?[ -]?out|overloaded|over ?capacity|temporarily|unavailable|internal (server )?error|bad gateway",
            r"connection (was )?(reset|closed|refused|error|aborted)|ECONN|upstream|try again|socket hang up",
            r"tool_use_failed",  # Groq, when the model botched a call
        ),
    ),
)
