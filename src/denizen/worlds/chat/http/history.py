"""Undo, redo, forks, changes between checkpoints, and the model's context of a session."""

import asyncio
import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import msgspec
from aiohttp import web

from denizen.checkpoints.shadow import Shadow, shadow_of
from denizen.engine.next_request import ReadSession, RequestPart, last_prompt, next_request, parts_of
from denizen.engine.undo import Reversal, finish_undo, next_redo, next_undo, redo, undo, undo_unchanged
from denizen.entries import AnyEntry, header_of
from denizen.errors import ConfigError, DenizenError, SessionError, SessionUnavailable, SessionUnknown
from denizen.runtime.cache import SharedCache
from denizen.sessions import SessionKey, new_name, short_name
from denizen.trusted.pending_checks import run_pending_checks
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.requests import GATEWAY, Refused, entries_of, json_handler, read_body, read_key, refusing
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.turns.commands import record_for

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ForkRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: fork at entry `at` (default: the last one), into a new chat (default: a new name)."""

    at: str = ""
    chat: _Name | None = None


class Forked(msgspec.Struct, frozen=True):
    """The new session, and the chat whose messages continue it."""

    session_key: str
    chat: str


class UndoRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request; with `force`, files that somebody changed since are overwritten, too."""

    force: bool = False


class UndoPreview(msgspec.Struct, frozen=True):
    """What an undo would take back (`said`: the user's message; unknown for a redo), and the `diff` of the files.

    Files in `conflicts` were changed by others since.
    """

    said: str
    paths: list[str]
    diff: str
    conflicts: list[str]


class Undone(msgspec.Struct, frozen=True):
    """The user's message of the turn, and files that weren't restored because others changed them since."""

    said: str
    left: list[str]


class FileChanges(msgspec.Struct, frozen=True):
    """The files that differ between two checkpoints, and their diff."""

    paths: list[str]
    diff: str


class ModelView(msgspec.Struct, frozen=True):
    """A request to the model, part by part, and its estimated tokens."""

    parts: list[RequestPart]
    tokens: int


async def post_fork(request: web.Request) -> Forked:
    """Copy a session, up to one of its entries, into that of a new chat."""
    gateway, key, asked = request.app[GATEWAY], read_key(request), await read_body(request, ForkRequest)
    chat = asked.chat or new_name(gateway.agent.record.clock)
    try:
        to = str(SessionKey.of_chat(chat, "http"))
        await gateway.agent.record.store.fork(key, to, at=asked.at)
    except SessionError as error:
        raise _refused(error) from error
    gateway.outbox.changed(to)
    return Forked(to, chat)


async def get_undo(request: web.Request) -> UndoPreview:
    """Preview an undo of the last turn: its messages and its changes to files."""
    entries = await entries_of(request)
    return await _preview(request, entries, next_undo(entries))


async def get_redo(request: web.Request) -> UndoPreview:
    """Preview a redo of the turn that was undone last."""
    entries = await entries_of(request)
    return await _preview(request, entries, next_redo(entries))


async def post_undo(request: web.Request) -> Undone:
    """Undo the last turn: its messages, and its changes to files that nobody changed since."""
    return await _reverse(request, redoes=False)


async def post_redo(request: web.Request) -> Undone:
    """Redo the turn that was undone last."""
    return await _reverse(request, redoes=True)


async def get_diff(request: web.Request) -> FileChanges:
    """The changes to files from one checkpoint of the session to another, or to the files as they are."""
    gateway, entries = request.app[GATEWAY], await entries_of(request)
    with refusing(404, DenizenError, gateway.agent.record.redact):
        found = await _shadow(gateway, entries).diff(request.query.get("from", ""), request.query.get("to", ""))
    return FileChanges([*found.paths], gateway.agent.record.redact(found.text))


