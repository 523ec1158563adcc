"""Telegram: a bot that long-polls the Bot API (https://core.telegram.org/bots/api)."""

import itertools
import logging
import mimetypes
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from denizen.errors import ConfigError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, ChannelSettings, Sent
from denizen.ports.queue import AnswerChoice, InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import outgoing
from denizen.worlds.chat.delivery.channels.media import Received, not_received, save_media, too_large, with_files

if TYPE_CHECKING:
    from telegram import Bot, CallbackQuery, Chat, InlineKeyboardMarkup, Message, Update, User
    from telegram.request import HTTPXRequest

_POLL_TIMEOUT_S = 50
_READ_TIMEOUT_S = 30.0
_UPDATE_TYPES = ["message", "edited_message", "callback_query"]
_MAX_CAPTION_UTF16 = 1024  # UTF-16 units
_PHOTOS = {"image/jpeg", "image/png", "image/webp"}
_MAX_PHOTO_BYTES = 10_000_000
_MAX_BUTTON_BYTES = 64
_DRAFT_PREFIX = "draft:"


class TelegramSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Telegram bot."""

    token: str
    """The bot's token, from @BotFather."""
    base_url: str = "https://api.telegram.org"
    """The Bot API server: Telegram's, or your own."""


class TelegramChannel:
    """A bot, its private chats, groups and topics. A chat is `ID`, or `ID/THREAD` for a topic."""

    # Only private chats have drafts, so `live` is `edit`; drafts have ids that no message has.
    limits = ChannelLimits(
        length=4096,
        unit="utf16",
        markup="MarkdownV2",
        media_in=20_000_000,
        media_out=50_000_000,
        live="edit",
        live_interval=3.0,  # groups allow 20 messages a minute
        buttons=True,
        threads=True,
        groups=True,
    )

    def __init__(self, home: ChannelHome, bot: "Bot", polling: "HTTPXRequest") -> None:
        self.name = home.name
        self._home = home
        self._bot = bot
        self._polling = polling
        self._offset: int | None = None
        self._draft_ids = itertools.count(int(home.clock.now().timestamp()))
        self._has_drafts = True

    # Receiving

    async def receive(self, accept: Accept) -> None:
        from telegram.error import Conflict, InvalidToken

        await self._polling.initialize()
        try:
            me = await self._bot.get_me()
            while True:
                for update in await self._bot.get_updates(
                    self._offset, timeout=_POLL_TIMEOUT_S, allowed_updates=_UPDATE_TYPES
                ):
                    if update.callback_query:
                        await self._accept_press(update.callback_query, accept)
                    elif heard := self._read(update, me):
                        await accept(*heard)
                    self._offset = update.update_id + 1  # confirms this update with the next request
        except InvalidToken as error:
            raise _token_refused(f"[channels.{self.name}]") from error
        except Conflict as error:
            advice = "stop the other program that uses this bot, or use a different bot"
            raise ChannelRefused(f"Telegram refuses [channels.{self.name}] ({error}): {advice}.") from error
        finally:
            await self._polling.shutdown()

    def _read(self, update: "Update", me: "User") -> Received | None:
        """The message of an update, and how to fetch its file; None if the bot wrote it, or if it has neither."""
        message = update.message or update.edited_message
        if not message or not message.from_user or message.from_user.id == me.id:
            return None
        is_addressed, text = _addressed_text(message, me)
        photo = message.photo[-1] if message.photo else None
        attached = message.voice or message.audio or message.video or message.video_note or message.document or photo
        identifier = f"{message.chat.id}:{message.message_id}"
        topic = message.message_thread_id if message.is_topic_message else None
        heard = msgspec.structs.replace(
            self._new_message(message.from_user, message.chat, topic, text, identifier),
            is_addressed=is_addressed,
            sent_at=message.edit_date or message.date,
        )
        if update.edited_message:
            heard = msgspec.structs.replace(heard, id=f"{identifier}:{update.update_id}", edit_of=identifier)
        if attached:
            return heard, partial(self._fetch, attached)
        return (heard, None) if heard.content else None

    def _new_message(
        self, sender: "User", chat: "Chat", topic: int | None, content: str, identifier: str
    ) -> InboundMessage:
        is_group, place = chat.type != "private", f"{chat.id}/{topic}" if topic else str(chat.id)
        return InboundMessage(
            self.name,
            place,
            str(sender.id),
            content,
            str(SessionKey(place, kind="group" if is_group else "direct", channel=self.name)),
            metadata={"sender_name": sender.full_name},
            id=identifier,
            thread=str(topic or ""),
            is_group=is_group,
            is_bot=sender.is_bot,
        )

    async def _fetch(self, attached: Any, message: InboundMessage) -> InboundMessage:
        from telegram.error import BadRequest, InvalidToken

        name = getattr(attached, "file_name", None) or ""
        complaint = not_received(name or "without a name", too_large(self.limits))
        if (attached.file_size or 0) > self.limits.media_in:
            return with_files(message, (), [complaint])
        try:
            file = await attached.get_file()
        except BadRequest as error:
            if "too big" not in error.message:  # now and later
                complaint = not_received(name or "without a name", f"Telegram answered {error.message}")
            return with_files(message, (), [complaint])
        try:
            data = await file.download_as_bytearray()
        except InvalidToken:  # the library's error for every 404; get_file has shown that the token is valid
            return with_files(message, (), [not_received(name or "without a name", "Telegram lost the file")])
        name = name or Path(file.file_path or "").name
        identifier = f"{message.id.replace(':', '.')}.{file.file_unique_id}"
        return with_files(message, [await save_media(self._home, identifier, name, bytes(data))], ())

    async def _accept_press(self, query: "CallbackQuery", accept: Accept) -> None:
        """Accept a pressed button as a message from the person who pressed it, and end its progress indicator."""
        from telegram import Message
        from telegram.error import BadRequest

        if (asked := query.message) and query.data:
            topic = asked.message_thread_id if isinstance(asked, Message) and asked.is_topic_message else None
            await accept(self._new_message(query.from_user, asked.chat, topic, query.data, f"press:{query.id}"))
        with suppress(BadRequest):  # the press is too old to be answered
            await query.answer()

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        if refusal := outgoing.send_refusal(message, self.limits):
            return Sent("failed", refusal)
        return await _outcome_of(self._deliver(message))

    async def _deliver(self, message: OutboundMessage) -> Sent:
        preview = "" if message.edits.startswith(_DRAFT_PREFIX) else message.edits
        if message.may_be_sent and not preview:
            return Sent("unknown", "Telegram can't tell whether an earlier attempt arrived.")
        if message.media and not preview and self.limits.measure(message.content) <= _MAX_CAPTION_UTF16:
            return await self._send_files(message, message.content)
        sent = await self._edit(message, preview) if preview else await self._send_text(message)
        if sent.state != "sent" or not message.media:
            return sent
        # The text is already sent, so the message can't be retried "later": wait here to send the files.
        while (files := await _outcome_of(self._send_files(message, ""))).state == "later":
            await self._home.clock.sleep(files.retry_after)
        return sent if files.state == "sent" else Sent(files.state, f"The text was sent. The files: {files.reason}")

    async def _send_text(self, message: OutboundMessage) -> Sent:
        place, buttons = _target_of(message.chat), _buttons(message.choices)
        sent = await _send_markdown(self._bot.send_message, "text", message.content, **place, reply_markup=buttons)
        return Sent(native_id=str(sent.message_id))

    async def _edit(self, message: OutboundMessage, preview: str) -> Sent:
        """Turn a preview into the message, or send a new one if Telegram refuses the edit. Edits may be repeated."""
        from telegram.error import BadRequest

        place = {"chat_id": _target_of(message.chat)["chat_id"], "message_id": int(preview)}
        buttons = _buttons(message.choices)
        try:
            await _send_markdown(self._bot.edit_message_text, "text", message.content, **place, reply_markup=buttons)
        except BadRequest as error:
            if "not modified" not in error.message:
                if message.may_be_sent:
                    return Sent(
                        "unknown",
                        f"The preview can't be edited ({error}); an earlier attempt may have sent a new message.",
                    )
                return await self._send_text(message)
        return Sent(native_id=preview)

    async def _send_files(self, message: OutboundMessage, caption: str) -> Sent:
        """Send a single file as photo, voice or document, or several as an album of documents."""
        from telegram import InputMediaDocument

        paths, place = [Path(each) for each in message.media], _target_of(message.chat)
        if len(paths) > 1:
            album = [InputMediaDocument(path.read_bytes(), filename=path.name) for path in paths]
            sent = (await _send_markdown(self._bot.send_media_group, "caption", caption, **place, media=album))[0]
        else:
            kind = _media_kind(paths[0])
            place |= {kind: paths[0], "reply_markup": _buttons(message.choices)}
            sent = await _send_markdown(getattr(self._bot, f"send_{kind}"), "caption", caption, **place)
        return Sent(native_id=str(sent.message_id))

    async def show(self, chat: str, draft: str, text: str) -> str:
        from telegram.error import BadRequest, InvalidToken, RetryAfter

        place = _target_of(chat)
        if not draft and self._has_drafts and place["chat_id"].isdigit():  # the ids of groups are negative
            draft = f"{_DRAFT_PREFIX}{next(self._draft_ids)}"
        with outgoing.rate_limited_if(lambda error: isinstance(error, RetryAfter)):
            if draft.startswith(_DRAFT_PREFIX):
                try:
                    await self._bot.send_message_draft(
                        draft_id=int(draft.removeprefix(_DRAFT_PREFIX)), text=text, **place
                    )
                    return draft
                except (BadRequest, InvalidToken):  # older Bot API servers lack the method
                    self._has_drafts, draft = False, ""
            if draft:
                await self._bot.edit_message_text(text, place["chat_id"], int(draft))
                return draft
            return str((await self._bot.send_message(text=text, **place)).message_id)


