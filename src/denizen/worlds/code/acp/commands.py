"""The slash commands that an editor offers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from acp.schema import AvailableCommand

from denizen.engine import Resume, run_turn
from denizen.engine.compact import compact
from denizen.engine.resume import nothing_left, unfinished
from denizen.engine.undo import redo, undo
from denizen.events import LlmStream, RunResult, TextDelta
from denizen.messages import Text, UserPart
from denizen.ports import TurnIO
from denizen.worlds.code.acp.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Command:
    """What it does, in words, and the function that does it, given what follows its name."""

    does: str
    run: Callable[[Conversation, TurnIO, str], Awaitable[RunResult]]


def command_in(parts: Sequence[UserPart]) -> tuple[Command, str] | None:
    """The command that a prompt is, with what follows its name."""
    match parts:
        case [Text(text)] if text.startswith("/"):
            name, _, argument = text[1:].strip().partition(" ")
            return (COMMANDS[name], argument.strip()) if name in COMMANDS else None
    return None


def available() -> list[AvailableCommand]:
    """The commands, for the editor."""
    return [AvailableCommand(name=name, description=command.does) for name, command in COMMANDS.items()]


async def _continue(here: Conversation, io: TurnIO, _: str) -> RunResult:
    if not unfinished(here.session.entries):
        raise nothing_left(here.session)
    return await run_turn(here.record, here.session, Resume(), io)


async def _compact(here: Conversation, io: TurnIO, _: str) -> RunResult:
    done = await compact(here.record, here.session, io)
    return _say(io, "A summary replaces the older messages." if done else "There is nothing to compact.")


async def _undo(here: Conversation, io: TurnIO, how: str) -> RunResult:
    said = await undo(here.record, here.session, force=how == "force")
    return _say(io, f"Undone, with its changes to files: {said}\n\n/redo takes that back.")


async def _redo(here: Conversation, io: TurnIO, how: str) -> RunResult:
    return _say(io, f"Done again: {await redo(here.record, here.session, force=how == 'force')}")


def _say(io: TurnIO, text: str) -> RunResult:
    io.emit(LlmStream(TextDelta(text)))
    return RunResult(reply=text)


COMMANDS = {
    "continue": Command("Go on with a turn that was left unfinished", _continue),
    "compact": Command("Replace older messages by a summary of them", _compact),
    "undo": Command("Take the last turn back, with what it did to files (/undo force: also what changed since)", _undo),
    "redo": Command("Take the last /undo back", _redo),
}
