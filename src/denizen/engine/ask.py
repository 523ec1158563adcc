"""Asking the model: the one path for streaming, retries, overflow relief and budgets."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Iterator, Sequence

from denizen.engine.prompting import prompt_for
from denizen.engine.showing import Showing
from denizen.engine.tracing import call_span, record_answer
from denizen.engine.turn import Turn
from denizen.entries import AssistantEntry
from denizen.errors import ModelError
from denizen.events import Compacted, Failed, Finished, LlmEnd, LlmStart, Retrying
from denizen.messages import AssistantMessage, Message, Text
from denizen.ports import ModelRequest

WORTH_A_NOTICE = {
    "length": "The answer was cut off by the length limit (agent.max_tokens).",
    "refusal": "The model refused to answer.",
}
"""What the user should know of an answer's end."""


async def ask_model(turn: Turn) -> AssistantMessage:
    """The model's answer to the context as it stands, written to the transcript.

    A context that won't fit is relieved before the call, one that the provider refuses after it (seed 003, "3-level
    context overflow recovery"); the levels begin anew with each iteration. Raises ModelError when nothing helped.
    """
    levels = iter((1, 2))
    while turn.feed.context.overfull(turn.view()) and await _relieve(turn, levels):
        pass
    while True:
        turn.emit(LlmStart(turn.iteration, turn.agent.model.name))
        outcome = await _call(turn, _request(turn), partial=True)
        if isinstance(outcome, AssistantMessage):
            break
        if outcome.kind != "context_overflow" or not await _relieve(turn, levels):
            raise outcome
    turn.last_usage = outcome.usage
    await turn.append(AssistantEntry(message=outcome))
    turn.emit(LlmEnd(outcome))
    if outcome.stop_reason in WORTH_A_NOTICE:
        turn.notice(WORTH_A_NOTICE[outcome.stop_reason], warning=True)
    return outcome


async def ask_aside(turn: Turn, messages: Sequence[Message], system: str) -> AssistantMessage:
    """The model's answer to something on the side, as for a summary. Raises ModelError."""
    outcome = await _call(turn, ModelRequest(messages, system, session_key=f"{turn.session.key}#aside"))
    if isinstance(outcome, ModelError):
        raise outcome
    return outcome


def _request(turn: Turn) -> ModelRequest:
    agent = turn.agent
    request = ModelRequest(
        turn.feed.context.assemble(turn.view()),
        turn.feed.prompt,
        max_tokens=agent.config.agent.max_tokens,
        options=agent.options,
        stream=turn.stream,
        session_key=turn.session.key,
        output_schema=turn.output.schema if turn.output else None,
    )
    return agent.actions.prepare(request, agent.tools)


async def _relieve(turn: Turn, levels: Iterator[int]) -> bool:
    """Make the context smaller by the next level that can; whether one could."""
    for level in levels:
        entry = await turn.feed.context.relieve(turn.view(), level, functools.partial(ask_aside, turn))
        if entry is None:
            continue
        await turn.append(entry)
        turn.last_usage = None
        turn.emit(Compacted(entry.old_count, entry.new_count))
        if level == 1 and not entry.summary:
            turn.notice("The earlier conversation was cut off: no summary of it could be made.", warning=True)
        await prompt_for(turn)
        return True
    return False


async def _call(turn: Turn, request: ModelRequest, *, partial: bool = False) -> AssistantMessage | ModelError:
    """One call through fail-over; `partial` keeps what had streamed when the turn is cancelled."""
    turn.agent.budget.check(turn)
    showing = Showing(turn)
    with call_span(turn.agent.model.name) as span:
        try:
            outcome = await _consume(turn, request, showing)
        except asyncio.CancelledError:
            if partial and showing.text:
                await turn.append(AssistantEntry(message=AssistantMessage([Text(showing.text)], stop_reason="aborted")))
            raise
        record_answer(span, outcome)
    if isinstance(outcome, AssistantMessage):
        turn.usage = turn.usage.plus(outcome.usage)
        turn.agent.budget.charge(turn, outcome)
        return turn.agent.redactor.value(outcome)
    outcome.reword(turn.agent.redact(outcome.message))
    return outcome


async def _consume(turn: Turn, request: ModelRequest, showing: Showing) -> AssistantMessage | ModelError:
    events = turn.agent.model.stream(request)
    try:
        async for event in events:
            if isinstance(event, Finished):
                return event.message
            if isinstance(event, Failed):
                return event.error
            if isinstance(event, Retrying):
                showing.again(event)
            else:
                showing.show(event)
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
    return ModelError(f"{turn.agent.model.name} ended its answer without saying how", kind="timeout")
