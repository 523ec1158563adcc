"""From the words of a provider's refusal to its category and to advice, by `failure_words.toml`."""

import functools
import re
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from denizen.errors import ErrorKind


class FailureMeaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `failure_words.toml`: words, and the category or advice that they stand for."""

    words: list[str]
    kind: ErrorKind | None = None
    advice: str = ""
    weak: bool = False

    def matches(self, text: str) -> bool:
        """Whether a text has one of the words."""
        return any(re.search(word, text, re.IGNORECASE) for word in self.words)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`failure_words.toml`."""

    kinds: dict[int, ErrorKind]
    advice: dict[int, str]
    codes: dict[str, int]
    meanings: list[FailureMeaning]


@functools.cache
def table() -> Table:
    """What failures mean."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return msgspec.convert(data, Table, strict=False)


def kind_of(status: int, code: str, text: str) -> ErrorKind:
    """The category of a failure; the words decide where the status (0: none) says too little."""
    said = f"{code} {text}"
    by_status = table().kinds.get(status) or ("timeout" if status >= 500 else None)
    # a rate limit is a failure of length only if one request alone is beyond it
    not_of_length = status in {401, 402, 403, 529} or (status == 429 and not _BEYOND_THE_RATE.search(said))
    for each in table().meanings:
        if not each.kind or (each.weak and by_status) or (each.kind == "context_overflow" and not_of_length):
            continue
        if each.matches(said):
            return each.kind
    return by_status or "unknown"


def advice_for(status: int, text: str, *, words_only: bool = False) -> str:
    """Advice for a failure in these words, or with this status; empty if there is none."""
    by_words = next((each.advice for each in table().meanings if each.advice and each.matches(text)), "")
    return by_words or ("" if words_only else table().advice.get(status, ""))


def says_no_such_model(status: int, text: str) -> bool:
    """Whether the model doesn't exist, or isn't available for this key."""
    return status in {400, 403, 404, 422} and bool((_MODEL if status == 404 else _NO_MODEL).search(text))


def window_in(text: str) -> int:
    """Tokens that the model sees, as a refusal for length names them; 0: it doesn't."""
    return next((_number(found) for pattern in _WINDOW if (found := pattern.search(text))), 0)


def longest_answer_in(text: str) -> int:
    """Tokens that the model can answer, as the refusal of a larger `max_tokens` names them; 0: it doesn't."""
    found = _LONGEST.search(text)
    return _number(found) if found else 0


def setting_in(text: str) -> str:
    """The setting of `[agent]` that a refusal names, or an empty string."""
    found = _SETTING.search(text)
    return re.sub("completion_|output_", "", (found[1] or found[2]).lower()) if found else ""


def _number(found: re.Match[str]) -> int:
    return int(found[found.lastindex or 0].replace(",", ""))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_BEYOND_THE_RATE: Final = _any(r"tokens must be reduced|context_length_exceeded")  # OpenAI, a request above its limit

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