async def _send_markdown(method: Callable[..., Awaitable[Any]], name: str, text: str, **arguments: Any) -> Any:
    """Call a bot method with `text` as MarkdownV2 in the argument `name`, or as plain text if Telegram rejects that."""
    from telegram.error import BadRequest

    from denizen.worlds.chat.delivery.channels.markdown_v2 import markdown_v2

    if text:
        try:
            return await method(**arguments, **{name: markdown_v2(text)}, parse_mode="MarkdownV2")
        except BadRequest as error:
            if "not modified" in error.message:
                raise
    return await method(**arguments, **{name: text})


async def _outcome_of(sending: Awaitable[Sent]) -> Sent:
    """Send, and translate request errors into an outcome."""
    import httpx
    from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

    try:
        return await sending
    except RetryAfter as error:
        wait = error.retry_after
        return Sent("later", str(error), retry_after=wait.total_seconds() if isinstance(wait, timedelta) else wait)
    except InvalidToken as error:
        return Sent("later", f"Telegram refuses the token: {error}", retry_after=outgoing.REFUSED_RETRY_S)
    except (BadRequest, ChatMigrated, Forbidden) as error:
        return Sent("failed", f"Telegram refuses it: {error}")
    except TelegramError as error:
        if isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            return Sent("later", f"Telegram can't be reached: {error}", retry_after=outgoing.CONNECT_RETRY_S)
        return Sent("unknown", f"Telegram's answer was lost: {error}")


