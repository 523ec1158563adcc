"""A session's unfinished messages. Waiting ones can be edited or withdrawn."""

from functools import partial
from typing import Literal

import msgspec
from aiohttp import web

from denizen.worlds.chat.http.requests import GATEWAY, Refused, json_handler, read_body, read_key
from denizen.worlds.chat.ledger import edits
from denizen.worlds.chat.ledger.edits import QueuedMessage


class QueuedMessages(msgspec.Struct, frozen=True):
    """The messages of a session that aren't over, in order."""

    messages: list[QueuedMessage]


class QueueChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: `edit` a waiting message, with `content`, or `withdraw` it."""

    type: Literal["edit", "withdraw"]
    id: str
    content: str = ""

    def __post_init__(self) -> None:
        if (self.type == "edit") != bool(self.content.strip()):
            raise ValueError("`edit` needs a `content`, and `withdraw` has none")


class QueueChanged(msgspec.Struct, frozen=True):
    """The message was changed."""

    changed: bool = True


async def get_queue(request: web.Request) -> QueuedMessages:
    """The messages of a session that aren't over."""
    found = await request.app[GATEWAY].database.read(partial(edits.queued, session_key=read_key(request)))
    return QueuedMessages(found)


async def post_queue(request: web.Request) -> QueueChanged:
    """Change a message whose turn hasn't begun, or take it back. A command can only be taken back."""
    gateway, key, asked = request.app[GATEWAY], read_key(request), await read_body(request, QueueChange)
    change = partial(edits.change_waiting, session_key=key, message_id=asked.id, content=asked.content)
    if not await gateway.database.run(change, key):
        why = "its turn has begun, is over, or it is a command, which can only be taken back"
        raise Refused(409, f"No message of this session with that id can be changed: {why}.")
    gateway.outbox.changed(key)
    return QueueChanged()


ROUTES = [
    web.get("/api/sessions/{key}/queue", json_handler(get_queue)),
    web.post("/api/sessions/{key}/queue", json_handler(post_queue)),
]