async def get_context(request: web.Request) -> ModelView:
    """What the model sees after an entry, `at` (default: the last one): the next request, with estimated tokens."""
    gateway, entries = request.app[GATEWAY], await entries_of(request)
    header = header_of(entries)
    if header.profile not in {"", gateway.agent.record.name}:
        how = f"denizen context {short_name(header.key)}"
        raise Refused(
            409, f"This gateway has another profile than the session's, {header.profile}. In a terminal: {how}"
        )
    if at := request.query.get("at", ""):
        count = next((number for number, entry in enumerate(entries, 1) if entry.id == at), 0)
        if not count:
            raise Refused(404, f"The session has no entry {at!r} on the way to its head.")
        entries = entries[:count]
    with refusing(409, ConfigError):
        record = record_for(gateway.agent, ReadSession(entries), SharedCache(1, 1))
    model_request = await asyncio.to_thread(next_request, record, entries)
    prompt = last_prompt(entries)
    parts = [*parts_of(model_request, prompt.text if prompt else "")]
    return ModelView(parts, sum(part.tokens for part in parts))


def _shadow(gateway: Gateway, entries: Sequence[AnyEntry]) -> Shadow:
    """The checkpoints of the folder in which a session works."""
    record = gateway.agent.record
    workspace = Path(header_of(entries).workspace or record.workspace)
    if not workspace.is_dir():
        raise Refused(409, f"The session's folder {workspace} is gone.")
    return shadow_of(workspace, record.home, clock=record.clock, environ=record.environ)


async def _preview(request: web.Request, entries: Sequence[AnyEntry], reversal: Reversal | None) -> UndoPreview:
    gateway = request.app[GATEWAY]
    if reversal is None:
        raise Refused(409, "There is nothing to undo or redo.")
    if not reversal.ours:
        return UndoPreview(reversal.said, [], "", [])
    shadow = _shadow(gateway, entries)
    with refusing(409, DenizenError, gateway.agent.record.redact):
        ours = await shadow.touched(reversal.ours)
        back, since = await shadow.diff(reversal.now, reversal.then), await shadow.diff(reversal.now)
    conflicts = [path for path in since.paths if path in ours]
    paths = [path for path in back.paths if path in ours]
    return UndoPreview(reversal.said, paths, gateway.agent.record.redact(back.text), conflicts)


async def _reverse(request: web.Request, *, redoes: bool) -> Undone:
    gateway, key, asked = request.app[GATEWAY], read_key(request), await read_body(request, UndoRequest)
    if await gateway.database.read(partial(ledger.is_busy, session_key=key)):
        raise Refused(409, "A turn of this session is open. Stop it, or answer its question, first.")
    shadow = _shadow(gateway, await entries_of(request))
    record = dataclasses.replace(gateway.agent.record, checkpoints=shadow)
    await asyncio.to_thread(run_pending_checks, record.home, record.environ)
    try:
        session = await record.store.open(key)
        try:
            await finish_undo(shadow, session)
            left: Sequence[str] = ()
            if redoes:
                said = await redo(record, session, force=asked.force)
            elif asked.force:
                said = await undo(record, session, force=True)
            else:
                said, left = await undo_unchanged(record, session, by=uuid4().hex)
        finally:
            await session.close()
    except DenizenError as error:
        raise _refused(error) from error
    gateway.outbox.changed(key)
    return Undone(said, [*left])


def _refused(error: DenizenError) -> Exception:
    """The response to a session's error: 404 if there is no session, 409 if its state doesn't allow it."""
    if type(error) is SessionUnavailable:
        return error
    return Refused(404 if isinstance(error, SessionUnknown) else 409, str(error))


ROUTES = [
    web.post("/api/sessions/{key}/fork", json_handler(post_fork)),
    web.get("/api/sessions/{key}/undo", json_handler(get_undo)),
    web.post("/api/sessions/{key}/undo", json_handler(post_undo)),
    web.get("/api/sessions/{key}/redo", json_handler(get_redo)),
    web.post("/api/sessions/{key}/redo", json_handler(post_redo)),
    web.get("/api/sessions/{key}/diff", json_handler(get_diff)),
    web.get("/api/sessions/{key}/context", json_handler(get_context)),
]
