"""The loop: one message becomes one finished turn (design, "The loop"; seed 003, "The run loop")."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from denizen.engine.ask import WORTH_A_NOTICE, ask_model
from denizen.engine.calls import run_calls
from denizen.engine.guide import guide
from denizen.engine.output import TRIES, Output
from denizen.engine.prompting import prompt_for
from denizen.engine.recalled import remind
from denizen.engine.resume import answer_in, close_calls, is_cut, nothing_left, recorded, result_of, settle, unfinished
from denizen.engine.snapshots import keep_after
from denizen.engine.tracing import UNTRACED, traced, turn_span
from denizen.engine.turn import Accept, Turn, TurnOver
from denizen.entries import EndEntry, SystemEntry
from denizen.errors import DenizenError, OutputError, SessionError
from denizen.events import Done, RunResult, TurnStop
from denizen.messages import AssistantMessage, Text, ToolResult, Usage, UserMessage
from denizen.plural import counted
from denizen.ports import Intent, Session, TurnIO

if TYPE_CHECKING:
    from denizen.engine.agent import Agent

BROKEN_OFF = "Your answer was broken off. Give it anew."
"""What a model is told that goes on with a turn: it can't be asked to add to its own words."""
GO_ON = (
    "Your answer was cut off by the length limit. Go on exactly where it stops, in the middle of the word if need be, "
    "and repeat nothing: the two are joined."
)
EMPTY = "The model's answer is empty."


async def run_turn(
    agent: "Agent",
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    *,
    stream: bool = True,
    output: Output | None = None,
    accept: Accept | None = None,
) -> RunResult:
    """Answer `message`, or go on with the turn that stands unfinished where it is None.

    Where the last turn is over, its recorded result is returned: whoever asks for it may not have seen it.

    `accept` is asked of each reply that would end the turn, and what it finds wrong is told to the model.

    A message whose id was taken before is not said again: its turn goes on, or its recorded result is returned.
    Raises ModelError when no model could answer, SessionError when the transcript can't be written; the transcript
    then says so, and the session goes on with the next message. Cancelling the task ends the turn as `cancelled`.
    """
    turn = Turn(agent, session, io, stream, agent.feed(session), session.moved, traced(), output, accept=accept)
    if message is None and not unfinished(session.entries):
        return _answered_last(turn)
    _speak_as_begun(turn)
    with turn_span(agent.profile.name, session.key) if turn.traced else UNTRACED:
        try:
            return await _answered_before(turn, message) or await _finish(turn, await _answer(turn, message))
        except TurnOver as over:
            return await _finish(turn, over.reason, over.note)
        except asyncio.CancelledError:
            await _give_up(turn, "cancelled")
            raise
        except Exception as error:  # the turn's boundary: whatever broke, no call is left open, and it goes on upwards
            if isinstance(error, DenizenError):
                error.reword(agent.redact(str(error)))
            await _give_up(turn, "error", agent.redact(str(error)))
            raise


async def _answered_before(turn: Turn, message: UserMessage | None) -> RunResult | None:
    """The recorded result of a message that came once more."""
    if message is None or message.id not in turn.feed.user_ids:
        return None
    return _told_again(turn, recorded(turn, message.id))


def _answered_last(turn: Turn) -> RunResult:
    """The recorded result of the last turn, which a crash may have kept from being shown."""
    result = _told_again(turn, recorded(turn))
    if result is None:
        raise nothing_left(turn.session)
    return result


def _told_again(turn: Turn, result: RunResult | None) -> RunResult | None:
    if result and turn.output:
        with suppress(OutputError):
            result = msgspec.structs.replace(result, output=turn.output.read(result.reply))
    if result:
        turn.tell(result)
    return result


async def _answer(turn: Turn, message: UserMessage | None) -> TurnStop:
    """Settle what an earlier run left, take the message in, and iterate until there is an answer."""
    new = message if message and message.id not in turn.feed.user_ids else None
    try:
        left = await settle(turn)
    except TurnOver as over:
        if new and over.reason == "parked":
            turn.notice("The message was not taken in: the session waits for an answer first.", warning=True)
        raise
    if new and unfinished(turn.session.entries):
        await turn.append(_end(turn, "error", "the process ended in the middle of the turn"))
    await prompt_for(turn)
    if new:
        parts = [*new.content, Text(turn.output.request())] if turn.output else new.content
        await turn.say(UserMessage(parts, new.id, new.at))
        await remind(turn, new.text)
    elif left and left[0].stop_reason == "aborted":
        await turn.append(SystemEntry(text=BROKEN_OFF))
    elif left and await _continues(turn, left[0]):
        pass
    elif left and await _is_answer(turn, turn.feed.intent, left[1]):
        return "answered"
    return await _iterate(turn)


def _speak_as_begun(turn: Turn) -> None:
    """Open calls can only be read in the format they were written in: another one leaves the turn as it stands."""
    begun, now = turn.feed.acted_by, turn.agent.actions.name
    if begun and begun != now and unfinished(turn.session.entries):
        raise SessionError(
            f"Session {turn.session.key} stands in the middle of a turn whose actions are {begun}, not "
            f"{now}. Go on with it as it was begun (--actions, --profile), or fork it before that turn."
        )


