"""The model: who thinks."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from denizen.events import StreamEvent
from denizen.messages import AssistantMessage, Message


class Schema(msgspec.Struct, frozen=True):
    """What a model knows of a tool: its name, what it does, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


Level = Literal["none", "low", "medium", "high"]
"""How much a model thinks before it answers."""

Reasoning = Level | int
"""The same, or the tokens that it may take for that."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One model call. `messages` may be the context's own list, which grows later: copy what you keep.

    `options` (temperature, top_p, …; `extra_body`) go to the provider as they are; `stream` asks for deltas;
    `output_schema` is the JSON schema that the final answer must fulfil, for providers that accept one. `tokens` is
    how large the call is, as far as is known (0: not at all): `max_tokens` is fitted to the room that it leaves.
    `reasoning` None leaves it to the provider how much the model thinks. `answers_now`: no more tools are needed, and
    they are left out where only then the answer can be held to its schema.
    """

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[Schema] = ()
    max_tokens: int = 8192
    options: Mapping[str, Any] = {}
    stream: bool = False
    session_key: str = ""
    output_schema: dict[str, Any] | None = None
    tokens: int = 0
    reasoning: Reasoning | None = None
    answers_now: bool = False


class Limits(msgspec.Struct, frozen=True):
    """What a model takes: tokens it sees, tokens it can answer. What isn't known limits nothing.

    `cache_s`: how long its provider keeps a prompt in a cache after the last call, in seconds.
    """

    window: int = 200_000
    max_output: int = 200_000
    cache_s: float = 300.0


class Model(Protocol):
    """A language model."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The answer as it comes; ends with exactly one Finished or Failed; a provider's failure never raises."""


@runtime_checkable
class KnownModel(Model, Protocol):
    """A model that knows its name and limits.

    `name` is `provider:model`; `local` ones run on this machine, cost nothing, and may see little.
    """

    name: str
    local: bool

    def limits(self, session_key: str = "") -> Limits:
        """Its context window and longest answer; may load the catalogue.

        `session_key`: of the model that this session asked last, where several go on for each other.
        """

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class CountingModel(Model, Protocol):
    """A model whose provider may count the tokens of a call before it is made."""

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The tokens of the call; None if the provider doesn't count, or can't be asked now."""


AskModel = Callable[[Sequence[Message], str], Awaitable[AssistantMessage]]
"""Asks the turn's model for something on the side (messages, system prompt); raises ModelError."""


INVALID_JSON = "invalid_json"
"""The only argument of a call whose arguments weren't a JSON object; its value is what the model wrote instead."""
