"""Carrying out the driver's decision before the next model call (decisions, "Loop detection")."""

from collections.abc import Sequence

from denizen.engine.turn import Turn
from denizen.engine.turn_over import TurnOver
from denizen.entries import AnyEntry, AssistantEntry, CheckpointEntry, EndEntry, NoteEntry, SystemEntry, UserEntry
from denizen.errors import DenizenError
from denizen.messages import Text, UserMessage
from denizen.ports import Answer, Ask, Backtrack, Escalate, GiveUp, Proceed
from denizen.ports.checkpoints import CheckpointSpan, span_of

RETURNED = "returned"
"""The label of the checkpoint after a return."""
NO_ADVICE = frozenset({"", "y", "yes"})
"""Answers that don't say what to do; `--yes` gives them."""


async def follow_driver(turn: Turn) -> None:
    """Carry out the driver's action: prompt the model, return to a checkpoint, ask the person, or end the turn.

    A crash in the middle does no harm: steps since the model's last reply are in the transcript, and aren't repeated.
    """
    match turn.state.driver.decide(turn.view()):
        case Proceed(""):
            pass
        case Proceed(text):
            if await _append_system(turn, text) and turn.state.driver.stuck:
                turn.notice("The agent seems to be stuck; it is asked to reflect.")
        case Backtrack() as action:
            await _backtrack(turn, action)
        case Escalate() as action:
            await _escalate(turn, action)
        case GiveUp(reason):
            raise TurnOver("loop", turn.agent.redact(reason))


async def _append_system(turn: Turn, text: str) -> bool:
    return await _append_once(turn, SystemEntry(text=turn.agent.redact(text)))


async def _append_once(turn: Turn, entry: SystemEntry | NoteEntry) -> bool:
    """Append the entry unless a crash came after it was appended; True if it is new."""
    if any(isinstance(other, type(entry)) and other.text == entry.text for other in _since_reply(turn)):
        return False
    await turn.append(entry)
    return True


def _since_reply(turn: Turn) -> Sequence[AnyEntry]:
    """The entries since the model's last reply in this turn, latest first."""
    found: list[AnyEntry] = []
    for entry in reversed(turn.session.entries):
        if isinstance(entry, AssistantEntry | EndEntry):
            break
        found.append(entry)
    return found


async def _backtrack(turn: Turn, action: Backtrack) -> None:
    """Restore the files, and note why: a note stays in every context, a system message may not."""
    done = [entry for entry in _last_iterations(turn.session.entries, action.iterations) if not _is_return(entry)]
    outcome = await _restore_files(turn, span_of(done))
    await _append_once(turn, NoteEntry(text=turn.agent.redact(action.text)))
    await _append_system(turn, f"{action.text}\n{outcome}")


def _last_iterations(entries: Sequence[AnyEntry], iterations: int) -> Sequence[AnyEntry]:
    """The entries of the turn's last iterations."""
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        iterations -= isinstance(entry, AssistantEntry)
        if iterations == 0 or isinstance(entry, EndEntry):
            return entries[at:]
    return entries


async def _restore_files(turn: Turn, done: CheckpointSpan) -> str:
    """Restore the files that the agent changed; the outcome, for the model."""
    checkpoints = turn.agent.checkpoints
    if checkpoints is None or not done.ours or done.first == done.last:
        return "No file needed to be taken back."
    if not any(map(_is_return, _since_reply(turn))):
        try:
            if ours := await checkpoints.ours_alone(done):
                await checkpoints.restore(done.first, expect=done.last, only=ours)
            now = await checkpoints.snapshot()
        except DenizenError as why:
            return f"The files stay as they are. {why}"
        await turn.append(CheckpointEntry(snapshot=now, label=RETURNED))
        turn.notice("The agent was stuck; the files are again as they were before that.")
    return "The files are again as they were before that."


def _is_return(entry: AnyEntry) -> bool:
    return isinstance(entry, CheckpointEntry) and entry.label == RETURNED


async def _escalate(turn: Turn, action: Escalate) -> None:
    asked = turn.agent.redact(f"(asked: {action.question})")
    if any(isinstance(entry, UserEntry) and entry.message.text.startswith(asked) for entry in _since_reply(turn)):
        return
    answer = await turn.io.ask(Ask("", action.question))
    if isinstance(answer, Answer) and answer.allow and answer.text.lower() not in NO_ADVICE:
        await turn.say(UserMessage([Text(f"{asked}\n{answer.text}")]))
    elif action.otherwise:
        await _append_system(turn, action.otherwise)
