"""The loop: one message becomes one finished turn (decisions, "The loop")."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from denizen.engine.ask import ask_model
from denizen.engine.calls import run_calls
from denizen.engine.follow_driver import follow_driver
from denizen.engine.output import TRIES
from denizen.engine.prompting import inject_memories, renew_prompt
from denizen.engine.record import AgentRecord
from denizen.engine.resume import (
    answer_text,
    close_calls,
    is_cut,
    nothing_left,
    recorded_result,
    result_of,
    settle_calls,
    unfinished,
)
from denizen.engine.snapshots import snapshot_after
from denizen.engine.tracing import UNTRACED, record_totals, turn_span
from denizen.engine.turn import Cycle, Resume, Start, Turn, TurnOptions, TurnOver
from denizen.entries import CONTENT_REFUSED, AssistantEntry, EndEntry, StateEntry, SystemEntry
from denizen.errors import DenizenError, ModelError, OutputError, SessionError
from denizen.events import Done, LlmEnd, RunResult, TurnStop
from denizen.messages import AssistantMessage, Text, ToolResult, Usage, UserMessage
from denizen.ports import Intent, Session, TurnIO
from denizen.text.plural import counted

ANSWER_AGAIN = "Your answer was broken off. Give it again."
"""What the model reads when it goes on with a turn: it can't be asked to add to its own words."""
CONTINUE = (
    "Your answer was cut off by the length limit. Go on exactly where it stops, in the middle of the word if need be, "
    "and repeat nothing: the two are joined."
)
LEFT_OUT = "What the model hadn't answered yet is left out of the conversation from now on."
"""What the user hears of content that the provider refuses."""
EMPTY = "The model's answer is empty."
WORTH_A_NOTICE = {
    "length": "The answer was cut off by the length limit (agent.max_tokens).",
    "refusal": "The model refused to answer.",
}
"""What the user should know of how an answer ended."""


async def run_turn(
    agent: AgentRecord, session: Session, start: Start, io: TurnIO, options: TurnOptions | None = None
) -> RunResult:
    """Answer a message, go on with an unfinished turn (`Resume`), or run a turn that nobody asked for (`Cycle`).

    A message whose id was taken before is not appended again: its turn goes on, or its recorded result is returned;
    `Resume` returns the recorded result of the last turn where that is over, as its host may not have seen it.

    Raises ModelError when no model could answer, SessionError when the transcript can't be written; the transcript
    then says so, and the session goes on with the next message. Cancelling the task ends the turn as `cancelled`,
    unless the options say that it is to be gone on with (`resumes`) and nobody has stopped it.
    """
    turn = Turn(agent, session, io, options or TurnOptions(), run_turn)
    if isinstance(start, Resume) and not unfinished(session.entries):
        return _report_last(turn)
    _check_format(turn)
    with turn_span(agent.name, session.key) if turn.traced else UNTRACED:
        try:
            if isinstance(start, UserMessage) and start.id in turn.state.user_ids:
                if result := recorded_result(turn, start.id):
                    return _report_again(turn, result)
                start = Resume()
            return await _finish(turn, await _answer(turn, start))
        except TurnOver as over:
            return await _finish(turn, over.reason, over.note)
        except asyncio.CancelledError:
            if not turn.options.resumes or turn.listen():
                await _finish_anyhow(turn, "cancelled")
            raise
        except Exception as error:  # the turn's boundary: whatever broke, no call is left open, and it goes on upwards
            if isinstance(error, DenizenError):
                error.reword(agent.redact(str(error)))
            if isinstance(error, ModelError) and error.refuses_content:
                await _leave_out_refused(turn, error)
            await _finish_anyhow(turn, "error", agent.redact(str(error)))
            raise


async def _leave_out_refused(turn: Turn, error: ModelError) -> None:
    """Keep content that the provider refuses from ending every later turn, too."""
    with suppress(SessionError):  # it is raised with the first failure
        await turn.append(StateEntry(name=CONTENT_REFUSED, value=error.message))
        error.reword(f"{error.message.removesuffix('.')}. {LEFT_OUT}")


async def _answer(turn: Turn, start: Start) -> TurnStop:
    """Settle what an earlier run left open, take the message in, and iterate until there is an answer."""
    await turn.run_pending_checks()
    try:
        left = await settle_calls(turn)
    except TurnOver as over:
        if isinstance(start, UserMessage) and over.reason == "parked":
            turn.notice("The message was not taken in: the session waits for an answer first.", warning=True)
        raise
    if not isinstance(start, Resume) and unfinished(turn.session.entries):
        await turn.append(_end(turn, "error", "the process ended in the middle of the turn"))
    if not isinstance(start, Resume):
        await turn.begin()
        hooks, redact = turn.agent.hooks, turn.agent.redact
        if hooks and (words := await turn.hook("turn_start", message=redact(start.text))):
            turn.notice(refused := f"Your hook refuses the turn: {words}", warning=True)
            raise TurnOver("error", refused)
    await renew_prompt(turn, is_open=isinstance(start, Resume))
    match start:
        case UserMessage():
            output = turn.options.output
            parts = [*start.content, Text(output.request())] if output else start.content
            await turn.say(UserMessage(parts, start.id, start.at))
            await inject_memories(turn, start.text)
        case Cycle(text, cycle_id):
            if text:
                await turn.append(SystemEntry(text=turn.agent.redact(text), by_operator=True, message_id=cycle_id))
        case Resume() if left:
            reply, results = left
            if reply.stop_reason == "aborted":
                await turn.append(SystemEntry(text=ANSWER_AGAIN))
            elif _may_continue(turn, reply):
                await turn.append(SystemEntry(text=CONTINUE))
            elif await _is_answer(turn, turn.state.intent, results):
                return "answered"
    return await _iterate(turn)