def _target_of(chat: str) -> dict[str, Any]:
    room, _, thread = chat.partition("/")
    return {"chat_id": room, "message_thread_id": int(thread) if thread else None}


def _buttons(choices: Sequence[AnswerChoice]) -> "InlineKeyboardMarkup | None":
    """A row of buttons; None without choices, or if one is too long (the text also says how to answer)."""
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup

    if not choices or any(len(choice.text.encode()) > _MAX_BUTTON_BYTES for choice in choices):
        return None
    return InlineKeyboardMarkup([[InlineKeyboardButton(each.label, callback_data=each.text) for each in choices]])


def _media_kind(path: Path) -> str:
    if mimetypes.guess_type(path.name)[0] in _PHOTOS and path.stat().st_size <= _MAX_PHOTO_BYTES:
        return "photo"
    return "voice" if path.suffix in {".oga", ".ogg"} else "document"


def _addressed_text(message: "Message", me: "User") -> tuple[bool, str]:
    """Whether a message addresses the bot, and its text without a leading bot name."""
    text = message.text or message.caption or (message.sticker.emoji if message.sticker else "") or ""
    name, replied = f"@{me.username}".casefold(), message.reply_to_message
    # Every message of a topic is a reply to the one that created it.
    is_reply = replied and replied.from_user == me and not replied.forum_topic_created
    is_addressed = message.chat.type == "private" or bool(is_reply)
    for entity, words in (message.parse_entities() | message.parse_caption_entities()).items():
        is_command = entity.type == "bot_command" and words.casefold().endswith(name)
        is_addressed |= is_command or words.casefold() == name or entity.user == me
    bare = re.sub(rf"^\s*(/\w+)?{re.escape(name)}\b[,:]?", r"\1", text, count=1, flags=re.IGNORECASE).strip()
    return is_addressed, bare or text


def _token_refused(account: str) -> ChannelRefused:
    return ChannelRefused(f"Telegram refuses the token of {account}: get the current one from @BotFather.")


def _bot(settings: TelegramSettings) -> "tuple[Bot, HTTPXRequest]":
    """The bot, and its connection for polling."""
    os.environ["PTB_TIMEDELTA"] = "1"  # the library's opt-in to its next version; it warns at every flood limit else
    import httpx
    from telegram import Bot
    from telegram.request import HTTPXRequest

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line for each request
    # All other requests open a connection: one that was kept may be closed just when a message is sent over it, and
    # nobody would know that message's fate.
    verify = httpx.create_ssl_context()
    polling = HTTPXRequest(httpx_kwargs={"verify": verify})
    closing = {"verify": verify, "limits": httpx.Limits(max_keepalive_connections=0)}
    request = HTTPXRequest(read_timeout=_READ_TIMEOUT_S, httpx_kwargs=closing)
    url = settings.base_url.rstrip("/")
    return Bot(settings.token, f"{url}/bot", f"{url}/file/bot", request, polling), polling


async def _check(settings: TelegramSettings) -> str:
    from telegram.error import InvalidToken, TelegramError

    try:
        bot, _ = _bot(settings)
        return f"@{(await bot.get_me()).username}"
    except InvalidToken as error:
        raise _token_refused("this bot") from error
    except TelegramError as error:
        raise ConfigError(f"{settings.base_url} doesn't answer as Telegram does: {error}.") from error


def _connect(settings: TelegramSettings, home: ChannelHome) -> TelegramChannel:
    return TelegramChannel(home, *_bot(settings))


def _account(settings: TelegramSettings) -> str:
    return settings.token.partition(":")[0]


KIND = ChannelKind(
    settings=TelegramSettings,
    connect=_connect,
    check=_check,
    account=_account,
    steps="Open https://t.me/BotFather, send /newbot, and copy the token. For groups whose every message the bot "
    "reads, send /setprivacy.",
)
