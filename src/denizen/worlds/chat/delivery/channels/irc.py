"""IRC: rooms and private messages on a server or bouncer, over TLS.

pydle parses the lines. Its client isn't used, because it handles each line in a separate task, ignores failed SASL, and
doesn't report broken connections.
"""

import asyncio
import base64
import re
import ssl
from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec

from denizen.errors import ConfigError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, ChannelSettings, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock, SystemClock
from denizen.sessions import SessionKey
from denizen.text.printable import printable
from denizen.worlds.chat.delivery.channels.outgoing import CONNECT_RETRY_S, send_refusal

MAX_LINE_BYTES = 512
"""The protocol's longest line, including its end and the sender that the server prepends."""
MAX_NICK_SUFFIX_BYTES, MAX_HOST_BYTES, MAX_TARGET_BYTES = 5, 64, 32
"""The most that servers allow. Actual values would change the limits, and so the parts, with each connection."""
BURST_LINES = 4
LINE_INTERVAL_S = 2.0
"""Servers disconnect clients that keep sending faster than this."""
CONNECT_TIMEOUT_S = 30.0
CONFIRM_TIMEOUT_S = 90.0
CHECK_INTERVAL_S = 120.0
"""How often the server is pinged; if nothing arrives before the next ping, the connection is lost."""
LEAVE_TIMEOUT_S = 5.0
CAPABILITIES = frozenset({"account-tag", "message-tags", "server-time"})
_COLOUR = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?")
_BOT_TAGS = frozenset({"bot", "draft/bot", "inspircd.org/bot"})
_TARGET = re.compile(r"[^\s,:][^\s,]*")


class IrcSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account on one IRC server."""

    server: str
    """The name of the server or bouncer."""
    port: int = 6697
    """The server's port."""
    tls: bool = True
    """Encrypt the connection, and verify the server's certificate."""
    ca: str = ""
    """A file of certificates to trust instead of the system's."""
    nick: str = "denizen"
    """The agent's nick; if it is taken, `_` is appended."""
    account: str = ""
    """The services account, for the SASL login; empty: none."""
    password: str = ""
    """The account's password."""
    server_password: str = ""
    """The password for the server or bouncer itself."""
    rooms: list[str] = msgspec.field(default_factory=list)
    """The IRC channels to join: `#name`, or `#name KEY`."""
    trust_nicks: bool = False
    """Accept nicks as proof of identity: whoever uses an allowed nick, or an owner's, is treated as that person."""


