"""Connections to a mailbox's two servers: IMAP for reading, SMTP for sending."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from denizen.errors import ConfigError
from denizen.ports import ChannelRefused, ChannelSettings
from denizen.runtime.cancellation import first_completed

if TYPE_CHECKING:
    from aioimaplib import IMAP4
    from aiosmtplib import SMTP

IDLE_S = 540.0
"""Seconds after which IDLE is restarted, before servers and routers close the silent connection."""
_TIMEOUT_S = 60.0
_NUMBER = re.compile(r"\[(UIDVALIDITY|UIDNEXT) (\d+)\]")
_T = TypeVar("_T")


class EmailSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mailbox that only the agent uses."""

    address: str
    """Its address."""
    password: str
    """Its password, for IMAP and SMTP."""
    imap: str
    """The server for reading, over TLS: `imap.example.org:993`."""
    smtp: str
    """The server for sending: `smtp.example.org:465`; on port 587 with STARTTLS, otherwise over TLS."""
    authserv: str
    """The receiving server's name in Authentication-Results headers: only senders that it found genuine (DMARC, or DKIM
    of their domain) are answered. `none`: senders aren't checked, so anybody can pretend to be you."""
    user: str = ""
    """The user name, if it isn't the address."""
    display_name: str = "Denizen"
    """The name that people see as the sender."""
    mailbox: str = "INBOX"
    """The folder that is read."""
    ca: str = ""
    """A certificate file, for a server with a private certificate authority; empty: the system's certificates."""


class MailboxPosition(msgspec.Struct, frozen=True):
    """The last mail that was read, and the UIDVALIDITY of its mailbox."""

    validity: int
    uid: int


async def with_mailbox(settings: EmailSettings, work: "Callable[[IMAP4, MailboxPosition], Awaitable[_T]]") -> _T:
    """Run `work` with the opened mailbox and the position of its last mail, and return its result.

    Raises ChannelRefused, ConfigError, OSError and the library's exceptions.
    """
    from aioimaplib import IMAP4

    host, port = _host_and_port(settings.imap, 993)
    lost = asyncio.Event()
    client: Any = IMAP4(host, port, timeout=_TIMEOUT_S, conn_lost_cb=lambda _: lost.set(), ssl_context=_tls(settings))

    async def use() -> _T:
        await client.wait_hello_from_server()
        answer = await client.login(settings.user or settings.address, settings.password)
        if answer.result != "OK":
            why = b" ".join(map(bytes, answer.lines)).decode(errors="replace")
            if "[UNAVAILABLE]" in why:  # RFC 5530: not the password's fault
                raise ConnectionError(f"{settings.imap} can't check the password now: {why}")
            raise ChannelRefused(f"{settings.imap} refuses the password of {settings.address}: {why}")
        opened = await client.select(f'"{settings.mailbox}"')
        numbers = dict(_NUMBER.findall(b" ".join(map(bytes, opened.lines)).decode(errors="replace")))
        if opened.result != "OK" or "UIDNEXT" not in numbers:
            raise ChannelRefused(f"{settings.imap} has no mailbox {settings.mailbox!r} that can be read.")
        return await work(client, MailboxPosition(int(numbers["UIDVALIDITY"]), int(numbers["UIDNEXT"]) - 1))

    try:
        async with first_completed(use(), lost.wait()) as (using, _):
            if not using.done():  # the library's commands don't notice a lost connection
                raise ConnectionError(f"{settings.imap} closed the connection.")
            return using.result()
    finally:
        if client.protocol.transport:
            client.protocol.transport.abort()


async def wait_for_arrival(client: "IMAP4") -> None:
    """Wait until the mailbox changes, at most `IDLE_S`."""
    idle = await client.idle_start(timeout=IDLE_S)
    await client.wait_server_push()
    client.idle_done()
    await asyncio.wait_for(idle, _TIMEOUT_S)


def smtp_client(settings: EmailSettings) -> "SMTP":
    """A client that signs in when it is entered. Raises ConfigError."""
    from aiosmtplib import SMTP

    host, port = _host_and_port(settings.smtp, 465)
    return SMTP(
        hostname=host,
        port=port,
        username=settings.user or settings.address,
        password=settings.password,
        use_tls=port != 587,
        start_tls=port == 587,
        tls_context=_tls(settings),
        timeout=_TIMEOUT_S,
    )


async def check_servers(settings: EmailSettings) -> str:
    """Sign in to both servers, and return the address. Raises ChannelRefused and ConfigError."""
    from aioimaplib.aioimaplib import AioImapException
    from aiosmtplib import SMTPException

    async def sign_in(*_: object) -> str:
        async with smtp_client(settings):
            return settings.address

    try:
        return await with_mailbox(settings, sign_in)
    except (AioImapException, SMTPException, OSError) as error:
        raise ChannelRefused(f"{settings.imap} or {settings.smtp} can't be used: {error}") from error


def _host_and_port(address: str, default: int) -> tuple[str, int]:
    host, _, port = address.rpartition(":") if ":" in address else (address, "", str(default))
    if not host or not port.isdecimal():
        raise ConfigError(f"{address!r} isn't a server's address; write host:port, such as imap.example.org:993.")
    return host, int(port)


def _tls(settings: EmailSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca or None)
    except OSError as error:
        raise ConfigError(f"The certificate file {settings.ca} can't be read: {error}") from error
