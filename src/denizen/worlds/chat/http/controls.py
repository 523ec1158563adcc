"""Controls of a running or parked turn: they overtake all messages."""

from functools import partial
from typing import Literal
from uuid import uuid4

import msgspec
from aiohttp import web
from msgspec.structs import replace

from denizen.ports import Answer, FollowUp, Interrupt, Steer, Stop
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body, read_key
from denizen.worlds.chat.ledger import ledger

_SAID = {"steer": Steer, "follow_up": FollowUp, "interrupt": Interrupt}
_ANSWERS = {"approve", "deny"}


class ControlRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: a steer, a follow-up or an interrupt has `content`, an answer `call_id` and `text`.

    An approval with the `scope` session, or always, also answers later questions about the same call.
    """

    type: Literal["stop", "steer", "follow_up", "interrupt", "approve", "deny"]
    content: str = ""
    call_id: str = ""
    text: str = ""
    scope: Literal["once", "session", "always"] = "once"

    def __post_init__(self) -> None:
        needed = "content" if self.type in _SAID else "call_id" if self.type in _ANSWERS else ""
        if needed and not getattr(self, needed).strip():
            raise ValueError(f"`{self.type}` needs a `{needed}`")
        if self.scope != "once" and self.type != "approve":
            raise ValueError("a `scope` goes with `approve`")


async def post_control(request: web.Request) -> web.Response:
    """Hand a control to the session's turn."""
    gateway, key = request.app[GATEWAY], read_key(request)
    asked = await read_body(request, ControlRequest)
    last = await gateway.database.read(partial(ledger.latest, session_key=key))
    if last is None:
        raise Refused(404, f"There is no session {key}.")
    if said := _SAID.get(asked.type):
        message = replace(last, content=asked.content, media=(), metadata={}, id=uuid4().hex)
        heard = await gateway.queue.say(message, said(asked.content, message.id))
    elif asked.type in _ANSWERS:
        heard = await gateway.answer(key, Answer(asked.call_id, asked.type == "approve", asked.text, asked.scope))
    else:
        heard = await gateway.queue.control(key, Stop())
    if not heard:
        raise Refused(409, "No turn of this session waits for that.")
    gateway.outbox.changed(key)
    return web.json_response({"accepted": True}, status=202)


ROUTES = [web.post("/api/sessions/{key}/controls", post_control)]
