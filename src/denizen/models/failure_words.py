"""What a provider's refusal means: one table from its words to a category and to what to do about it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from denizen.errors import ErrorKind


class Meaning(NamedTuple):
    """What some words mean: a category (None: whatever the status says) and what to do (empty: whatever helps there).

    In `advice`, `{provider}` is replaced by the name of the provider. `weak` words give way to a status that says more.
    """

    words: re.Pattern[str]
    kind: ErrorKind | None = None
    advice: str = ""
    weak: bool = False


def kind_of(status: int, code: str, text: str) -> ErrorKind:
    """The category of a failure; the words decide where the status (0: none) says too little."""
    said = f"{code} {text}"
    by_status = _KIND_OF_STATUS.get(status) or ("timeout" if status >= 500 else None)
    # a rate limit is a failure of length only if one request alone is beyond it
    not_of_length = status in {401, 402, 403, 529} or (status == 429 and not _BEYOND_THE_RATE.search(said))
    for words, kind, _, weak in _TABLE:
        if not kind or (weak and by_status) or (kind == "context_overflow" and not_of_length):
            continue
        if words.search(said):
            return kind
    return by_status or "unknown"


def advice_for(status: int, text: str, *, words_only: bool = False) -> str:
    """What to do about a failure in these words, or with this status; empty: neither says."""
    by_words = next((row.advice for row in _TABLE if row.advice and row.words.search(text)), "")
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


def _means(*patterns: str, kind: ErrorKind | None = None, advice: str = "", weak: bool = False) -> Meaning:
    return Meaning(_any(*patterns), kind, advice, weak)


_BEYOND_THE_RATE: Final = _any(r"tokens must be reduced|context_length_exceeded")  # OpenAI, a request above its limit

_TABLE: Final = (
    _means(
        r"context_length_exceeded|exceed_context_size|too_many_prompt_tokens|context_window_exceeded",
        r"(prompt|input) (is )?too long|input length and .?max_tokens.? exceed",  # Anthropic, Bedrock, Ollama
        r"maximum (context|prompt|model) length|longer than the (model'?s |maximum )?(context|model) length",
        r"exceeds? (the |your |model'?s? )*(available |maximum |max )?"
        r"(context|token limit|max length|limit of \d+ tokens)",
        r"exceeded (model )?token limit|context (window|length|size) exceed|greater than the context length",
        r"context length of only|context the overflows|context size has been exceeded",  # LM Studio
        r"context shift is disabled|exceeds n_ctx|too large to process",  # llama.cpp, amid an answer; of a batch
        r"greater than max_model_len|max_tokens must be at least 1, got -",  # vLLM
        r"(input|prompt) token count .{0,40}exceeds|prompt contains \d+ tokens",  # Gemini, Copilot, Mistral
        "payload size exceeds",  # Gemini, of bytes
        r"reduce the length of the (messages|prompt|input)|reduce your message size",  # Groq, Cerebras
        r"inputs.? (tokens )?.{0,30}must (be <=|have less than)|range of input length should be",  # TGI, Alibaba
        r"total length of all messages is too long|too many (input )?tokens|too many total text bytes",
        r"tokens in request more than max|prompt exceeds max",  # Z.ai
        _BEYOND_THE_RATE.pattern,
        kind="context_overflow",
    ),
    _means("insufficient_quota", kind="quota"),
    _means(
        r"credit balance is too low|insufficient[ _](balance|credits?|funds)|out of credits",
        r"(buy|add|purchase) (more )?credits",
        r"(used all|exhausted) .{0,30}credits|spend(ing)?[ _]limit|billing (hard )?limit|billing_not_active",
        kind="billing",
    ),
    _means(r"rate[ _-]?limit|too many requests|throttl", kind="rate_limit", weak=True),
    _means("quota", kind="quota", weak=True),
    _means(
        r"(invalid|incorrect|missing|expired|no) api[ _]?key|api key (not valid|expired)|unauthori[sz]ed",
        kind="auth",
        weak=True,
    ),
    _means("invalid_argument", kind="unknown", weak=True),  # Google: "Update the value and try again"
    _means(
        r"time[ds]?[ -]?out|overloaded|over ?capacity|temporarily|unavailable|internal (server )?error|bad gateway",
        r"connection (was )?(reset|closed|refused|error|aborted)|ECONN|upstream|try again|socket hang up",
        r"tool_use_failed",  # Groq, when the model botched a call
        kind="timeout",
        weak=True,
    ),
    _means(
        r"(not|n.t) support (the )?(tool|function)|no endpoints found that support tool",
        advice='take a model that calls tools, or let it act by commands in its text: agent.actions = "shell"',
    ),
    _means(
        r"'tools'.{0,20}(array too long|maximum number of items)|function declarations can be specified|too many tools",
        advice="offer it fewer tools: agent.max_mcp_tools is how many of MCP servers go along",
    ),
    _means(
        r"only (be )?supported in v1/responses|not a chat model|use the (v1/)?responses (api|endpoint)",
        advice='set api = "responses" in providers.{provider}, or for this model alone',
    ),
    _means(
        r"POST .{0,40}/responses|/responses.{0,40}(not|n.t) (found|support|implement)",
        advice='set api = "chat" in providers.{provider}: it may not serve OpenAI Responses',
    ),
    _means(
        r"(not|n.t|only) (be )?support.{0,30}\b(image|vision)|\b(image|vision).{0,40}(not|n.t|only) (be )?support",
        r"endpoints found that support image|variant .image_url|not a multimodal|at most 0 image",
        r"required for image",
        advice="take a model that sees pictures, or begin a new session without them",
    ),
    _means(
        r"\bimages?\b.{0,60}\b(exceed|too (large|big))|could not process image",
        advice="begin a new session with a smaller picture",
    ),
    _means(
        "certificate verify failed",
        advice="if you trust that server, name the file with its certificate in SSL_CERT_FILE",
    ),
    _means(r"does it speak https\?", advice="if not, write http:// in providers.{provider}.base_url"),
    _means(
        "its answer is compressed",
        advice="something on the way does it: see that providers.{provider}.base_url leads to the provider itself",
    ),
    _means(
        "^the connection failed: the proxy", advice="look at `proxy` in denizen.toml and HTTPS_PROXY in the environment"
    ),
    _means("HTTP request (was sent )?to (an )?HTTPS", advice="write https:// in providers.{provider}.base_url"),
    _means(
        r"is not a (chat completion|message|response) in",
        advice="see that providers.{provider}.base_url leads to a model server, and providers.{provider}.api is its "
        "format",
    ),
    _means(
        r"\b(country|region|territory|location)\b.{0,40}(not|n.t|un) ?(available|supported)",
        advice="take a provider that serves where you are",
    ),
    _means(
        r"\b(input|prompt|content|request|message)s?\b.{0,60}\bflagged\b|requires moderation|inappropriate content",
        r"content (management )?policy|content filter|safety system|content exists risk",
        advice="say it otherwise, or take another model",
    ),
    _means("Vertex AI isn't set up: .*project", advice="set GOOGLE_CLOUD_PROJECT, or providers.vertex.project"),
    _means(
        "Vertex AI isn't set up",
        advice="run `gcloud auth application-default login`, or name a file with credentials in "
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    _means("AWS isn't set up: .*region", advice="set AWS_REGION"),
    _means(
        "AWS isn't set up",
        advice="set AWS_BEARER_TOKEN_BEDROCK, or the credentials of AWS's own tools: `aws configure`",
    ),
)

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
