"""What the turn's driver wants before the next model call."""

from denizen.engine.turn import Turn, TurnOver
from denizen.entries import SystemEntry
from denizen.ports import Answer, Ask, Backtrack, Escalate, GiveUp, Proceed


async def guide(turn: Turn) -> None:
    """Do what the driver says: tell the model something, return to a checkpoint, ask the person, or end the turn."""
    match turn.feed.driver.decide(turn.view()):
        case Proceed(text):
            await _tell(turn, text)
        case Backtrack(text):
            await _backtrack(turn, text)
        case Escalate(question, otherwise):
            answer = await turn.io.ask(Ask("", question))
            await _tell(
                turn, f"The user says: {answer.text}" if isinstance(answer, Answer) and answer.text else otherwise
            )
        case GiveUp(reason):
            raise TurnOver("loop", reason)


async def _tell(turn: Turn, text: str) -> None:
    last = turn.session.entries[-1] if turn.session.entries else None
    if text and not (isinstance(last, SystemEntry) and last.text == text):  # a crash came between this and the call
        await turn.append(SystemEntry(text=turn.agent.redact(text)))


async def _backtrack(turn: Turn, text: str) -> None:
    await _tell(turn, text)
