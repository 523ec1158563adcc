"""Asking the model: the one path for streaming, retries, overflow relief and budgets."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import msgspec

from denizen.engine.prompting import renew_prompt
from denizen.engine.reply_stream import ReplyStream
from denizen.engine.session_state import no_summary
from denizen.engine.spending import charge, check_budgets
from denizen.engine.tracing import UNTRACED, call_span, record_answer, record_content
from denizen.engine.turn import Turn
from denizen.engine.turn_over import Interrupted, TurnOver
from denizen.entries import AssistantEntry, CompactionEntry
from denizen.errors import ModelError
from denizen.events import Compacted, Failed, Finished, LlmStart, Retrying, TextDelta
from denizen.messages import AssistantMessage, AssistantPart, Message, Text, ToolCall, Usage
from denizen.ports import SURELY_HELD, CountingModel, ModelRequest, View
from denizen.text.estimate import estimate_message, estimate_text

RETRY_SUMMARY_GROWTH = 1.1
"""How much larger a context must be than when no summary could be made, before another is asked for."""

Outcome = AssistantMessage | ModelError


async def ask_model(turn: Turn) -> AssistantMessage:
    """The model's answer to the context as it is now; the caller appends it to the session.

    A context that won't fit is relieved before the call, one that the provider refuses after it (decisions,
    "Overflow"); each iteration starts with the first level. An interrupted answer is cut to what was shown.
    Raises ModelError when nothing helped.
    """
    levels = [1, 2, 3]
    await _relieve_early(turn, levels)
    while True:
        await check_budgets(turn)
        turn.emit(LlmStart(turn.account.iterations + 1, turn.agent.model.name))
        outcome = await _call(turn, request_of(turn), keep=True)
        if isinstance(outcome, AssistantMessage):
            break
        if outcome.kind != "context_overflow" or not await _relieve(turn, levels):
            raise outcome
    if turn.controls.interrupts and outcome.stop_reason == "aborted":
        return outcome
    outcome = _with_own_ids(turn, outcome)
    turn.last_usage = outcome.usage
    await charge(turn, outcome)
    return outcome


async def summary_entry(turn: Turn, level: int) -> CompactionEntry | None:
    """The entry by which the context policy makes the context smaller at this level; None: it can't.

    A turn without history can't either: later turns of the session see more than it does.
    """
    if not turn.options.history:
        return None
    spent = Usage()

    async def ask_for_summary(messages: Sequence[Message], system: str) -> AssistantMessage:
        nonlocal spent
        await check_budgets(turn)
        agent = turn.agent
        request = ModelRequest(
            messages,
            system,
            max_tokens=agent.limits.answer_tokens,
            options=agent.options,
            reasoning=agent.reasoning,
            session_key=f"{turn.session.key}#aside",
            tokens=estimate_text(system) + sum(map(estimate_message, messages)),
        )
        outcome = await _call(turn, request)
        if isinstance(outcome, ModelError):
            raise outcome
        await charge(turn, outcome)
        spent = spent.plus(outcome.usage)
        return outcome

    entry = await turn.context.relieve(turn.view(), level, ask_for_summary)
    return entry and msgspec.structs.replace(entry, usage=spent)


def request_of(turn: Turn) -> ModelRequest:
    """The next request: the current context, in the agent's action format."""
    agent = turn.agent
    request = ModelRequest(
        turn.context.assemble(turn.view()),
        turn.state.prompt,
        max_tokens=agent.limits.answer_tokens,
        options=agent.options,
        reasoning=agent.reasoning,
        stream=turn.options.stream,
        session_key=turn.session.key,
        output_schema=turn.options.output.enforced if turn.options.output else None,
        tokens=max(turn.context.tokens(turn.view()) - turn.state.overestimate, 0),
        answers_now=turn.tries > 0,
    )
    request = agent.actions.prepare(request, agent.tools)
    if agent.tools and not (request.tools or turn.tries):  # commands in text are no JSON
        request = msgspec.structs.replace(request, output_schema=None)
    return request