async def _iterate(turn: Turn) -> TurnStop:
    limit = turn.agent.config.agent.max_iterations
    while turn.account.iterations < limit:
        await turn.hear()
        if turn.interrupts or turn.steers:
            await turn.pass_on(turn.interrupts)
            await turn.pass_on(turn.steers)
        await guide(turn)
        reply = await ask_model(turn)
        intent = turn.feed.intent
        if (lacks := _shortcoming(turn, reply)) and not _goes_on(turn, reply):
            turn.notice(lacks, warning=True)
        for directive in intent.directives:
            await turn.apply(directive)
        results = await run_calls(turn, reply, intent.calls)
        await turn.hear()
        if turn.interrupts or turn.steers:
            continue
        if await _continues(turn, reply):
            continue
        if await _is_answer(turn, intent, results):
            return "answered"
    raise TurnOver("iteration_limit", f"Stopped at the limit of {counted(limit, 'iteration')} without an answer.")


def _is_empty(reply: AssistantMessage, intent: Intent) -> bool:
    """Whether it neither says nor does anything, and why wasn't told yet."""
    return reply.stop_reason == "end" and not (intent.calls or intent.directives or intent.reply.strip())


def _goes_on(turn: Turn, reply: AssistantMessage) -> bool:
    """Whether this is a text that the length limit cut, and its rest is to be asked for: once."""
    intent, before = turn.feed.intent, turn.account.messages[-2:-1]
    if not is_cut(reply) or intent.calls or not intent.reply.strip() or any(map(is_cut, before)):
        return False
    return turn.account.iterations < turn.agent.config.agent.max_iterations


async def _continues(turn: Turn, reply: AssistantMessage) -> bool:
    """Ask for the rest of a text that was cut; whether that was done."""
    if goes_on := _goes_on(turn, reply):
        await turn.append(SystemEntry(text=GO_ON))
    return goes_on


def _shortcoming(turn: Turn, reply: AssistantMessage) -> str:
    """What is wrong with a reply; empty: nothing is."""
    return EMPTY if _is_empty(reply, turn.feed.intent) else WORTH_A_NOTICE.get(reply.stop_reason, "")


async def _is_answer(turn: Turn, intent: Intent, results: Sequence[ToolResult]) -> bool:
    """Whether the turn ends here: no result needs the model, the answer is of the asked type, nobody says more."""
    if not intent.ends_turn and not all(result.ends_turn for result in results):
        return False
    return await _accepted(turn, answer_in(turn, turn.account.messages)) and not await turn.pass_on(turn.follow_ups)


async def _accepted(turn: Turn, text: str) -> bool:
    """Whether the reply is the typed answer that was asked for, and the host's; the model is told what is wrong."""
    if turn.output is not None:
        try:
            turn.value = turn.output.read(text)
        except OutputError as wrong:
            turn.tries += 1
            if turn.tries == TRIES:
                raise
            await turn.say(UserMessage([Text(f"{wrong}. {turn.output.request()}")]))
            return False
    complaint = await turn.accept(text) if turn.accept else ""
    if complaint:
        await turn.say(UserMessage([Text(complaint)]))
    return not complaint


async def _finish(turn: Turn, stop: TurnStop, note: str = "") -> RunResult:
    """Leave a transcript that continues, and say how the turn ended."""
    account = turn.account
    if stop == "parked":
        if unheard := [*turn.interrupts, *turn.steers, *turn.follow_ups]:
            turn.notice(f"Not taken in, as the turn waits for an answer: {' | '.join(unheard)}", warning=True)
    else:
        await keep_after(turn)
        await close_calls(turn)
        for waiting in (turn.interrupts, turn.steers, turn.follow_ups):
            await turn.pass_on(waiting)
    if stop == "answered":
        last = next(message for message in reversed(account.messages) if isinstance(message, AssistantMessage))
        note = _shortcoming(turn, last)
    end = _end(turn, stop, note)
    if stop != "parked":
        await turn.append(end)
    result = result_of(turn, end, [*account.messages])  # a parked turn has more to say
    turn.tell(result)
    return result


def _end(turn: Turn, stop: TurnStop, note: str) -> EndEntry:
    return EndEntry(
        stop_reason=stop,
        usage=turn.account.usage,
        last_call_usage=turn.last_usage or Usage(),
        iterations=turn.account.iterations,
        retries=turn.retries,
        model=turn.agent.model.name,
        error=note,
    )


async def _give_up(turn: Turn, stop: TurnStop, note: str = "") -> None:
    """Finish as well as can be: what ends the turn is raised, whatever else breaks now."""
    if turn.told:  # and the host broke on it: the transcript is complete
        return
    account = turn.account
    try:
        await _finish(turn, stop, note)
    except Exception:  # noqa: BLE001 (the first failure is the one to know; this one may be the same full disk)
        with suppress(Exception):
            turn.emit(Done(result_of(turn, EndEntry(stop_reason=stop, error=note), account.messages)))
