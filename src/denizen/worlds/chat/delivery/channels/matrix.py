"""Matrix: encrypted rooms, threads, edits and files, on matrix-nio.

The transaction id is derived from the message's id. Home servers remember it for a day, so a message that is sent again
arrives once. The sync token is stored only after the sync's messages were accepted, so others are received again.
"""

import asyncio
import hashlib
import logging
import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import outgoing
from denizen.worlds.chat.delivery.channels.matrix_account import (
    LOGGED_OUT,
    MatrixAccount,
    MatrixClient,
    MatrixRefusal,
    MatrixSettings,
    check_account,
    checked,
    keep_keys,
)
from denizen.worlds.chat.delivery.channels.matrix_content import (
    file_name,
    file_url,
    text_at,
    text_content,
    text_of,
    thread_relation,
    uploaded_file,
    value_at,
)
from denizen.worlds.chat.delivery.channels.media import not_received, save_media, too_large, with_files
from denizen.worlds.chat.delivery.state_files import read_state, write_state

SYNC_TIMEOUT_MS = 30_000
MAX_WAITING = 100
"""How many encrypted messages are kept until their key arrives."""
_FILTER = {
    "presence": {"not_types": ["*"]},
    "room": {
        "ephemeral": {"not_types": ["*"]},
        "state": {"lazy_load_members": True},
        "timeline": {"lazy_load_members": True, "limit": 50},
    },
}
_TRANSACTION_LIFETIME = timedelta(hours=12)
"""How long all home servers remember transaction ids."""
_EPOCH, _MAX_MS = datetime.fromtimestamp(0, UTC), 10**14
"""The latest time, in the year 5138: the sender's server writes what it likes."""
_log = logging.getLogger(__name__)


class MatrixProgress(msgspec.Struct):
    """The sync token, and the encrypted events whose key is missing."""

    token: str = ""
    waiting: list[dict[str, Any]] = []