async def _relieve_early(turn: Turn, levels: list[int]) -> None:
    """Make the context smaller if it probably won't fit; nothing is cut without a summary."""
    while levels:
        view = turn.view()
        tokens = turn.context.tokens(view)
        if turn.agent.model.local or tokens > SURELY_HELD:
            await turn.state.know_limits(turn.agent.model, turn.session.key)
        if tokens < turn.state.unsummarised * RETRY_SUMMARY_GROWTH or await _fits(turn, view, tokens):
            return
        entry = await summary_entry(turn, levels[0])
        if entry and entry.unsummarised:
            await turn.append(no_summary(tokens))
            return
        del levels[0]
        if entry:
            await _shrink(turn, entry)


async def _fits(turn: Turn, view: View, tokens: int) -> bool:
    """Whether a call of that estimated size fits into the window; if it seems not to, the provider counts."""
    state, model = turn.state, turn.agent.model
    if view.holds(tokens - state.overestimate):
        return True
    if not isinstance(model, CountingModel):
        return False
    exact: int | None = None
    with suppress(ModelError, OSError):  # whatever is wrong, the call itself will tell
        exact = await turn.controls.run_until_stopped(model.count_tokens(request_of(turn)))
    if exact is None:
        return False
    state.overestimate = tokens - exact
    return view.holds(exact)


async def _relieve(turn: Turn, levels: list[int]) -> bool:
    """Make the context smaller by the next level that succeeds; False: none did."""
    while levels:
        entry = await summary_entry(turn, levels.pop(0))
        if entry:
            await _shrink(turn, entry)
            return True
    return False


async def _shrink(turn: Turn, entry: CompactionEntry) -> None:
    await turn.append(entry)
    turn.emit(Compacted(entry.old_count, entry.new_count))
    if entry.unsummarised:
        turn.notice("The earlier conversation was cut off: no summary of it could be made.", warning=True)
    await renew_prompt(turn)


async def _call(turn: Turn, request: ModelRequest, *, keep: bool = False) -> Outcome:
    """One call through fail-over; `keep` keeps the streamed text of a cancelled or interrupted call."""
    stream = ReplyStream(turn)
    with call_span(turn.agent.model.name) if turn.traced else UNTRACED as span:
        try:
            outcome = await turn.controls.run_until_stopped(_consume(turn, request, stream), interruptible=keep)
        except Interrupted:
            outcome = AssistantMessage([Text(stream.text)] if stream.text else [], stop_reason="aborted")
        except (asyncio.CancelledError, TurnOver):
            if keep and stream.text:
                await turn.append(AssistantEntry(message=AssistantMessage([Text(stream.text)], stop_reason="aborted")))
            raise
        if isinstance(outcome, ModelError):
            outcome.reword(turn.agent.redact(outcome.message))
        record_answer(span, outcome)
        record_content(span, request, outcome, turn.agent.environ)
    return outcome


async def _consume(turn: Turn, request: ModelRequest, stream: ReplyStream) -> Outcome:
    events = turn.agent.model.stream(request)
    try:
        async for event in events:
            if type(event) is TextDelta:  # nearly always
                stream.add_text(event)
            elif isinstance(event, Finished):
                message = turn.agent.redactor.message(event.message)
                stream.end(message)
                return message
            elif isinstance(event, Failed):
                stream.withdraw()
                return event.error
            elif isinstance(event, Retrying):
                stream.retry(event)
            else:
                stream.add(event)
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
    stream.withdraw()
    return ModelError(f"{turn.agent.model.name} ended its answer without saying how", kind="timeout")


def _with_own_ids(turn: Turn, message: AssistantMessage) -> AssistantMessage:
    """The message with an id if it asks for calls, and an id for each call that is unique in the session.

    The provider gets its own id back, unless it gave the same one to an earlier call. A message with an id was
    recorded, and stays as it is.
    """
    calls = message.tool_calls
    if message.id or not (calls or turn.agent.actions.read(message, turn.agent.tools).calls):
        return message
    head, sent, number = turn.state.head, turn.state.sent_ids.copy(), 0
    parts: list[AssistantPart] = []
    for part in message.content:
        if isinstance(part, ToolCall):
            number += 1
            while (own := f"call_{head}_{number}") in sent:  # a caller of /v1 brings calls of other sessions
                number += 1
            wire_id = "" if part.id in sent else part.id
            sent.add(part.id)
            part = msgspec.structs.replace(part, id=own, wire_id=wire_id)
        parts.append(part)
    return msgspec.structs.replace(message, content=parts, id=head)
