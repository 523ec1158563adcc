"""XMPP: direct chats and rooms, on slixmpp."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from denizen.errors import ConfigError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, ChannelSettings, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.text.printable import printable
from denizen.worlds.chat.delivery.channels.outgoing import CONNECT_RETRY_S, earliest_arrival, send_refusal
from denizen.worlds.chat.delivery.state_files import read_state, write_state

MAX_CHARS = 10_000
"""XMPP has no limit; servers reject stanzas of more than about 100 kB."""
CONFIRM_TIMEOUT_S = 60.0
KEEPALIVE_S = 120.0
JOIN_TIMEOUT_S, JOIN_RETRY_S = 30, 120.0
LEAVE_TIMEOUT_S = 3.0
ARCHIVE_PAGE_MESSAGES, MAX_ARCHIVE_PAGES = 100, 10
"""Messages per archive page, and how many of a chat's last pages are searched for one that may be sent."""
_PLUGINS = ("xep_0030", "xep_0045", "xep_0198", "xep_0199", "xep_0203", "xep_0308", "xep_0313", "xep_0359")
_log = logging.getLogger(__name__)


class XmppSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An XMPP account."""

    jid: str
    """The account's address: `name@server`."""
    password: str
    """The account's password."""
    host: str = ""
    """The server's address; empty: from the domain's DNS records."""
    port: int = 5222
    """The server's port; it counts only with `host`."""
    direct_tls: bool = False
    """TLS from the start (port 5223) instead of STARTTLS."""
    ca: str = ""
    """A file of certificates to trust in addition to the system's."""
    nick: str = "denizen"
    """The agent's name in rooms."""
    rooms: list[str] = msgspec.field(default_factory=list)
    """The rooms to join: `room@conference.example.org`."""


