"""The loop: one message becomes one finished turn (decisions, "The loop")."""

import asyncio
from collections.abc import Sequence

from denizen.engine.ask import ask_model
from denizen.engine.calls import run_calls
from denizen.engine.finish import end_entry, finish, finish_after, finish_anyhow, flaw_of, report_again, report_last
from denizen.engine.follow_driver import follow_driver
from denizen.engine.hooks import call_hooks
from denizen.engine.output import MAX_TRIES
from denizen.engine.prompting import inject_memories, renew_prompt
from denizen.engine.record import AgentRecord
from denizen.engine.resume import answer_text, check_format, is_cut, recorded_result, settle_calls, unfinished
from denizen.engine.snapshots import check_workspace
from denizen.engine.spending import begin_spending
from denizen.engine.tracing import UNTRACED, turn_span
from denizen.engine.turn import Cycle, Resume, Start, Turn, TurnOptions
from denizen.engine.turn_over import TurnOver
from denizen.entries import AssistantEntry, SystemEntry
from denizen.errors import OutputError
from denizen.events import LlmEnd, RunResult, TurnStop
from denizen.messages import AssistantMessage, Text, ToolResult, UserMessage
from denizen.ports import Intent, Session, TurnIO
from denizen.text.plural import counted

ANSWER_AGAIN = "Your answer was broken off. Give it again."
"""The prompt after an aborted answer: a model can't add to its own words."""
CONTINUE = (
    "Your answer was cut off by the length limit. Go on exactly where it stops, in the middle of the word if need be, "
    "and repeat nothing: the two are joined."
)


async def run_turn(
    agent: AgentRecord, session: Session, start: Start, io: TurnIO, options: TurnOptions | None = None
) -> RunResult:
    """Answer a message, go on with an unfinished turn (`Resume`), or run a turn that nobody asked for (`Cycle`).

    A message whose id was taken before is not appended again: its turn goes on, or its recorded result is returned;
    `Resume` returns the recorded result of the last turn if that is over, because its host may not have seen it.

    Raises ModelError when no model could answer, SessionError when the transcript can't be written; the transcript
    then says so, and the session goes on with the next message. Cancelling the task ends the turn as `cancelled`,
    unless it `resumes` and nobody has stopped it.
    """
    turn = Turn(agent, session, io, options or TurnOptions(), run_turn)
    begin_spending(turn)
    if isinstance(start, Resume) and not unfinished(session.entries):
        return report_last(turn)
    check_format(turn)
    with turn_span(agent.name, session.key) if turn.traced else UNTRACED:
        try:
            if isinstance(start, UserMessage) and start.id in turn.state.user_ids:
                if result := recorded_result(turn, start.id):
                    return report_again(turn, result)
                start = Resume()
            return await finish(turn, await _answer(turn, start))
        except TurnOver as over:
            return await finish(turn, over.reason, over.note)
        except asyncio.CancelledError:
            if not turn.options.resumes or turn.controls.listen():
                await finish_anyhow(turn, "cancelled")
            raise
        except Exception as error:  # the turn's boundary: whatever broke, no call is left open, and it goes on upwards
            await finish_after(turn, error)
            raise
        finally:
            turn.controls.close()


async def _answer(turn: Turn, start: Start) -> TurnStop:
    """Settle what an earlier run left open, take the message in, and iterate until there is an answer."""
    await check_workspace(turn)
    try:
        left = await settle_calls(turn)
    except TurnOver as over:
        if isinstance(start, UserMessage) and over.reason == "parked":
            turn.notice("The message was not taken in: the session waits for an answer first.", warning=True)
        raise
    if not isinstance(start, Resume):
        if unfinished(turn.session.entries):
            await turn.append(end_entry(turn, "error", "the process ended in the middle of the turn"))
        await turn.begin()
        if why := await call_hooks(turn, "turn_start", message=turn.agent.redact(start.text)):
            turn.notice(refused := f"Your hook refuses the turn: {why}", warning=True)
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
            intent = turn.state.read_reply()
            if reply.stop_reason == "aborted":
                await turn.append(SystemEntry(text=ANSWER_AGAIN))
            elif _may_continue(turn, reply, intent):
                await turn.append(SystemEntry(text=CONTINUE))
            elif await _is_answer(turn, intent, results):
                return "answered"
    return await _iterate(turn)


async def _iterate(turn: Turn) -> TurnStop:
    limit = turn.agent.limits.iterations
    while turn.account.iterations < limit:
        # Controls that arrived, and what the driver wants
        if await turn.hear_messages():
            await turn.deliver(turn.controls.interrupts)
            await turn.deliver(turn.controls.steers)
        await follow_driver(turn)

        # context.assemble → actions.prepare → the model; durable before a tool runs
        reply = await ask_model(turn)
        await turn.append(AssistantEntry(message=reply))
        turn.emit(LlmEnd(reply))

        # actions.read: calls, final text, directives
        intent = turn.state.read_reply()
        may_continue = _may_continue(turn, reply, intent)
        if (flaw := flaw_of(reply, intent)) and not may_continue:
            turn.notice(flaw, warning=True)
        for directive in intent.directives:
            await turn.apply(directive)

        # For each call: policy → checkpoint → `started` → run → result
        results = await run_calls(turn, reply, intent.calls)

        # Done, unless the user said more, the answer was cut, or a result needs the model
        if await turn.hear_messages():
            continue
        if may_continue:
            await turn.append(SystemEntry(text=CONTINUE))
        elif await _is_answer(turn, intent, results):
            return "answered"
    raise TurnOver("iteration_limit", f"Stopped at the limit of {counted(limit, 'iteration')} without an answer.")


async def _is_answer(turn: Turn, intent: Intent, results: Sequence[ToolResult]) -> bool:
    """Whether the turn ends here: no result needs the model, the answer is accepted, no follow-up waits."""
    if not intent.ends_turn and not all(result.ends_turn for result in results):
        return False
    text, output, accept = answer_text(turn, turn.account.messages), turn.options.output, turn.options.accept
    if output is not None:
        try:
            turn.value = output.read(text)
        except OutputError as wrong:
            turn.tries += 1
            if turn.tries == MAX_TRIES:
                raise
            await turn.say(UserMessage([Text(f"{wrong}. {output.request()}")]))
            return False
    if accept and (complaint := await accept(text)):
        await turn.say(UserMessage([Text(complaint)]))
        return False
    return not await turn.deliver(turn.controls.follow_ups)


def _may_continue(turn: Turn, reply: AssistantMessage, intent: Intent) -> bool:
    """Whether to ask for the rest of a text that the length limit cut: once."""
    before = turn.account.messages[-2:-1]
    if not is_cut(reply) or intent.calls or not intent.reply.strip() or any(map(is_cut, before)):
        return False
    return turn.account.iterations < turn.agent.limits.iterations
