"""What a person says to a turn that is open: it overtakes all messages."""

from functools import partial
from typing import Annotated
from uuid import uuid4

import msgspec
from aiohttp import web
from msgspec.structs import replace

from denizen.errors import SessionError
from denizen.ports import Answer, FollowUp, Interrupt, Steer, Stop
from denizen.sessions import SessionKey
from denizen.worlds.chat import ledger
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body

_Words = Annotated[str, msgspec.Meta(min_length=1)]


class StopRequest(msgspec.Struct, tag_field="type", tag="stop", forbid_unknown_fields=True):
    """End the turn."""


class SteerRequest(msgspec.Struct, tag_field="type", tag="steer", forbid_unknown_fields=True):
    """Say something to it while it works."""

    content: _Words


class FollowUpRequest(msgspec.Struct, tag_field="type", tag="follow_up", forbid_unknown_fields=True):
    """Say something when it is done."""

    content: _Words


class InterruptRequest(msgspec.Struct, tag_field="type", tag="interrupt", forbid_unknown_fields=True):
    """Say something in place of what it is doing."""

    content: _Words


class ApproveRequest(msgspec.Struct, tag_field="type", tag="approve", forbid_unknown_fields=True):
    """Let the call run that it waits with."""

    call_id: _Words
    text: str = ""


class DenyRequest(msgspec.Struct, tag_field="type", tag="deny", forbid_unknown_fields=True):
    """Don't let it run; `text` says why."""

    call_id: _Words
    text: str = ""


ControlRequest = StopRequest | SteerRequest | FollowUpRequest | InterruptRequest | ApproveRequest | DenyRequest


async def post_control(request: web.Request) -> web.Response:
    """Hand a control to the session's turn."""
    gateway = request.app[GATEWAY]
    try:
        key = str(SessionKey.parse(request.match_info["key"]))
    except SessionError as error:
        raise Refused(404, str(error)) from error
    asked = await read_body(request, ControlRequest)
    last = await gateway.database.run(partial(ledger.latest, session_key=key))
    if last is None:
        raise Refused(404, f"There is no session {key}.")
    match asked:
        case StopRequest():
            heard = await gateway.queue.control(key, Stop())
        case ApproveRequest(call_id, text):
            heard = await gateway.answer(key, Answer(call_id, allow=True, text=text))
        case DenyRequest(call_id, text):
            heard = await gateway.answer(key, Answer(call_id, allow=False, text=text))
        case SteerRequest(content) | FollowUpRequest(content) | InterruptRequest(content):
            kind = {SteerRequest: Steer, FollowUpRequest: FollowUp, InterruptRequest: Interrupt}[type(asked)]
            said = replace(last, content=content, media=(), metadata={}, id=uuid4().hex)
            heard = await gateway.queue.say(said, kind(content, said.id))
    if not heard:
        raise Refused(409, "No turn of this session waits for that.")
    return web.json_response({"accepted": True}, status=202)


ROUTES = [web.post("/api/sessions/{key}/controls", post_control)]
