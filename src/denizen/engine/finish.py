"""How a turn ends: a transcript that continues, and a result that says why."""

from contextlib import suppress

import msgspec

from denizen.engine.hooks import call_hooks
from denizen.engine.resume import close_calls, nothing_left, recorded_result, result_of
from denizen.engine.snapshots import snapshot_after
from denizen.engine.tracing import record_totals
from denizen.engine.turn import Turn
from denizen.entries import CONTENT_REFUSED, EndEntry, StateEntry
from denizen.errors import DenizenError, ModelError, OutputError, SessionError
from denizen.events import Done, RunResult, TurnStop
from denizen.messages import AssistantMessage, Usage
from denizen.ports import Intent

CONTENT_LEFT_OUT = "What the model hadn't answered yet is left out of the conversation from now on."
"""The notice about content that the provider refuses."""
EMPTY_ANSWER = "The model's answer is empty."
STOP_NOTICES = {
    "length": "The answer was cut off by the length limit (agent.max_tokens).",
    "refusal": "The model refused to answer.",
}
"""Notices for the user, by the stop reason of an answer."""


async def finish(turn: Turn, stop: TurnStop, note: str = "") -> RunResult:
    """Close what is open, write the end, and give the host the result."""
    messages = turn.account.messages
    if stop == "parked":
        if unheard := turn.controls.messages:
            said = " | ".join(each.text for each in unheard)
            turn.notice(f"Not taken in while the turn waits for an answer: {said}", warning=True)
    else:
        await snapshot_after(turn)
        await close_calls(turn)
        for waiting in (turn.controls.interrupts, turn.controls.steers, turn.controls.follow_ups):
            await turn.deliver(waiting)
    if stop == "answered":
        reply = next(each for each in reversed(messages) if isinstance(each, AssistantMessage))
        note = flaw_of(reply, turn.state.read_reply())
    end = end_entry(turn, stop, note)
    if stop != "parked":  # a parked turn has more to say
        await turn.append(end)
    result = result_of(turn, end, [*messages])
    record_totals(messages)
    if stop != "parked":
        await call_hooks(turn, "turn_end", stop_reason=stop, reply=result.reply, error=end.error)
    turn.finish(result)
    return result


async def finish_after(turn: Turn, error: Exception) -> None:
    """Finish a turn that failed, and redact the error, which the caller raises."""
    redact = turn.agent.redact
    if isinstance(error, DenizenError):
        error.reword(redact(str(error)))
    if isinstance(error, ModelError) and error.refuses_content:
        with suppress(SessionError):  # the first failure is the one to know
            await turn.append(StateEntry(name=CONTENT_REFUSED, value=error.message))  # else every later turn would fail
            error.reword(f"{error.message.removesuffix('.')}. {CONTENT_LEFT_OUT}")
    await finish_anyhow(turn, "error", redact(str(error)))


async def finish_anyhow(turn: Turn, stop: TurnStop, note: str = "") -> None:
    """Finish as far as possible: a further failure doesn't hide the first."""
    if turn.ended:  # and the host broke on it: the transcript is complete
        return
    messages = turn.account.messages
    try:
        await finish(turn, stop, note)
    except Exception:  # noqa: BLE001 (the first failure is the one to know; this one may be the same full disk)
        with suppress(Exception):
            turn.emit(Done(result_of(turn, EndEntry(stop_reason=stop, error=note), messages)))


def end_entry(turn: Turn, stop: TurnStop, note: str) -> EndEntry:
    return EndEntry(
        stop_reason=stop,
        usage=turn.account.usage,
        last_call_usage=turn.last_usage or Usage(),
        iterations=turn.account.iterations,
        retries=turn.retries,
        model=turn.agent.model.name,
        error=note,
    )


def flaw_of(reply: AssistantMessage, intent: Intent) -> str:
    """What is wrong with a reply, for the user; empty: nothing."""
    if reply.stop_reason == "end" and not (intent.calls or intent.directives or intent.reply.strip()):
        return EMPTY_ANSWER
    return STOP_NOTICES.get(reply.stop_reason, "")


def report_last(turn: Turn) -> RunResult:
    """The recorded result of the last turn, which a crash may have hidden."""
    result = recorded_result(turn)
    if result is None:
        raise nothing_left(turn.session)
    return report_again(turn, result)


def report_again(turn: Turn, result: RunResult) -> RunResult:
    """Give the host a recorded result."""
    if turn.options.output:
        with suppress(OutputError):
            result = msgspec.structs.replace(result, output=turn.options.output.read(result.reply))
    turn.finish(result)
    return result