class XmppChannel:
    """An account with direct chats and rooms. A chat is the address of a person or a room."""

    def __init__(self, settings: XmppSettings, home: ChannelHome) -> None:
        import slixmpp  # noqa: F401 - reports a missing package before the channel is opened

        self.name = home.name
        self._settings = settings
        self._rooms = tuple(room.lower() for room in settings.rooms)  # as servers write their addresses
        self._clock = home.clock
        self._last_archived = home.folder / "last_archived.json"
        self._client: Any = None
        self._changed = asyncio.Event()
        self._inbox: deque[tuple[InboundMessage, str]] = deque()
        self._is_online = False
        self._connection = object()
        self._joined = set[str]()
        self._has_archive = True
        self._failure: Exception | None = None
        self._acks: dict[str, asyncio.Future[None]] = {}
        self._errors: dict[str, str] = {}

    @property
    def limits(self) -> ChannelLimits:
        return ChannelLimits(
            length=MAX_CHARS, live="edit", live_interval=2.0, groups=True, reconciles=self._has_archive
        )

    # The connection

    async def receive(self, accept: Accept) -> None:
        client = self._client = self._client or self._new_client()
        self._failure = None
        client.connect(self._settings.host or None, self._settings.port if self._settings.host else None)
        try:
            while True:
                self._changed.clear()
                while self._inbox:
                    message, archived = self._inbox[0]
                    await accept(message)
                    self._inbox.popleft()
                    if archived:
                        write_state(self._last_archived, archived, sync=False)
                if self._failure:
                    raise self._failure
                await self._wait(client)
        finally:
            await _close(client)

    async def _wait(self, client: Any) -> None:
        """Wait for a change. Ping the server now and then, and abort the connection if it doesn't answer."""
        from slixmpp.exceptions import IqError, IqTimeout

        try:
            async with asyncio.timeout(KEEPALIVE_S):
                await self._changed.wait()
        except TimeoutError:
            try:
                await client.plugin["xep_0199"].send_ping(client.boundjid.domain, timeout=CONFIRM_TIMEOUT_S)
            except IqError:
                return  # the server is there, but doesn't support pings
            except IqTimeout:
                client.abort()

    def _new_client(self) -> Any:
        client = _client(self._settings, self._fail)
        client.exception = self._fail  # otherwise slixmpp drops handlers' exceptions
        client.add_event_handler("stream_negotiated", self._on_session_start)
        client.add_event_handler("session_resumed", self._on_session_resumed)
        client.add_event_handler("message", self._on_message)
        client.add_event_handler("message_error", self._on_error)
        client.add_event_handler("stanza_acked", self._on_ack)
        return client

    async def _on_session_start(self, _: object) -> None:
        """Start a new session: read missed messages from the archive, send presence, and join the rooms."""
        from slixmpp.exceptions import IqError

        after = read_state(self._last_archived, str) or ""
        try:
            while after and (results := await self._archive(after=after)):
                for result in results:
                    after, forwarded = result["mam_result"]["id"], result["mam_result"]["forwarded"]
                    self._queue_message(forwarded["stanza"], after, forwarded["delay"]["stamp"])
        except IqError as error:
            _log.warning("Channel %s can't read missed messages: %s", self.name, error.condition)
        self._joined.clear()
        self._client.send_presence()
        await self._on_session_resumed(None)

    async def _on_session_resumed(self, _: object) -> None:
        """Join the rooms that it isn't in; while the connection lasts, try again those that can't be joined."""
        from slixmpp import JID
        from slixmpp.exceptions import XMPPError

        self._is_online = True
        self._changed.set()
        connection = self._connection = object()
        while self._is_online and self._connection is connection and (missing := {*self._rooms} - self._joined):
            for room in missing:
                try:
                    await self._client.plugin["xep_0045"].join_muc_wait(
                        JID(room), self._settings.nick, maxstanzas=0, timeout=JOIN_TIMEOUT_S
                    )
                except (XMPPError, TimeoutError) as refused:
                    _log.warning("Channel %s can't join %s: %r", self.name, room, refused)
                else:
                    self._joined.add(room)
            if not missing <= self._joined:
                await self._clock.sleep(JOIN_RETRY_S)

    def _fail(self, failure: Exception) -> None:
        self._is_online = False
        self._failure = self._failure or failure
        for ack in self._acks.values():
            if not ack.done():
                ack.set_exception(ConnectionError(str(failure)))
        self._changed.set()

    # Receiving

    def _on_message(self, stanza: Any) -> None:
        own = self._client.boundjid.bare
        archived = stanza["stanza_id"]["id"] if stanza["stanza_id"]["by"] == own else ""
        delay = stanza.get_plugin("delay", check=True)
        if not (delay and stanza["type"] == "groupchat"):  # a room's history
            self._queue_message(stanza, archived, delay["stamp"] if delay else None)

    def _queue_message(self, stanza: Any, archived: str, written_at: datetime | None) -> None:
        """Add a message to the inbox, unless we wrote it."""
        sender, text = stanza["from"], printable(stanza["body"]).strip()
        is_group = stanza["type"] == "groupchat"
        is_own = sender.resource == self._settings.nick if is_group else sender.bare == self._client.boundjid.bare
        if is_own or not text or stanza["type"] not in {"chat", "normal", "groupchat"}:
            return
        is_private = not is_group and sender.bare in self._rooms
        chat = sender.full if is_private else sender.bare
        rooms = self._client.plugin["xep_0045"]
        known = rooms.get_jid_property(sender.bare, sender.resource, "jid") if is_group else None
        called = re.match(rf"{re.escape(self._settings.nick)}[:,]\s*", text, re.IGNORECASE) if is_group else None
        author = sender.full if is_group or is_private else sender.bare
        correction = stanza.get_plugin("replace", check=True)
        message = InboundMessage(
            self.name,
            chat,
            str(known).partition("/")[0] if known else author,
            text[called.end() :] if called else text,
            str(SessionKey(chat, kind="group" if is_group else "direct", channel=self.name)),
            id=f"{author}:{stanza['id'] or archived or uuid4().hex}",
            is_group=is_group,
            is_addressed=not is_group or bool(called),
            edit_of=f"{author}:{correction['id']}" if correction else "",
            sent_at=written_at or self._clock.now(),
            vouched_for="chat" if known or not (is_group or is_private) else "nothing",
        )
        self._inbox.append((message, archived))
        self._changed.set()

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        from slixmpp.exceptions import XMPPError

        if refusal := send_refusal(message, self.limits):
            return Sent("failed", refusal)
        if not self._is_online or message.chat in {*self._rooms} - self._joined:
            return Sent(
                "later", f"{self._settings.jid} isn't in {message.chat}, or not connected.", retry_after=CONNECT_RETRY_S
            )
        if message.may_be_sent and not message.edits:
            try:
                is_archived = await self._is_archived(message)
            except XMPPError as error:
                self._has_archive = error.condition not in {"service-unavailable", "feature-not-implemented"}
                return Sent("unknown", f"The archive doesn't say whether it was sent: {error.condition}.")
            if is_archived is None:
                return Sent("unknown", "The archive doesn't say whether it was sent.")
            if is_archived:
                return Sent(native_id=message.id)
        stanza = self._stanza(message.chat, message.content, message.id, message.edits)
        acknowledged = self._acks[message.id] = asyncio.get_running_loop().create_future()
        try:
            stanza.send()
            if "stream_management" in self._client.features:
                self._client.send(str(self._client.plugin["xep_0198"].stanza.RequestAck(self._client)))
            else:
                server = self._client.boundjid.domain
                self._client.plugin["xep_0199"].send_ping(server, callback=partial(self._on_ack, stanza))
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await acknowledged
        except OSError as lost:
            return Sent("unknown", f"The server didn't confirm it. {lost}")
        finally:
            del self._acks[message.id]
        if error := self._errors.pop(message.id, ""):
            return Sent("failed", f"{message.chat} refuses it: {error}")
        return Sent(native_id=message.edits or message.id)

    async def show(self, chat: str, draft: str, text: str) -> str:
        if not self._is_online:
            raise ConnectionError(f"{self._settings.jid} isn't connected.")
        identifier = uuid4().hex
        self._stanza(chat, text, identifier, draft).send()
        return draft or identifier

    def _stanza(self, chat: str, text: str, identifier: str, edits: str) -> Any:
        is_group = chat in self._rooms
        stanza = self._client.make_message(chat, printable(text), mtype="groupchat" if is_group else "chat")
        stanza["id"] = stanza["origin_id"]["id"] = identifier
        if edits:
            stanza["replace"]["id"] = edits
        return stanza

    def _on_ack(self, stanza: Any, _: object = None) -> None:
        if (ack := self._acks.get(stanza["id"])) and not ack.done():
            ack.set_result(None)

    def _on_error(self, stanza: Any) -> None:
        if stanza["id"] in self._acks:
            self._errors[stanza["id"]] = stanza["error"]["text"] or stanza["error"]["condition"]

    async def _is_archived(self, message: OutboundMessage) -> bool | None:
        """Whether the archive has the message; None if it doesn't reach back far enough to know. Raises XMPPError.

        It may be empty because the server doesn't archive this chat.
        """
        earliest, before, has_messages = earliest_arrival(message), "", False
        for _ in range(MAX_ARCHIVE_PAGES):
            page = await self._archive(message.chat, before=before)
            for result in reversed(page):
                before, forwarded = result["mam_result"]["id"], result["mam_result"]["forwarded"]
                stanza, has_messages = forwarded["stanza"], True
                if message.id in {stanza["origin_id"]["id"], stanza["id"]}:
                    return True
                is_answered = message.in_reply_to and message.in_reply_to.endswith(f":{stanza['id'] or before}")
                if is_answered or (earliest and forwarded["delay"]["stamp"] < earliest):
                    return False
            if len(page) < ARCHIVE_PAGE_MESSAGES:
                return False if has_messages else None
        return None

    async def _archive(self, chat: str = "", after: str = "", before: str = "") -> list[Any]:
        """A page of archived messages: the last ones in `chat` (`before` an id), or those `after` an id in all chats.

        Raises XMPPError.

        slixmpp's own iterator treats errors as the end of the archive.
        """
        from slixmpp.xmlstream.handler import Collector
        from slixmpp.xmlstream.matcher import StanzaPath

        is_room = chat in self._rooms
        request = self._client.make_iq_set(ito=chat if is_room else None)
        query, identifier = request["mam"], request["id"]
        query["queryid"] = identifier
        query["start"] = None  # creates the form
        query["rsm"]["max"] = str(ARCHIVE_PAGE_MESSAGES)
        if chat and not is_room:
            query["with"] = chat
        query["rsm"]["after" if after else "before"] = after or before or True
        results = Collector(identifier, StanzaPath(f"message/mam_result@queryid={identifier}"))
        self._client.register_handler(results)
        try:
            await request.send()
        finally:
            found = results.stop()
        return found


