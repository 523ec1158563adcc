"""The wire format of OpenAI Chat Completions' answers, as far as we read it, with what other providers add."""

from typing import Any, Final

import msgspec

from denizen.messages import Usage
from denizen.models.openai_calls import CallDelta
from denizen.models.parsing import Count

_MOST_PAID: Final = 1e9


class Part(msgspec.Struct, gc=False):
    """An element of content that is a list, as Mistral sends it."""

    type: str = ""
    text: str | None = None
    thinking: "list[Part] | str | None" = None

    def thoughts(self) -> str:
        """Its thoughts, if it is one."""
        return (
            self.thinking
            if isinstance(self.thinking, str)
            else "".join(part.text or "" for part in self.thinking or ())
        )


class Delta(msgspec.Struct, gc=False):
    """A piece of the answer, or all of it. Its thoughts have two names."""

    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    tool_calls: list[CallDelta] | None = None
    refusal: str | None = None
    extra_content: Any = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class Counts(msgspec.Struct, gc=False):
    """Tokens as the providers count them: those of the prompt include what the cache gave and got."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    cached_tokens: Count | None = None
    prompt_cache_hit_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cost: Any = None
    is_byok: bool | None = None

    def usage(self, *, thoughts_extra: bool) -> Usage:
        """The same in our terms. `thoughts_extra`: the tokens of thoughts come on top of those of the answer."""
        details = self.prompt_tokens_details or _Details()
        read = _first(details.cached_tokens, self.cached_tokens, self.prompt_cache_hit_tokens)
        written = _first(details.cache_write_tokens, self.cache_creation_input_tokens)
        sent = self.prompt_tokens
        fresh = None if sent is None else max(0, sent - (read or 0) - (written or 0))
        return Usage(fresh, self._answered(thoughts_extra), read, written, self._paid())

    def _answered(self, thoughts_extra: bool) -> int | None:
        thoughts = (self.completion_tokens_details or _Details()).reasoning_tokens if thoughts_extra else 0
        return None if self.completion_tokens is None else self.completion_tokens + (thoughts or 0)

    def _paid(self) -> float | None:
        """US dollars, where a router tells; with the user's own key it tells only its fee."""
        known = isinstance(self.cost, int | float) and 0 <= self.cost < _MOST_PAID and not self.is_byok
        return float(self.cost) if known else None


class Choice(msgspec.Struct, gc=False):
    """One of the answers; we only ask for one. Moonshot counts the tokens in it."""

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    error: Any = None
    usage: Counts | None = None


class Chunk(msgspec.Struct, gc=False):
    """An event of a stream, or a whole response."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None


CHUNK: Final = msgspec.json.Decoder(Chunk)


def _first(*counts: int | None) -> int | None:
    for count in counts:
        if count is not None:
            return count
    return None
