"""`checkpoint` and `rollback`: the model keeps the state of the files, and returns to it."""

from denizen.entries import ToolEntry
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Checkpoints, Tool, ToolContext, Traits
from denizen.ports.checkpoints import span_of
from denizen.tools.function import result, tool


def checkpoint_tools(checkpoints: Checkpoints) -> list[Tool]:
    """The two tools over the checkpoints of a workspace."""

    @tool(traits=Traits.WRITES)
    async def checkpoint(label: str) -> ToolResult:
        """Keep the files as they are, before a change that may go wrong; rollback returns to it.

        Args:
            label: A few words that name the state, such as "tests green".
        """
        label = _checked(label)
        kept = await checkpoints.snapshot(label)
        return result(f"Kept as {label!r}.", checkpoint=kept, label=label)

    @tool(traits=Traits.WRITES)
    async def rollback(label: str, turn: ToolContext) -> ToolResult:
        """Take back what you did to the files since a checkpoint: what you made goes, what you deleted comes back.
        What the user changed meanwhile stays.

        Args:
            label: The checkpoint's, kept in this session; the newest one that has it is taken.
        """
        label = _checked(label)
        for at in range(len(turn.entries) - 1, -1, -1):
            match turn.entries[at]:
                case ToolEntry(message=ToolResult(details={"checkpoint": str(kept), "label": given})) if given == label:
                    snapshot, since = kept, turn.entries[at + 1 :]
                    break
        else:
            raise ToolRefused(
                f"this session has no checkpoint {label!r}: rollback returns only to those that `checkpoint` made in it"
            )
        done, now = span_of(since, snapshot), await checkpoints.snapshot()
        done.ours.append((done.last, now))  # what earlier calls of this reply did
        if not (ours := await checkpoints.ours_alone(done)):
            return result(f"You have changed no file since {label!r}.")
        before = await checkpoints.restore(snapshot, expect=now, only=ours)
        text = f"Your changes since {label!r} are undone. What the files were until now is kept as {before[:10]}."
        return result(text, rollback=snapshot)

    return [checkpoint, rollback]


def _checked(label: str) -> str:
    label = label.strip()
    if not label:
        raise ToolRefused("the label is empty; name the checkpoint in a few words")
    return label
