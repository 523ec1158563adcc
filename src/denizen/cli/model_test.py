"""`denizen models test`: one small call with a tool, and what of a model works."""

import asyncio
import time

import msgspec
from msgspec.structs import replace

from denizen.cli.output import print_table, write_json
from denizen.config.load import Loaded
from denizen.errors import DenizenError, ModelError
from denizen.events import Failed, Finished, TextDelta, ThinkingDelta, ToolCallDelta
from denizen.messages import AssistantMessage, Text, Thinking, Usage, UserMessage
from denizen.models import open_model
from denizen.ports import ModelRequest, Schema
from denizen.runtime.clock import SystemClock
from denizen.text.plural import counted

_WORD = "plum"
_TOOL = Schema(
    "echo",
    "Say a word back.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
_ASKED = f"Call the tool echo with the word {_WORD}, and say nothing else."


class Tried(msgspec.Struct, frozen=True):
    """What one call brought. Times are seconds: to its first piece (None: it was streamed in none), and in all."""

    model: str
    pieces: int
    called: bool
    thoughts: bool
    usage: Usage
    first: float | None
    seconds: float
    said: str


def test_model(loaded: Loaded, name: str, *, as_json: bool) -> None:
    """Try a model and say what works. Raises DenizenError if it can't be asked, or doesn't call the tool."""
    tried = asyncio.run(_try(loaded, name))
    if as_json:
        write_json(tried)
    else:
        print_table(("what", "works", "how"), _rows(tried), elastic="how")
    if not tried.called:
        raise DenizenError(f"{tried.model} doesn't call tools when asked to, so agents can't work with it.")


async def _try(loaded: Loaded, name: str) -> Tried:
    agent = replace(loaded.config.agent, max_retries=0)
    config = replace(loaded.config, model=name, fallback_models=[], agent=agent)
    model = open_model(config, environ=loaded.environ, clock=SystemClock())
    request = ModelRequest(
        [UserMessage([Text(_ASKED)])],
        "You are tested.",
        [_TOOL],
        max_tokens=agent.max_tokens,
        options=agent.options,
        reasoning=agent.reasoning,
        stream=True,
    )
    began, first, pieces = time.monotonic(), None, 0
    answer: AssistantMessage | ModelError = ModelError(f"{model.name} ended its answer without saying how")
    try:
        async for event in model.stream(request):
            if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
                pieces += 1
                first = first or time.monotonic() - began
            elif isinstance(event, Finished):
                answer = event.message
            elif isinstance(event, Failed):
                answer = event.error
    finally:
        await model.close()
    if isinstance(answer, ModelError):
        raise answer
    return Tried(
        answer.model or model.name,
        pieces,
        any(call.name == _TOOL.name and call.args.get("word") == _WORD for call in answer.tool_calls),
        any(isinstance(part, Thinking) and part.text for part in answer.content),
        answer.usage,
        first,
        time.monotonic() - began,
        answer.text,
    )


def _rows(tried: Tried) -> list[tuple[str, str, str]]:
    usage = tried.usage
    tokens = f"{usage.context - (usage.output or 0):,} in, {usage.output or 0:,} out" if usage != Usage() else ""
    cost = "no price is known" if usage.cost_usd is None else f"${usage.cost_usd:.6f}"
    first = "" if tried.first is None else f"{tried.first:.1f} s to the first piece, "
    return [
        ("streaming", _yes(tried.pieces > 1), counted(tried.pieces, "piece")),
        ("tool call", _yes(tried.called), "" if tried.called else f"it said {tried.said!r}"),
        ("thoughts", _yes(tried.thoughts), "" if tried.thoughts else "none came: `reasoning` asks for more"),
        ("usage", _yes(bool(tokens)), f"{tokens}, {cost}" if tokens else "it counts no tokens"),
        ("latency", "", f"{first}{tried.seconds:.1f} s in all"),
    ]


def _yes(works: bool) -> str:
    return "yes" if works else "no"
