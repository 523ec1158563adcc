"""`checkpoint` and `rollback`: the model keeps the files as they are, and returns to them."""

from collections.abc import Generator
from contextlib import contextmanager

from denizen.errors import DenizenError, ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Checkpoints, Tool, Traits
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
        with _told():
            kept = await checkpoints.snapshot(label)
        return result(f"Kept as {label!r}.", checkpoint=kept)

    @tool(traits=Traits.WRITES)
    async def rollback(label: str) -> ToolResult:
        """Make the files what they were at a checkpoint: what was made since goes, what was deleted comes back.

        Args:
            label: The checkpoint's; the newest one that has it is taken.
        """
        label = _checked(label)
        with _told():
            snapshot = await checkpoints.labelled(label)
            if not snapshot:
                raise ToolRefused(f"there is no checkpoint {label!r}: only what checkpoint kept can be returned to")
            before = await checkpoints.restore(snapshot)
        said = f"The files are as they were at {label!r}. What they were until now is kept as {before[:10]}."
        return result(said, rollback=snapshot)

    return [checkpoint, rollback]


def _checked(label: str) -> str:
    label = label.strip()
    if not label:
        raise ToolRefused("the label is empty; a few words name the checkpoint")
    return label


@contextmanager
def _told() -> Generator[None]:
    """Lets the model know of what can't be kept or restored."""
    try:
        yield
    except ToolRefused:
        raise
    except DenizenError as error:
        raise ToolRefused(str(error)) from error