async def _iterate(turn: Turn) -> TurnStop:
    limit = turn.agent.limits.iterations
    while turn.account.iterations < limit:
        # Controls that arrived, and what the driver wants
        if await turn.hear_messages():
            await turn.deliver(turn.interrupts)
            await turn.deliver(turn.steers)
        await follow_driver(turn)

        # context.assemble → actions.prepare → the model; durable before a tool runs
        reply = await ask_model(turn)
        await turn.append(AssistantEntry(message=reply))
        turn.emit(LlmEnd(reply))

        # actions.read: calls, final text, directives
        intent = turn.state.intent
        if (flaw := _flaw(turn, reply)) and not _may_continue(turn, reply):
            turn.notice(flaw, warning=True)
        for directive in intent.directives:
            await turn.apply(directive)

        # For each call: policy → checkpoint → `started` → run → result
        results = await run_calls(turn, reply, intent.calls)

        # Done, unless the user said more, the answer was cut, or a result needs the model
        if await turn.hear_messages():
            continue
        if _may_continue(turn, reply):
            await turn.append(SystemEntry(text=CONTINUE))
        elif await _is_answer(turn, intent, results):
            return "answered"
    raise TurnOver("iteration_limit", f"Stopped at the limit of {counted(limit, 'iteration')} without an answer.")


async def _is_answer(turn: Turn, intent: Intent, results: Sequence[ToolResult]) -> bool:
    """Whether the turn ends here: no result needs the model, the answer is accepted, and the user says no more."""
    if not intent.ends_turn and not all(result.ends_turn for result in results):
        return False
    text, output, accept = answer_text(turn, turn.account.messages), turn.options.output, turn.options.accept
    if output is not None:
        try:
            turn.value = output.read(text)
        except OutputError as wrong:
            turn.tries += 1
            if turn.tries == TRIES:
                raise
            await turn.say(UserMessage([Text(f"{wrong}. {output.request()}")]))
            return False
    if accept and (complaint := await accept(text)):
        await turn.say(UserMessage([Text(complaint)]))
        return False
    return not await turn.deliver(turn.follow_ups)


def _flaw(turn: Turn, reply: AssistantMessage) -> str:
    """What is wrong with a reply, for the user; empty: nothing is."""
    intent = turn.state.intent
    if reply.stop_reason == "end" and not (intent.calls or intent.directives or intent.reply.strip()):
        return EMPTY
    return WORTH_A_NOTICE.get(reply.stop_reason, "")


def _may_continue(turn: Turn, reply: AssistantMessage) -> bool:
    """Whether this is a text that the length limit cut, and its rest is to be asked for: once."""
    intent, before = turn.state.intent, turn.account.messages[-2:-1]
    if not is_cut(reply) or intent.calls or not intent.reply.strip() or any(map(is_cut, before)):
        return False
    return turn.account.iterations < turn.agent.limits.iterations


def _check_format(turn: Turn) -> None:
    """Open calls can only be read in the format they were written in: another one leaves the turn as it is."""
    begun, now = turn.state.acted_by, turn.agent.actions.name
    if begun and begun != now and unfinished(turn.session.entries):
        raise SessionError(
            f"Session {turn.session.key} is in the middle of a turn whose actions are {begun}, not {now}. "
            "Go on with it as it was begun (--actions, --profile), or fork it before that turn."
        )


def _report_last(turn: Turn) -> RunResult:
    """The recorded result of the last turn, which a crash may have kept from being shown."""
    result = recorded_result(turn)
    if result is None:
        raise nothing_left(turn.session)
    return _report_again(turn, result)


def _report_again(turn: Turn, result: RunResult) -> RunResult:
    if turn.options.output:
        with suppress(OutputError):
            result = msgspec.structs.replace(result, output=turn.options.output.read(result.reply))
    turn.finish(result)
    return result


async def _finish(turn: Turn, stop: TurnStop, note: str = "") -> RunResult:
    """Leave a transcript that continues, and say how the turn ended."""
    messages = turn.account.messages
    if stop == "parked":
        if unheard := [*turn.interrupts, *turn.steers, *turn.follow_ups]:
            turn.notice(
                f"Not taken in while the turn waits for an answer: {' | '.join(each.text for each in unheard)}",
                warning=True,
            )
    else:
        await snapshot_after(turn)
        await close_calls(turn)
        for waiting in (turn.interrupts, turn.steers, turn.follow_ups):
            await turn.deliver(waiting)
    if stop == "answered":
        note = _flaw(turn, next(each for each in reversed(messages) if isinstance(each, AssistantMessage)))
    end = _end(turn, stop, note)
    if stop != "parked":  # a parked turn has more to say
        await turn.append(end)
    result = result_of(turn, end, [*messages])
    record_totals(messages)
    if stop != "parked":
        await turn.hook("turn_end", stop_reason=stop, reply=result.reply, error=end.error)
    turn.finish(result)
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


async def _finish_anyhow(turn: Turn, stop: TurnStop, note: str = "") -> None:
    """Finish as well as can be: what ends the turn is raised, whatever else breaks now."""
    if turn.ended:  # and the host broke on it: the transcript is complete
        return
    messages = turn.account.messages
    try:
        await _finish(turn, stop, note)
    except Exception:  # noqa: BLE001 (the first failure is the one to know; this one may be the same full disk)
        with suppress(Exception):
            turn.emit(Done(result_of(turn, EndEntry(stop_reason=stop, error=note), messages)))