class MatrixChannel:
    """An account on a home server. It accepts invitations from allowed people, and trusts devices on first use."""

    limits = ChannelLimits(
        length=15_000,  # JSON may turn one byte into three
        unit="bytes",
        markup="org.matrix.custom.html",
        media_in=20_000_000,
        media_out=20_000_000,
        live="edit",
        live_interval=1.5,
        threads=True,
        groups=True,
        reconciles=True,
    )

    def __init__(self, settings: MatrixSettings, home: ChannelHome) -> None:
        self.name = home.name
        self._settings = settings
        self._home = home
        self._account = MatrixAccount(settings, home.folder)
        self._progress = read_state(home.folder / "sync.json", MatrixProgress) or MatrixProgress()

    # Receiving

    async def receive(self, accept: Accept) -> None:
        async with self._account.client() as client:
            try:
                await self._receive(client, accept)
            except MatrixRefusal as refusal:
                if refusal.code in LOGGED_OUT:
                    await self._account.end_login(refusal)
                raise

    async def _receive(self, client: MatrixClient, accept: Accept) -> None:
        client.next_batch = ""  # unaccepted messages are read again
        is_first = True
        while True:
            since, timeout_ms = self._progress.token, 0 if is_first else SYNC_TIMEOUT_MS
            sync = checked(await client.sync(timeout_ms, _FILTER, since or None, full_state=is_first or None))
            waiting: list[dict[str, Any]] = []
            if since:  # without a token, everything is from before the first start
                async for room, event in self._events(client, sync):
                    if event.source.get("type") == "m.room.encrypted":
                        waiting.append(event.source | {"room_id": room.room_id})
                    else:
                        await self._accept_event(client, room, event, accept)
            self._progress = MatrixProgress(sync.next_batch, waiting[-MAX_WAITING:])
            await asyncio.to_thread(write_state, self._home.folder / "sync.json", self._progress)
            self._account.has_synced, is_first = True, False
            await self._answer_invitations(client)
            await keep_keys(client)

    async def _events(self, client: MatrixClient, sync: Any) -> AsyncIterator[tuple[Any, Any]]:
        """Events whose key was missing, then new events since the account's invitation, each with its room."""
        import nio

        for source in self._progress.waiting:
            if room := client.rooms.get(source["room_id"]):
                yield room, _decrypted(client, nio.Event.parse_event(source))
        for room_id, info in sync.rooms.join.items():
            events, room = [*info.timeline.events], client.rooms[room_id]
            start = info.timeline.prev_batch if info.timeline.limited else ""
            while start and not any(_is_entry(event, client.user_id) for event in events):
                page = checked(await client.room_messages(room_id, start, self._progress.token, limit=100))
                events[:0] = reversed(page.chunk)
                start = page.end if page.chunk else ""
            entries = [number for number, event in enumerate(events) if _is_entry(event, client.user_id)]
            for event in events[entries[-1] + 1 if entries else 0 :]:
                yield room, event

    async def _accept_event(self, client: MatrixClient, room: Any, event: Any, accept: Accept) -> None:
        """Accept the message of an event, if somebody else wrote it."""
        content = event.source.get("content")
        if event.source.get("type") != "m.room.message" or event.sender == client.user_id:
            return
        relation, edit_of = content, ""
        if text_at(content, "m.relates_to", "rel_type") == "m.replace":
            edit_of = text_at(content, "m.relates_to", "event_id")
            original = await _earlier_event(client, room.room_id, edit_of) if edit_of else None
            if original is None or original.sender != event.sender:
                return
            relation, content = original.source.get("content"), content.get("m.new_content")
        is_thread = text_at(relation, "m.relates_to", "rel_type") == "m.thread"
        thread = text_at(relation, "m.relates_to", "event_id") if is_thread else ""
        chat, is_group = f"{room.room_id}/{thread}" if thread else room.room_id, room.member_count > 2
        message = InboundMessage(
            channel=self.name,
            chat=chat,
            sender=event.sender,
            content=text_of(content),
            session_key=str(SessionKey(chat, "group" if is_group else "direct", self.name)),
            metadata={"voice": True} if value_at(content, "org.matrix.msc3245.voice") is not None else {},
            id=event.event_id,
            thread=thread,
            is_group=is_group,
            is_addressed=not is_group or await _is_addressed(client, room, content, relation),
            is_bot=text_at(content, "msgtype") == "m.notice",
            edit_of=edit_of,
            sent_at=_EPOCH + timedelta(milliseconds=min(event.server_timestamp, _MAX_MS)),
        )
        await accept(message, partial(self._fetch, client, event.event_id, content) if file_url(content) else None)

    async def _fetch(
        self, client: MatrixClient, event_id: str, content: Any, message: InboundMessage
    ) -> InboundMessage:
        data, why = await self._download(client, file_url(content), content)
        if why:
            return with_files(message, (), [not_received(file_name(content), why)])
        unique = hashlib.sha256(event_id.encode()).hexdigest()[:16]
        return with_files(message, [await save_media(self._home, unique, file_name(content), data)], ())

    async def _download(self, client: MatrixClient, url: str, content: Any) -> tuple[bytes, str]:
        """The bytes of a file, or the reason why it can't be downloaded."""
        from nio import EncryptionError
        from nio.crypto import decrypt_attachment

        server, _, media_id = url.removeprefix("mxc://").partition("/")
        path = f"/_matrix/client/v1/media/download/{quote(server, safe='')}/{quote(media_id, safe='')}"
        data = b""
        async with await client.send("GET", path, headers={"Authorization": f"Bearer {client.access_token}"}) as answer:
            if answer.status == 429 or answer.status >= 500:
                raise ConnectionError(f"{self._settings.homeserver} didn't deliver a file ({answer.status}).")
            if answer.status != 200:
                return b"", f"the home server answered {answer.status}"
            while len(data) <= self.limits.media_in and (piece := await answer.content.readany()):
                data += piece
        if len(data) > self.limits.media_in:
            return b"", too_large(self.limits)
        if not (file := value_at(content, "file")):
            return data, ""
        key, digest, start = text_at(file, "key", "k"), text_at(file, "hashes", "sha256"), text_at(file, "iv")
        try:
            return await asyncio.to_thread(decrypt_attachment, data, key, digest, start), ""
        except (EncryptionError, ValueError):
            return b"", "it can't be decrypted"

    async def _answer_invitations(self, client: MatrixClient) -> None:
        """Join rooms that allowed people invite us to; other invitations stay open."""
        for room_id, room in [*client.invited_rooms.items()]:
            if room.inviter in self._settings.allow:
                try:
                    checked(await client.join(room_id))
                except MatrixRefusal as refusal:
                    if refusal.code == "M_LIMIT_EXCEEDED":
                        return  # after the next sync, again
                    _log.warning("%s can't join %s, invited by %s: %s", self.name, room_id, room.inviter, refusal)
            client.invited_rooms.pop(room_id, None)

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        import aiohttp
        import nio

        if refusal := outgoing.send_refusal(message, self.limits):
            return Sent("failed", refusal)
        age = self._home.clock.now() - message.tried_at if message.tried_at else timedelta()
        if message.may_be_sent and not message.edits and age > _TRANSACTION_LIFETIME:
            return Sent("unknown", "home servers forget after a day whether it was sent")
        key = outgoing.delivery_key(message)
        not_now = Sent("later", "the home server can't be reached", retry_after=outgoing.CONNECT_RETRY_S)
        otherwise = not_now
        try:
            async with self._account.client() as client:
                if self._account.has_synced and message.chat.partition("/")[0] not in client.rooms:
                    return Sent("failed", "the account isn't in that room")
                contents = await self._contents(client, message)
                otherwise = Sent("unknown")
                ids = [await _put(client, message.chat, each, f"{key}-{n}") for n, each in enumerate(contents)]
            return Sent(native_id=message.edits or ids[0])
        except MatrixRefusal as refusal:
            if refusal.code == "M_LIMIT_EXCEEDED":
                return Sent("later", str(refusal), retry_after=refusal.retry_after_s)
            if refusal.code in LOGGED_OUT:
                return Sent("later", str(refusal), retry_after=outgoing.REFUSED_RETRY_S)
            if refusal.is_unclear:
                return otherwise
            if message.edits:
                return await self.send(replace(message, edits=""))
            return Sent("failed", f"the home server refused it: {refusal}")
        except ChannelRefused as refusal:
            return Sent("later", str(refusal), retry_after=outgoing.REFUSED_RETRY_S)
        except aiohttp.ClientConnectorError:
            return not_now
        except (aiohttp.ClientError, OSError, nio.LocalProtocolError, nio.EncryptionError):
            return otherwise

    async def show(self, chat: str, draft: str, text: str) -> str:
        with outgoing.rate_limited_if(
            lambda error: isinstance(error, MatrixRefusal) and error.code == "M_LIMIT_EXCEEDED"
        ):
            async with self._account.client() as client:
                contents = await self._contents(client, OutboundMessage(self.name, chat, text, edits=draft))
                event_id = await _put(client, chat, contents[0], secrets.token_hex(16))
        return draft or event_id

    async def _contents(self, client: MatrixClient, message: OutboundMessage) -> list[dict[str, Any]]:
        """Prepare the contents of a message's events: upload files, and share the room's key with members' devices."""
        room_id, _, thread = message.chat.partition("/")
        if not (room := client.rooms.get(room_id)):
            raise ConnectionError(f"The room {room_id} isn't known before the first sync.")
        if room.encrypted:
            await self._account.share_keys(client, room)
        contents = [text_content(message.content, thread, message.edits)] if message.content else []
        files = [await uploaded_file(client, Path(each), is_encrypted=room.encrypted) for each in message.media]
        return [*contents, *(file | thread_relation(thread) for file in files)]


