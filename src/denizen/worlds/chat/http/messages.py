"""Messages in, replies out."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal
from uuid import uuid4

import msgspec
from aiohttp import web

from denizen.errors import ConfigError, SessionError, SessionUnavailable, SessionUnknown
from denizen.messages import Document, Image, from_outside
from denizen.ports import InboundMessage
from denizen.sessions import SessionKey, session_key
from denizen.text.documents import attached_document, attached_picture
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.completions import MAX_CONVERSATION_BYTES
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body, read_number, refusing
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.outbound import ALSO
from denizen.worlds.chat.ledger.questions import SEEN
from denizen.worlds.chat.ledger.reply_options import Attachment, with_attachments
from denizen.worlds.chat.turns.intake import MAX_KEY_CHARS
from denizen.worlds.world import check_host

MAX_WAIT_S = 60.0
"""Limit of a request's `wait` for replies."""
MAX_REPLIES = 200
"""Replies in one response."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Key = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_KEY_CHARS)]


class NewMessage(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. A client that posts a message again repeats its `id`.

    `seen` is the number of the last reply that the user was shown: a plain yes answers no later question. `media` are
    files in the workspace, which the message mentions, or pictures and documents, which go to the model. `session` is
    the key of an existing session, of whatever channel, which the message continues; its reply goes to `chat`.
    """

    chat: _Name
    sender: _Name
    content: str
    channel: Literal["http", "cli"] = "http"
    id: _Name | None = None
    media: tuple[_Name | Image | Document, ...] = ()
    seen: int | None = None
    session: _Key | None = None


async def post_message(request: web.Request) -> web.Response:
    """Accept a message: once this answers, it is in the inbox and synced."""
    new = await read_body(request, NewMessage, MAX_CONVERSATION_BYTES)
    if not new.content.strip() and not new.media:
        raise Refused(400, "The message is empty: it needs content or media.")
    gateway = request.app[GATEWAY]
    key = await _session_of(gateway, new)
    files = [each for each in new.media if isinstance(each, str)]
    seen = {} if new.seen is None else {SEEN: new.seen}
    message = InboundMessage(
        new.channel, new.chat, new.sender, new.content, key, (*files,), metadata=seen, id=new.id or uuid4().hex
    )
    message = with_attachments(message, await asyncio.to_thread(_attached, new.media))
    accepted = await gateway.accept(message)
    if not accepted:
        key = await gateway.database.read(partial(ledger.accepted_key, channel=new.channel, message_id=message.id))
    return web.json_response({"accepted": accepted, "id": message.id, "session_key": key}, status=202)


async def _session_of(gateway: Gateway, new: NewMessage) -> str:
    """The session that a message continues. Raises HTTPException."""
    try:
        if new.session is None:
            return str(SessionKey.of_chat(new.chat, new.channel))
        key = session_key(new.session)
        check_host(await gateway.agent.record.store.read(key))
    except SessionUnknown as error:
        raise Refused(404, str(error)) from error
    except SessionUnavailable:
        raise
    except SessionError as error:
        raise Refused(409 if new.session else 400, str(error)) from error
    return key


def _attached(media: Iterable[str | Image | Document]) -> list[Attachment]:
    """The pictures and documents for the model; PDF documents get their text. Raises HTTPException."""
    with refusing(400, ConfigError):
        return [
            from_outside(
                attached_document(each.media_type, each.data, each.name)
                if isinstance(each, Document)
                else attached_picture(each.data, "A file of media")
            )
            for each in media
            if not isinstance(each, str)
        ]


async def get_replies(request: web.Request) -> web.Response:
    """The replies to a chat after number `after`; `wait` waits that many seconds for one.

    `last` limits them to the last so many.
    """
    chat, channel = request.query.get("chat", ""), request.query.get("channel", "http")
    if not chat or channel not in outbound.POLLED:
        raise Refused(400, "Name the `chat`; `channel` must be http or cli.")
    last = int(read_number(request, "last", int, MAX_REPLIES))
    found = await request.app[GATEWAY].outbox.replies(
        channel,
        chat,
        after=int(read_number(request, "after", int, 2**53)),
        most=last or MAX_REPLIES,
        last=last > 0,
        wait=read_number(request, "wait", float, MAX_WAIT_S),
    )
    replies = [
        {
            "seq": each.seq,
            "in_reply_to": each.message.in_reply_to,
            "content": each.message.content,
            "session_key": each.message.session_key,
            "state": "pending" if each.state == "sending" else each.state,
            **{name: ids for name, ids in each.message.metadata.items() if name == ALSO},
        }
        for each in found
    ]
    return web.json_response({"replies": replies})


ROUTES = [web.post("/api/messages", post_message), web.get("/api/replies", get_replies)]
