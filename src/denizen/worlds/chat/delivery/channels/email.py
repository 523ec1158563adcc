"""E-mail: reads a mailbox over IMAP as mail arrives, and sends replies over SMTP, in the same thread."""

import asyncio
import hashlib
import logging
import re
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import email_message
from denizen.worlds.chat.delivery.channels.email_servers import (
    EmailSettings,
    MailboxPosition,
    check_servers,
    smtp_client,
    wait_for_arrival,
    with_mailbox,
)
from denizen.worlds.chat.delivery.channels.media import not_received, save_media, too_large, with_files
from denizen.worlds.chat.delivery.channels.outgoing import REFUSED_RETRY_S, delivery_key
from denizen.worlds.chat.delivery.state_files import read_state, write_state

if TYPE_CHECKING:
    from aioimaplib import IMAP4

MAX_MEDIA_BYTES = 10_000_000
MAX_MAIL_BYTES = 15_000_000
"""The largest mail that is loaded; encoding turns three bytes of an attachment into four."""
SEARCH_ATTEMPTS, SEARCH_INTERVAL_S = 6, 10.0
"""How often the mailbox is searched for a mail that may have been sent, and the seconds between searches."""
_UNTHREADED_ID_PREFIX = "denizen.main."
"""Prefix of the Message-IDs of mails that we send outside a thread; answers to them don't start a thread either."""
_UID, _SIZE = re.compile(rb"\bUID (\d+)"), re.compile(rb"\bRFC822\.SIZE (\d+)")
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The library raises these for headers and parts that it can't read."""
_log = logging.getLogger(__name__)


class _Thread(msgspec.Struct, frozen=True):
    """A thread's subject and the ids of its mails so far, for the headers of replies."""

    subject: str = "Your message"
    ids: list[str] = []