class _Connection:
    """One connection to a server, until it ends."""

    def __init__(
        self, settings: IrcSettings, clock: Clock, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.nick = settings.nick
        self.room_signs, self.member_signs = "#&", "@+"
        self.capabilities = frozenset[str]()
        self._settings = settings
        self._clock = clock
        self._reader = reader
        self._writer = writer
        self._unread: deque[Any] = deque()
        self._errors: list[tuple[str, str]] = []
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._next_line_at = 0.0
        self._check_at = asyncio.get_running_loop().time() + CHECK_INTERVAL_S
        self._awaits_answer = False

    async def register(self) -> None:
        """Log in. Raises OSError and ChannelRefused."""
        if self._settings.server_password:
            await self.write(f"PASS :{self._settings.server_password}")
        await self.write("CAP LS")
        await self.write(f"NICK {self.nick}")
        await self.write(f"USER {self.nick} 0 * :Denizen")
        account = self._settings.account
        while (line := await self.read()).command != 1:
            match line.command:
                case "CAP" if line.params[1] == "LS":
                    wanted = CAPABILITIES | {"sasl"} if account else CAPABILITIES
                    self.capabilities = wanted.intersection(line.params[-1].split())
                    await self.write(f"CAP REQ :{' '.join(self.capabilities)}" if self.capabilities else "CAP END")
                case "CAP":
                    await self.write("AUTHENTICATE PLAIN" if "sasl" in self.capabilities else "CAP END")
                case "AUTHENTICATE":
                    secret = base64.b64encode(f"\0{account}\0{self._settings.password}".encode()).decode()
                    for at in range(0, len(secret) + 1, 400):
                        await self.write(f"AUTHENTICATE {secret[at : at + 400] or '+'}")
                case 903:  # logged in
                    account = ""
                    await self.write("CAP END")
                case 433 | 437 if len(self.nick) < len(self._settings.nick) + MAX_NICK_SUFFIX_BYTES:  # in use
                    self.nick += "_"
                    await self.write(f"NICK {self.nick}")
                case 902 | 904 | 905 | 908 | 432 | 433 | 437 | 464 | 465:
                    raise ChannelRefused(f"{self._settings.server} refuses the login: {line.params[-1]}")
        if account:
            raise ChannelRefused(f"{self._settings.server} has no SASL: {account!r} can't log in. Remove `account`.")
        self.nick = line.params[0]

    async def join(self) -> None:
        for room in self._settings.rooms:
            await self.write(f"JOIN {room}")

    async def leave(self) -> None:
        """Set away and quit, if the server still responds; a bouncer keeps showing the account as away."""
        with suppress(OSError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self.write("AWAY :The gateway is stopped.")
                await self.write("QUIT :The gateway is stopped.")
                self._writer.close()
                await self._writer.wait_closed()
        self._writer.close()
        for pong in self._pongs.values():
            if not pong.done():
                pong.set_exception(ConnectionError("The connection ended."))
                pong.exception()  # asyncio logs exceptions that nobody read, and the send may fail before it does

    async def read(self) -> Any:
        """The next line, parsed by pydle. Raises OSError when the connection is lost."""
        return self._unread.popleft() if self._unread else await self._receive()

    async def _receive(self) -> Any:
        from pydle.features.ircv3.tags import TaggedMessage

        while True:
            try:
                async with asyncio.timeout_at(self._check_at):
                    data = await self._reader.readline()
            except TimeoutError:
                await self._check()
                continue
            self._awaits_answer = False
            if not data:
                raise ConnectionError("The server closed the connection.")
            if data.strip():
                line: Any = TaggedMessage.parse(data)
                await self._handle_protocol_line(line)
                return line

    async def _check(self) -> None:
        """Ping the server, reclaim the nick, and rejoin rooms that the account was kicked from."""
        if self._awaits_answer:
            raise TimeoutError(f"The server sent nothing for {CHECK_INTERVAL_S:.0f} s.")
        self._awaits_answer = True
        self._check_at = asyncio.get_running_loop().time() + CHECK_INTERVAL_S
        await self.write("PING :check")
        if self.nick != self._settings.nick:
            await self.write(f"NICK {self._settings.nick}")
        await self.join()

    async def _handle_protocol_line(self, line: Any) -> None:
        """Answer pings, and record nick changes, server settings and errors."""
        if line.command == "NICK" and _nick(line.source) == self.nick:
            self.nick = line.params[0]
        match line.command:
            case "PING":
                await self.write(f"PONG :{line.params[-1]}")
            case "PONG":
                if (pong := self._pongs.get(line.params[-1])) and not pong.done():
                    pong.set_result(None)
            case "ERROR":
                raise ConnectionError(f"The server closed the connection: {line.params[-1]}")
            case 5:
                values = dict(item.partition("=")[::2] for item in line.params[1:-1])
                self.room_signs = values.get("CHANTYPES", self.room_signs)
                self.member_signs = values.get("STATUSMSG", self.member_signs)
            case int(number) if number >= 400 and len(line.params) > 2:
                self._errors.append((line.params[1].lower(), f"{number} {line.params[-1]}"))

    async def write(self, line: str) -> None:
        """Send a line at once. Raises OSError."""
        if self._writer.is_closing():
            raise ConnectionError("The connection ended.")
        self._writer.write(line.encode(errors="replace") + b"\r\n")
        await self._writer.drain()

    async def write_paced(self, line: str) -> None:
        """Send a line when the server's flood limit allows it. Raises OSError."""
        now = self._clock.monotonic()
        self._next_line_at = max(self._next_line_at, now - BURST_LINES * LINE_INTERVAL_S) + LINE_INTERVAL_S
        if self._next_line_at > now:
            await self._clock.sleep(self._next_line_at - now)
        await self.write(line)

    def is_room(self, target: str) -> bool:
        """Whether it is a room, or some of its members: `@#room` reaches the operators."""
        return any(name.startswith(tuple(self.room_signs)) for name in (target, self.without_member_sign(target)))

    def without_member_sign(self, target: str) -> str:
        return target[1:] if target[0] in self.member_signs else target

    async def account_of(self, source: str) -> str:
        """Look up a sender's services account; empty if there is none, or if somebody else now uses the nick."""
        is_same, account = False, ""
        with suppress(OSError):
            await self.write_paced(f"WHOIS {_nick(source)}")
            await self.write("PING :whois")
            while (line := await self._receive()).command != "PONG" or line.params[-1] != "whois":
                match line.command:
                    case 311:
                        is_same = source == "{}!{}@{}".format(*line.params[1:4])
                    case 330:
                        account = line.params[2]
                    case _:
                        self._unread.append(line)
        return account if is_same else ""

    async def send_lines(self, target: str, lines: list[str]) -> Sent:
        """Send the lines, and wait until the server has processed them."""
        token = f"denizen-{uuid4().hex}"
        confirmed = self._pongs[token] = asyncio.get_running_loop().create_future()
        self._errors.clear()
        written = 0
        try:
            for line in lines:
                await self.write_paced(f"PRIVMSG {target} :{line}")
                written += 1
            await self.write_paced(f"PING :{token}")
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await confirmed
        except OSError as lost:
            if not written:
                return Sent("later", str(lost), retry_after=CONNECT_RETRY_S)
            return Sent("unknown", f"The server didn't confirm it. {lost}")
        finally:
            del self._pongs[token]
        names = {target.lower(), self.without_member_sign(target).lower()}
        refusals = [words for about, words in self._errors if about in names]
        if refusals:
            return Sent("failed", f"The server refuses {len(refusals)} of {written} lines: {refusals[0]}")
        return Sent()


class IrcChannel:
    """A nick on one IRC server, with rooms and private chats. A chat is `#room` or `nick`, in lower case."""

    def __init__(self, settings: IrcSettings, home: ChannelHome) -> None:
        import pydle  # noqa: F401 - reports a missing package before the channel is opened

        self.name = home.name
        self._settings = settings
        self._clock = home.clock
        self._connection: _Connection | None = None
        self._inbox: deque[InboundMessage] = deque()
        self._sending = asyncio.Lock()

    @property
    def limits(self) -> ChannelLimits:
        nick, target = self._settings.nick, max([MAX_TARGET_BYTES, *map(len, self._settings.rooms)])
        frame = len(f":{nick}!~{nick}@ PRIVMSG  :\r\n".encode()) + MAX_NICK_SUFFIX_BYTES + MAX_HOST_BYTES + target
        return ChannelLimits(length=MAX_LINE_BYTES - frame, unit="bytes", groups=True, replays_with_new_ids=True)

    async def receive(self, accept: Accept) -> None:
        connection = await _open_connection(self._settings, self._clock)
        try:
            await connection.write("AWAY")  # clear the away state that a bouncer may still show
            await connection.join()
            self._connection = connection
            while True:
                while self._inbox:
                    await accept(self._inbox[0])
                    self._inbox.popleft()
                line = await connection.read()
                if line.command == "PRIVMSG" and line.source and _nick(line.source) != connection.nick:
                    await self._queue_message(connection, line)
        finally:
            self._connection = None
            await connection.leave()

    async def send(self, message: OutboundMessage) -> Sent:
        lines = [line for line in map(printable, message.content.splitlines()) if line.strip()]
        if refusal := send_refusal(message, self.limits):
            return Sent("failed", refusal)
        if not _TARGET.fullmatch(message.chat):
            return Sent("failed", f"{message.chat!r} is neither a nick nor a room.")
        if message.may_be_sent:
            return Sent("unknown", "IRC can't tell whether an earlier attempt arrived.")
        async with self._sending:
            if self._connection is None:
                return Sent("later", f"{self._settings.server} isn't connected.", retry_after=CONNECT_RETRY_S)
            return await self._connection.send_lines(message.chat, lines)

    async def _queue_message(self, connection: _Connection, line: Any) -> None:
        nick, (target, text) = _nick(line.source), line.params
        is_action = text.startswith("\x01ACTION ")
        if text.startswith("\x01") and not is_action:
            return  # CTCP queries such as VERSION
        text = printable(_COLOUR.sub("", text.removeprefix("\x01ACTION "))).strip()
        is_group = connection.is_room(target)
        names = "|".join(map(re.escape, (connection.nick, self._settings.nick)))
        called = re.match(rf"(?i)(?:{names})[:,]\s*", text)
        is_addressed = not is_group or bool(called or (is_action and re.search(rf"(?i)\b(?:{names})\b", text)))
        account, id_, time = (line.tags.get(name) for name in ("account", "msgid", "time"))
        if "account-tag" not in connection.capabilities and (is_addressed or self._settings.groups == "all"):
            account = await connection.account_of(line.source)
        chat = (target if is_group else nick).lower()
        text = text[called.end() :] if called else text
        self._inbox.append(
            InboundMessage(
                self.name,
                chat,
                f"account:{account}" if account else nick.lower(),
                f"* {nick} {text}" if is_action else text,
                str(SessionKey(chat, kind="group" if is_group else "direct", channel=self.name)),
                id=id_ or uuid4().hex,
                is_group=is_group,
                is_addressed=is_addressed,
                is_bot=not _BOT_TAGS.isdisjoint(line.tags),
                sent_at=datetime.fromisoformat(time) if time else self._clock.now(),
                vouched_for="chat" if self._settings.trust_nicks else "sender" if account else "nothing",
            )
        )


def _nick(source: str) -> str:
    return source.partition("!")[0]


async def _open_connection(settings: IrcSettings, clock: Clock) -> _Connection:
    """A connection that is logged in. Raises OSError and ChannelRefused."""
    tls = ssl.create_default_context(cafile=settings.ca or None) if settings.tls else None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(settings.server, settings.port, ssl=tls)
            connection = _Connection(settings, clock, reader, writer)
            try:
                await connection.register()
            except BaseException:
                await connection.leave()
                raise
    except (TimeoutError, ConnectionResetError) as error:  # they have no text
        with_tls = " with TLS. If the port has none, set tls = false" if tls else ""
        raise ConnectionError(f"The server doesn't answer{with_tls}.") from error
    return connection


async def _check(settings: IrcSettings) -> str:
    try:
        connection = await _open_connection(settings, SystemClock())
    except OSError as error:
        raise ConfigError(f"Can't connect to {settings.server}:{settings.port}: {error}") from error
    await connection.leave()
    return f"{connection.nick} on {settings.server}"


def _account(settings: IrcSettings) -> str:
    return f"{settings.account or settings.nick}@{settings.server}:{settings.port}"


KIND = ChannelKind(
    settings=IrcSettings,
    connect=IrcChannel,
    check=_check,
    account=_account,
    steps="Choose a server and a nick. To keep the nick, register it with the network's services (on many networks "
    "`/msg NickServ REGISTER PASSWORD EMAIL`; https://libera.chat/guides/registration), and set `account` and "
    "`password`.",
)