def _is_entry(event: Any, user_id: str) -> bool:
    """Whether the event is the account's invitation, or its join without one: earlier messages aren't read."""
    if event.source.get("type") != "m.room.member" or event.source.get("state_key") != user_id:
        return False
    here = {"invite", "join"}
    before = text_at(event.source, "unsigned", "prev_content", "membership")
    return text_at(event.source, "content", "membership") in here and before not in here


def _decrypted(client: MatrixClient, event: Any) -> Any:
    """The decrypted event; unchanged if its key is still missing."""
    import nio

    try:
        return client.decrypt_event(event)
    except nio.EncryptionError:
        return event


async def _earlier_event(client: MatrixClient, room_id: str, event_id: str) -> Any:
    """An event of a room; None if the account can't see it."""
    try:
        return checked(await client.room_get_event(room_id, event_id)).event
    except MatrixRefusal as refusal:
        if refusal.is_unclear or refusal.code in {*LOGGED_OUT, "M_LIMIT_EXCEEDED"}:
            raise
        return None


async def _is_addressed(client: MatrixClient, room: Any, content: Any, relation: Any) -> bool:
    """Whether a group message mentions or names the account, or replies to one of its messages."""
    me, body, mentions = client.user_id, text_at(content, "body"), value_at(content, "m.mentions", "user_ids")
    if me in body or f"matrix.to/#/{me}" in unquote(text_at(content, "formatted_body")):
        return True
    if isinstance(mentions, list) and me in mentions:
        return True
    if re.search(rf"(?<!\w){re.escape(room.user_name(me) or me)}(?!\w)", body, re.IGNORECASE):
        return True
    replied = text_at(relation, "m.relates_to", "m.in_reply_to", "event_id")
    if not replied or value_at(relation, "m.relates_to", "is_falling_back"):
        return False
    event = await _earlier_event(client, room.room_id, replied)
    return event is not None and event.sender == me


async def _put(client: MatrixClient, chat: str, content: dict[str, Any], key: str) -> str:
    """Send an event, and return its id. If the key was used before, that event's id. Raises MatrixRefusal."""
    room_id = chat.partition("/")[0]
    answer = await client.room_send(room_id, "m.room.message", content, key, ignore_unverified_devices=True)
    return checked(answer).event_id


KIND = ChannelKind(
    settings=MatrixSettings,
    connect=MatrixChannel,
    check=check_account,
    account="{0.homeserver} {0.user}".format,
    steps="Register an account for the assistant on your home server (on matrix.org: https://app.element.io), put your "
    "own id, such as @you:matrix.org, into `allow`, and invite the assistant to a room.",
)