class EmailChannel:
    """A mailbox. Each thread is a chat, `ADDRESS/ID`; mail outside threads belongs to the chat `ADDRESS`."""

    limits = ChannelLimits(
        markup="html", media_in=MAX_MEDIA_BYTES, media_out=MAX_MEDIA_BYTES, threads=True, groups=True, reconciles=True
    )

    def __init__(self, settings: EmailSettings, home: ChannelHome) -> None:
        self.name = home.name
        self._settings = settings
        self._address = settings.address.lower()
        self._home = home
        self._threads = home.folder / "threads"
        self.position = home.folder / "position.json"

    # Receiving

    async def receive(self, accept: Accept) -> None:
        async def read(client: "IMAP4", now: MailboxPosition) -> None:
            position = self._first_position(now)
            while True:
                found = await client.uid("fetch", f"{position.uid + 1}:*", "(UID RFC822.SIZE)")
                lines = [(_UID.search(line), _SIZE.search(line)) for line in map(bytes, found.lines)]
                sizes = {int(uid[1]): int(size[1]) for uid, size in lines if uid and size}
                arrived = sorted(
                    uid for uid in sizes if uid > position.uid
                )  # `*` matches the last mail, even an old one
                for uid in arrived:
                    if message := await self._message(client, uid):
                        await accept(message, partial(self._fetch, client, uid, sizes[uid]))
                    position = MailboxPosition(position.validity, uid)
                    await asyncio.to_thread(write_state, self.position, position)
                if not arrived:  # otherwise more may have arrived: the library drops notices during a FETCH
                    await wait_for_arrival(client)

        await with_mailbox(self._settings, read)

    def _first_position(self, now: MailboxPosition) -> MailboxPosition:
        """The position to read from: after the last accepted mail, or, the first time, after all existing mail."""
        kept = read_state(self.position, MailboxPosition)
        if kept and kept.validity == now.validity:
            return kept
        if kept:
            _log.warning("Mailbox %s was recreated; mail already in it isn't answered.", self._settings.mailbox)
        write_state(self.position, now)
        return now

    async def _message(self, client: "IMAP4", uid: int) -> InboundMessage | None:
        """The message of a mail, without its text and files; None if the mail mustn't be answered."""
        try:
            return self._message_of(await _load(client, uid, "BODY.PEEK[HEADER]"), uid)
        except _MALFORMED as error:  # otherwise it would be fetched forever, and block later mail
            _log.warning("%s: mail %d can't be read, and isn't answered: %r", self.name, uid, error)
            return None

    def _message_of(self, mail: EmailMessage, uid: int) -> InboundMessage | None:
        sender = email_message.sender_of(mail)
        if not sender or sender == self._address or email_message.is_automatic(mail):
            return None
        authserv = self._settings.authserv
        if authserv != "none" and not email_message.is_authenticated(mail, authserv):
            _log.warning(
                "%s: a mail from %s isn't answered: %s doesn't say that it is genuine (channels.%s.authserv)",
                *(self.name, sender, authserv, self.name),
            )
            return None
        own = (email_message.ids_of(mail, "Message-ID") or [f"<{uid}@{self._address}>"])[0]
        root = [*email_message.ids_of(mail, "References"), *email_message.ids_of(mail, "In-Reply-To"), own][0]
        thread = "" if root.startswith(f"<{_UNTHREADED_ID_PREFIX}") else root
        chat = f"{sender}/{thread}" if thread else sender
        subject = str(mail.get("Subject", "")).strip()
        self._remember(chat, subject, own)
        return InboundMessage(
            self.name,
            chat,
            sender,
            f"{subject}\n" if root == own and subject else "",
            str(SessionKey(chat, channel=self.name)),
            id=f"{sender} {own}",
            thread=thread,
            is_group=len({*email_message.addresses_in(mail, "To", "Cc")} - {self._address}) > 0,
            is_addressed=self._address in email_message.addresses_in(mail, "To")
            or any(map(self._is_own, email_message.ids_of(mail, "In-Reply-To"))),
            sent_at=email_message.sent_at(mail),
        )

    async def _fetch(self, client: "IMAP4", uid: int, size: int, message: InboundMessage) -> InboundMessage:
        """The message with the text and the files of its mail, unless the mail is too large to be loaded."""
        if size > MAX_MAIL_BYTES:
            why = f"it has {size:,} bytes, and at most {MAX_MAIL_BYTES:,} are loaded"
            return with_files(message, (), [f"[The text and files of this mail were not received: {why}.]"])
        mail = await _load(client, uid, "BODY.PEEK[]")
        notes, media = list[str](), list[str]()
        try:
            text = await email_message.text_of(mail)
            for number, (name, content) in enumerate(email_message.attachments_of(mail)):
                if len(content) > MAX_MEDIA_BYTES:
                    notes.append(not_received(name, too_large(self.limits)))
                    continue
                media.append(await save_media(self._home, f"{uid}-{number}", name, content))
        except _MALFORMED as error:  # otherwise it would be fetched forever, and block later mail
            text = f"[The text and files of this mail can't be read: {error!r}]"
        return with_files(message, media, [text, *notes])

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        try:
            if sum(Path(path).stat().st_size for path in message.media) > MAX_MEDIA_BYTES:
                return Sent("failed", f"The attachments exceed {MAX_MEDIA_BYTES:,} bytes.")
            mail = await asyncio.to_thread(self._build_mail, message)
        except OSError as error:
            return Sent("failed", f"An attachment can't be read: {error}")
        except ValueError as error:
            return Sent("failed", f"{message.chat!r} isn't the address of a mail: {error}")
        own = str(mail["Message-ID"])
        if message.may_be_sent and await self._is_in_own_mailbox(own):
            return Sent(native_id=own)
        sent = await self._submit(mail)
        if sent.state == "sent":
            self._remember(message.chat, str(mail["Subject"]), own)
        return sent

    def _build_mail(self, message: OutboundMessage) -> EmailMessage:
        """The mail for a message. Raises OSError if an attachment can't be read."""
        from markdown_it import MarkdownIt

        address, _, root = message.chat.partition("/")
        thread = read_state(self._thread_file(message.chat), _Thread) or _Thread(ids=[root] if root else [])
        mail = EmailMessage(policy=policy.SMTP)
        mail["From"] = formataddr((self._settings.display_name, self._settings.address))
        mail["To"] = address
        is_reply = bool(thread.ids) and (root or message.in_reply_to)
        subject = (
            thread.subject if is_reply else message.content.strip().partition("\n")[0].strip("#* ")[:80] or "Hello"
        )
        subject = " ".join(subject.split())  # a header is one line
        mail["Subject"] = f"Re: {subject}" if is_reply and not subject.lower().startswith("re:") else subject
        mail["Date"] = format_datetime(self._home.clock.now())
        domain = self._address.rpartition("@")[2]
        mail["Message-ID"] = f"<{'' if root else _UNTHREADED_ID_PREFIX}{delivery_key(message)}@{domain}>"
        if is_reply:
            mail["In-Reply-To"] = thread.ids[-1]
            mail["References"] = " ".join(dict.fromkeys((root or thread.ids[0], *thread.ids[-10:])))
        mail["Auto-Submitted"] = "auto-replied" if is_reply else "auto-generated"
        mail.set_content(message.content)
        mail.add_alternative(MarkdownIt("commonmark", {"html": False}).enable("table").render(message.content), "html")
        for path in map(Path, message.media):
            data = path.read_bytes()
            mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=path.name)
        return mail

    async def _submit(self, mail: EmailMessage) -> Sent:
        """Submit the mail, with a copy to the own mailbox, which proves delivery if the server's answer is lost."""
        from aiosmtplib import SMTPAuthenticationError, SMTPException, SMTPResponseException

        client, own = smtp_client(self._settings), str(mail["Message-ID"])
        is_handed_over = False
        try:
            async with client:
                await client.mail(self._settings.address)
                await client.rcpt(str(mail["To"]))
                await client.rcpt(self._settings.address)
                is_handed_over = True
                await client.data(mail.as_bytes())
                with suppress(SMTPException, OSError):  # it was sent
                    await client.quit()
                return Sent(native_id=own)
        except SMTPAuthenticationError as error:
            return Sent(
                "later", f"{self._settings.smtp} refuses the password: {error.message}", retry_after=REFUSED_RETRY_S
            )
        except SMTPResponseException as error:
            state = "later" if 400 <= error.code < 500 else "failed"
            return Sent(state, f"{error.code} {error.message}", retry_after=REFUSED_RETRY_S)
        except (SMTPException, OSError) as error:
            state = "unknown" if is_handed_over else "later"
            return Sent(state, f"{self._settings.smtp}: {error}", retry_after=REFUSED_RETRY_S)

    async def _is_in_own_mailbox(self, message_id: str) -> bool:
        """Whether a mail appears in the own mailbox within a minute. Raises connection errors."""

        async def look(client: "IMAP4", _last: MailboxPosition) -> bool:
            for _ in range(SEARCH_ATTEMPTS):
                found = await client.uid_search(f'HEADER Message-ID "{message_id}"', charset=None)
                if found.lines and bytes(found.lines[0]).split():
                    return True
                await self._home.clock.sleep(SEARCH_INTERVAL_S)
            return False

        return await with_mailbox(self._settings, look)

    # Threads

    def _is_own(self, message_id: str) -> bool:
        """Whether it is the Message-ID of a mail that we sent."""
        name, _, domain = message_id.strip("<>").rpartition("@")
        is_ours = re.fullmatch(rf"({re.escape(_UNTHREADED_ID_PREFIX)})?[0-9a-f]{{32}}", name)
        return bool(is_ours) and domain == self._address.rpartition("@")[2]

    def _thread_file(self, chat: str) -> Path:
        return self._threads / f"{hashlib.sha256(chat.encode()).hexdigest()[:32]}.json"

    def _remember(self, chat: str, subject: str, message_id: str) -> None:
        """Store what the next mail in a chat needs."""
        known = read_state(self._thread_file(chat), _Thread) or _Thread(subject or _Thread().subject)
        ids = [*(each for each in known.ids if each != message_id), message_id]
        write_state(self._thread_file(chat), _Thread(known.subject, ids[-20:]), sync=False)


async def _load(client: "IMAP4", uid: int, part: str) -> EmailMessage:
    """A part of a mail; empty if the mail was deleted meanwhile."""
    fetched = await client.uid("fetch", str(uid), f"(UID {part})")
    data = next((bytes(line) for line in fetched.lines if isinstance(line, bytearray)), b"")
    return message_from_bytes(data, policy=policy.default)


def _account(settings: EmailSettings) -> str:
    return f"{settings.address.lower()} {settings.imap}"


KIND = ChannelKind(
    settings=EmailSettings,
    connect=EmailChannel,
    check=check_servers,
    account=_account,
    steps="Create a mailbox that only the agent uses, with IMAP and SMTP. If its provider requires an app password, "
    "create one. Then send the mailbox a mail, view the mail's source, and use the first word of the topmost "
    "Authentication-Results header as authserv.",
)