def _client(settings: XmppSettings, fail: Callable[[Exception], None]) -> Any:
    """A client that calls `fail` when its connection ends."""
    from slixmpp import ClientXMPP

    client = ClientXMPP(settings.jid, settings.password)
    client.enable_direct_tls, client.enable_starttls = settings.direct_tls, not settings.direct_tls
    if settings.ca:
        client.ca_certs = Path(settings.ca)
    for plugin in _PLUGINS:
        client.register_plugin(plugin)
    server, reasons = client.boundjid.domain, list[object]()

    def fail_on(event: str, failure: Callable[[object], Exception]) -> None:
        def on_event(about: object) -> None:
            fail(failure(about))

        client.add_event_handler(event, on_event)

    client.add_event_handler("connection_failed", reasons.append)
    # After each of the server's addresses failed:
    fail_on("reconnect_delay", lambda _: ConnectionError(f"{server} can't be reached: {reasons[-1]}"))
    fail_on("failed_all_auth", lambda _: ChannelRefused(f"{server} refuses the password of {settings.jid}."))
    client.add_event_handler("ssl_invalid_chain", fail)
    fail_on("disconnected", lambda why: ConnectionError(f"{server} ended the connection: {why or 'no reason'}"))
    return client


async def _close(client: Any) -> None:
    client.cancel_connection_attempt()
    if client.is_connected():
        await client.disconnect(LEAVE_TIMEOUT_S)


async def _check(settings: XmppSettings) -> str:
    outcomes = asyncio.Queue[object]()
    client = _client(settings, outcomes.put_nowait)
    client.add_event_handler("stream_negotiated", outcomes.put_nowait)
    client.connect(settings.host or None, settings.port if settings.host else None)
    outcome = await outcomes.get()
    await _close(client)
    if isinstance(outcome, ChannelRefused):
        raise outcome
    if isinstance(outcome, Exception):
        raise ConfigError(f"Can't log in as {settings.jid}: {outcome}")
    return settings.jid


KIND = ChannelKind(
    settings=XmppSettings,
    connect=XmppChannel,
    check=_check,
    account="{0.jid}".format,
    steps="Create an account for the agent on a server (https://providers.xmpp.net), with its own password.",
)
