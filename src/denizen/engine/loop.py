"""The loop: one message becomes one finished turn (design, "The loop"; seed 003, "The run loop")."""

import asyncio
from typing import TYPE_CHECKING

from denizen.engine.ask import ask_model
from denizen.engine.calls import run_calls
from denizen.engine.output import Output
from denizen.engine.prompting import prompt_for
from denizen.engine.resume import close_calls, recorded, result_of, settle, unfinished
from denizen.engine.tracing import turn_span
from denizen.engine.turn import Turn, TurnOver
from denizen.entries import EndEntry
from denizen.errors import DenizenError, OutputError, SessionError
from denizen.events import Done, RunResult, TurnStop
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.ports import Session, TurnIO

if TYPE_CHECKING:
    from denizen.engine.agent import Agent


async def run_turn(
    agent: "Agent",
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    *,
    stream: bool = True,
    output: Output | None = None,
) -> RunResult:
    """Answer `message`, or go on with the turn that stands unfinished where it is None.

    A message whose id was taken before is not said again: its turn goes on, or its recorded result is returned.
    Raises ModelError when no model could answer, SessionError when the transcript can't be written; the transcript
    then says so, and the session goes on with the next message. Cancelling the task ends the turn as `cancelled`.
    """
    turn = Turn(agent, session, io, stream, agent.feed(session), output)
    turn.last_usage = turn.feed.last_usage
    with turn_span(agent.profile.name, session.key):
        try:
            result = await _begin(turn, message) or await _finish(turn, await _iterate(turn))
        except TurnOver as over:
            result = await _finish(turn, over.reason, over.note)
        except asyncio.CancelledError:
            await _finish(turn, "cancelled")
            raise
        except DenizenError as error:
            await _finish(turn, "error", agent.redact(str(error)))
            raise
    return result


async def _begin(turn: Turn, message: UserMessage | None) -> RunResult | None:
    """Settle what an earlier turn left, and take the message in; a result where it had been answered before."""
    if message is None and not unfinished(turn.session.entries):
        raise SessionError(f"session {turn.session.key} has nothing left to do; give it a message")
    known = message is not None and message.id in turn.feed.user_ids
    if message and known and (result := recorded(turn.session.entries, message.id, turn.session.key)):
        turn.emit(Done(result))
        return result
    await prompt_for(turn)
    try:
        await settle(turn)
    except TurnOver:
        if message:
            turn.notice("The message was not taken in: the session waits for an answer first.", warning=True)
        raise
    if message and not known:
        parts = [*message.content, Text(turn.output.request())] if turn.output else message.content
        await turn.say(UserMessage(parts, message.id, message.at))
    return None


async def _iterate(turn: Turn) -> TurnStop:
    agent = turn.agent
    for turn.iteration in range(1, agent.config.agent.max_iterations + 1):
        await turn.hear()
        reply = await ask_model(turn)
        intent = agent.actions.read(reply, agent.tools)
        for directive in intent.directives:
            await turn.apply(directive)
        results = await run_calls(turn, reply, intent.calls)
        await turn.hear()
        if await turn.pass_on(turn.interrupts) or await turn.pass_on(turn.steers):
            continue
        done = all(result.ends_turn for result in results)  # also where there were no calls
        if done and await _accepted(turn, reply) and not await turn.pass_on(turn.follow_ups):
            return "answered"
    raise TurnOver("iteration_limit", f"Stopped after {turn.iteration} iterations without an answer.")


async def _accepted(turn: Turn, reply: AssistantMessage) -> bool:
    """Whether the reply is the typed answer that was asked for; the model is told what is wrong with it."""
    if turn.output is None:
        return True
    try:
        turn.value = turn.output.read(reply.text)
    except OutputError as wrong:
        turn.output.tries -= 1
        if not turn.output.tries:
            raise
        await turn.say(UserMessage([Text(f"{wrong}. {turn.output.request()}")]))
        return False
    return True


async def _finish(turn: Turn, stop: TurnStop, note: str = "") -> RunResult:
    """Leave a transcript that continues, and say how the turn ended."""
    end = EndEntry(
        stop_reason=stop,
        usage=turn.usage,
        last_call_usage=turn.last_usage or Usage(),
        iterations=turn.iteration,
        retries=turn.retries,
        model=turn.agent.model.name,
        error=note,
    )
    if stop != "parked":
        await close_calls(turn)
        await turn.append(end)
    result = result_of(end, turn.messages, turn.value, turn.session.key)
    turn.emit(Done(result))
    return result
