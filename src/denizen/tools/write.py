"""`write`: a whole file."""

from contextlib import suppress

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.text.plural import counted
from denizen.tools.editing.texts import difference
from denizen.tools.files.changes import NewContent, change
from denizen.tools.files.text import Encoding, decode, size
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MAX_COMPARED_BYTES = 1_000_000  # bytes of an old content up to which the screen is shown what changed


@tool(traits=Traits.WRITES, plans=True)
def write(turn: ToolContext, path: str, content: str) -> ToolResult:
    """Create a file or replace all of it; missing folders are made. To change a part use edit."""
    workspace = Workspace.of(turn)
    data = Encoding("utf-8").encode(content, path)
    old = ""  # for the screen; if the file can't be shown, `change` says why
    with suppress(ToolRefused), workspace.at(path) as place, place.open() as file:
        before = file.read(MAX_COMPARED_BYTES + 1)
        decoded = decode(before) if len(before) <= MAX_COMPARED_BYTES else None
        old = decoded[0] if decoded else ""
    was = difference(old, content)
    [(shown, created)] = change(workspace, {path: NewContent(data)})
    lines = counted(len(content.splitlines()), "line")
    text = f"{'Created' if created else 'Replaced'} {shown}: {lines}, {size(len(data))}."
    return result(text, path=shown, created=created, bytes=len(data), **was.details())
