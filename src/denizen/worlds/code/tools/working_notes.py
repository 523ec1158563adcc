"""`keep`, `note` and `notes`: what stays in a working memory (decisions, "Working memory")."""

from collections.abc import Sequence
from typing import Literal

from denizen.entries import AnyEntry, AssistantEntry, EndEntry, NoteEntry, ToolEntry
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.function import result, tool

COMMAND_CHARS = 60  # characters of a command that say which it was


@tool(traits=Traits.REPEATABLE)
async def keep(turn: ToolContext, outputs: list[int] | int | Literal["all"] = "all") -> ToolResult:
    """Keep outputs in your working memory. An output is shown to you once: it is gone after your next reply, unless
    that reply keeps it. Keep what you will need as it is, note what you learnt from the rest.

    Args:
        outputs: The numbers of outputs that were just shown, as 2 for [2]; or all.
    """
    replies, shown = _just_shown(turn.entries)
    if not shown:
        raise ToolRefused("no outputs were shown before this reply; those of this reply can be kept in your next one")
    if isinstance(outputs, int):
        outputs = [outputs]
    numbers = [*range(1, shown + 1)] if outputs == "all" or not outputs else [*dict.fromkeys(outputs)]
    if wrong := [number for number in numbers if not 1 <= number <= shown]:
        there_is = "only [1] was" if shown == 1 else f"[1] to [{shown}] were"
        missing = ", ".join(f"[{number}]" for number in wrong)
        raise ToolRefused(f"there is no output {missing}: {there_is} shown before this reply")
    commands = [*turn.commands(replies[-1]).values()] if replies else []
    named: list[str] = []
    for number in numbers:
        line = " ".join(commands[number - 1].split()) if number <= len(commands) else ""
        short = line if len(line) <= COMMAND_CHARS else f"{line[:COMMAND_CHARS]}…"
        named.append(f"[{number}] $ {short}" if line else f"[{number}]")
    return result(f"Kept {', '.join(named)}.", keep=numbers)


@tool(traits=Traits.REPEATABLE)
async def note(text: str) -> ToolResult:
    """Note in your working memory what you found out, so that you needn't keep the output that shows it.

    Args:
        text: One fact, with the exact names and numbers that matter.
    """
    if not text.strip():
        raise ToolRefused("the note is empty: say what is to be remembered")
    return result("Noted.", note=text.strip())


@tool(traits=Traits.REPEATABLE)
async def notes(turn: ToolContext) -> str:
    """List the notes of this session."""
    found: list[str] = []
    for entry in turn.entries:
        match entry:
            case NoteEntry(text=text) | ToolEntry(message=ToolResult(name="note", details={"note": str(text)})):
                found.append(text)
    return "\n".join(f"- {text}" for text in dict.fromkeys(found)) or "Nothing was noted yet."


def _just_shown(entries: Sequence[AnyEntry]) -> tuple[Sequence[AssistantMessage], int]:
    """The last two replies of this turn, and how many outputs the model saw between them."""
    replies, outputs = list[AssistantMessage](), set[str]()
    for entry in reversed(entries):
        match entry:
            case AssistantEntry(message=reply):
                replies.append(reply)
            case ToolEntry(message=shown) if len(replies) == 1:
                outputs.add(shown.call_id)
            case EndEntry():
                break
        if len(replies) == 2:
            return replies, len(outputs)
    return (), 0
