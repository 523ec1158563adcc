"""Routes for pairings: list, approve and revoke senders."""

from typing import Literal

import msgspec
from aiohttp import web

from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body
from denizen.worlds.chat.turns.sender_access import no_open_code_error, not_paired_error


class PairingRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: `approve` a `code`, or `revoke` a sender (`who`, as `channel:sender`)."""

    type: Literal["approve", "revoke"]
    code: str = ""
    who: str = ""

    def __post_init__(self) -> None:
        needed = "code" if self.type == "approve" else "who"
        if not getattr(self, needed).strip():
            raise ValueError(f"`{self.type}` needs a `{needed}`")


async def get_pairings(request: web.Request) -> web.Response:
    """List paired senders, and those with an open code (`approved_at` is 0)."""
    found = await request.app[GATEWAY].access.pairings()
    return web.json_response({"pairings": msgspec.to_builtins(found)})


async def post_pairing(request: web.Request) -> web.Response:
    """Approve a sender's code, which greets them, or revoke a pairing."""
    access, asked = request.app[GATEWAY].access, await read_body(request, PairingRequest)
    if asked.type == "revoke":
        if not await access.revoke(asked.who):
            raise Refused(404, not_paired_error(asked.who))
        request.app[GATEWAY].outbox.changed("")
        return web.json_response({"revoked": asked.who})
    if (paired := await access.approve(asked.code)) is None:
        raise Refused(404, no_open_code_error(asked.code))
    return web.json_response({"approved": msgspec.to_builtins(paired)})


ROUTES = [web.get("/api/pairings", get_pairings), web.post("/api/pairings", post_pairing)]
