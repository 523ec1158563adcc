"""Discord: a bot, on discord.py.

Discord has no acknowledgements. So the id of each chat's last accepted message is stored in the channel's folder. After
each new session with Discord's gateway, later messages are fetched before new ones are accepted; on a resumed session,
Discord delivers missed messages again. A message whose `accept` failed is therefore received again, with the same id.

The nonce is derived from the message's id. If Discord has seen a nonce in the last few minutes, it returns that message
instead of posting another. For older uncertain messages the chat's history is searched.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
from msgspec.structs import replace

from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, ChannelSettings, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.runtime.cancellation import run_until_first
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import outgoing
from denizen.worlds.chat.delivery.channels.media import not_received, save_media, too_large, with_files
from denizen.worlds.chat.delivery.state_files import read_state, write_state

if TYPE_CHECKING:
    import discord

    _Event = discord.Message | discord.Interaction | str

SEND_TIMEOUT_S = 90.0
MAX_LIBRARY_WAIT_S = 30.0
"""The library waits out shorter flood limits. It doesn't accept a lower value."""
MAX_BUTTON_CHARS = 100
MAX_STRANGERS = 100
"""How many direct chats without an accepted message are remembered."""
MAX_SEARCHED_MESSAGES = 1000
"""How many of a chat's latest messages are searched for one that may be sent."""
_PORTAL = "https://discord.com/developers/applications"
_Connector = Callable[[], aiohttp.BaseConnector | None]


class DiscordSettings(ChannelSettings, frozen=True, kw_only=True):
    """A Discord bot."""

    token: str
    """The bot's token."""


class DiscordChat(msgspec.Struct):
    """The last message read in a chat, its server (0: a direct chat), and whether a message of it was ever accepted."""

    last: int
    guild: int
    is_answered: bool = True


class DiscordProgress(msgspec.Struct):
    """The progress in each chat. In other chats, messages from before `since` (the first connection) are ignored."""

    since: int = 0
    chats: dict[int, DiscordChat] = {}


class DiscordChannel:
    """A bot in direct chats and servers. The chat is the id of a channel or thread."""

    limits = ChannelLimits(
        length=2000,
        markup="Discord",
        media_in=25_000_000,
        media_out=10_000_000,
        live="edit",
        live_interval=1.5,
        buttons=True,
        threads=True,
        groups=True,
        reconciles=True,
    )

    def __init__(self, settings: DiscordSettings, home: ChannelHome, connector: _Connector = lambda: None) -> None:
        self.name = home.name
        self._settings = settings
        self._home = home
        self._connector = connector
        self._path = home.folder / "read.json"
        self._progress = read_state(self._path, DiscordProgress) or DiscordProgress()
        self._client: discord.Client | None = None

    # Receiving

    async def receive(self, accept: Accept) -> None:
        import discord

        inbox: asyncio.Queue[_Event] = asyncio.Queue()
        client = _new_client(self._connector)

        @client.event
        async def on_connect() -> None:  # only for new sessions, not resumed ones
            inbox.put_nowait("connected")

        @client.event
        async def on_ready() -> None:
            inbox.put_nowait("ready")

        @client.event
        async def on_message(message: discord.Message) -> None:
            inbox.put_nowait(message)

        @client.event
        async def on_raw_message_edit(event: discord.RawMessageUpdateEvent) -> None:
            if event.message.edited_at:  # otherwise Discord added a link preview
                inbox.put_nowait(event.message)

        @client.event
        async def on_interaction(interaction: discord.Interaction) -> None:
            inbox.put_nowait(interaction)

        try:
            await client.login(self._settings.token)
            self._client = client
            await run_until_first(client.connect(), self._accept_all(client, inbox, accept))
        except (discord.LoginFailure, discord.PrivilegedIntentsRequired, discord.ConnectionClosed) as error:
            raise _connection_error(error) from error
        finally:
            self._client = None
            delattr(client, "on_ready")  # a library task outlives the client and would call it
            await client.close()

    async def _accept_all(self, client: "discord.Client", inbox: "asyncio.Queue[_Event]", accept: Accept) -> None:
        """Accept events in order. Those that arrive before a new session is ready wait for the missed messages."""
        import discord

        waiting = deque[discord.Message | discord.Interaction]()
        is_ready = False
        while True:
            event = await inbox.get()
            if not isinstance(event, str):
                waiting.append(event)
            elif is_ready := event == "ready":
                await self._accept_missed(client, accept)
            while is_ready and waiting:
                each = waiting.popleft()
                if isinstance(each, discord.Interaction):
                    await self._accept_press(each, accept)
                else:
                    await self._accept_message(client, each, accept)

    async def _accept_missed(self, client: "discord.Client", accept: Accept) -> None:
        """Fetch and accept the messages since the last accepted one in each chat."""
        import discord

        progress = self._progress
        if not progress.since:
            progress.since = discord.utils.time_snowflake(self._home.clock.now())
            await self._save_progress()
        channels = [each for guild in client.guilds for each in (*guild.text_channels, *guild.threads)]
        unread = {each.id: each.guild.id for each in channels if (each.last_message_id or 0) > progress.since}
        for key, guild in (unread | {key: chat.guild for key, chat in progress.chats.items()}).items():
            chat = client.get_channel(key) or client.get_partial_messageable(key, guild_id=guild or None)
            after = discord.Object(progress.chats[key].last if key in progress.chats else progress.since)
            if isinstance(chat, discord.abc.Messageable):
                with contextlib.suppress(discord.Forbidden, discord.NotFound):
                    async for message in chat.history(limit=None, after=after, oldest_first=True):
                        await self._accept_message(client, message, accept)

    async def _accept_message(self, client: "discord.Client", message: "discord.Message", accept: Accept) -> None:
        import discord

        guild, key = message.guild, message.channel.id
        guild_id = guild.id if guild else getattr(message.channel, "guild_id", None) or 0
        chat = self._progress.chats.get(key)
        is_edit = chat is not None and message.id <= chat.last
        if is_edit and not message.edited_at:
            return
        if not chat:
            chat = self._progress.chats[key] = DiscordChat(message.id - 1, guild_id, is_answered=False)
            await self._save_progress()  # Discord doesn't list direct chats
        is_text = message.type in {discord.MessageType.default, discord.MessageType.reply}
        if is_text and client.user and message.author.id != client.user.id:
            me, replied = client.user.id, message.reference and message.reference.resolved
            is_answer = isinstance(replied, discord.Message) and replied.author.id == me
            inbound = self._new_message(
                message.channel,
                message.author,
                message.content,
                is_group=bool(guild_id),
                metadata={"voice": True} if message.flags.voice else {},
                id=f"{message.id}:{message.edited_at:%Y%m%dT%H%M%S%f}" if is_edit else str(message.id),
                thread=str(key) if isinstance(message.channel, discord.Thread) else "",
                is_addressed=not guild_id or is_answer or me in {each.id for each in message.mentions},
                is_bot=message.author.bot,
                edit_of=str(message.id) if is_edit else "",
                sent_at=message.edited_at if is_edit else message.created_at,
            )
            fetch = partial(self._fetch, message.attachments) if message.attachments else None
            chat.is_answered |= await accept(inbound, fetch)
        chat.last = max(chat.last, message.id)
        await self._save_progress()

    async def _save_progress(self) -> None:
        """Store the progress; only the newest direct chats with strangers are kept."""
        chats = self._progress.chats
        strangers = sorted((chat.last, key) for key, chat in chats.items() if not (chat.guild or chat.is_answered))
        for _, key in strangers[:-MAX_STRANGERS]:
            del chats[key]
        await asyncio.to_thread(write_state, self._path, self._progress)

    def _new_message(
        self, channel: Any, sender: "discord.abc.User", content: str, *, is_group: bool, **rest: Any
    ) -> InboundMessage:
        import discord

        chat = str(channel.id)
        key = str(SessionKey(chat, "group" if is_group else "direct", self.name))
        room = str(channel.parent_id) if isinstance(channel, discord.Thread) else ""
        return InboundMessage(self.name, chat, str(sender.id), content, key, room=room, is_group=is_group, **rest)

    async def _fetch(self, attachments: "list[discord.Attachment]", message: InboundMessage) -> InboundMessage:
        import discord

        notes, media = list[str](), list[str]()
        for each in attachments:
            if each.size > self.limits.media_in:
                notes.append(not_received(each.filename, too_large(self.limits)))
                continue
            try:
                media.append(await save_media(self._home, str(each.id), each.filename, await each.read()))
            except discord.HTTPException as error:
                notes.append(not_received(each.filename, f"Discord answered {error.status}"))
        return with_files(message, media, notes)

    async def _accept_press(self, press: "discord.Interaction", accept: Accept) -> None:
        """Accept a pressed button, and confirm it within Discord's limit of 3 seconds."""
        import discord

        if press.type is not discord.InteractionType.component or not press.data or not press.channel:
            return
        text, is_group = str(press.data.get("custom_id", "")), bool(press.guild_id)
        message = self._new_message(
            press.channel, press.user, text, is_group=is_group, id=f"press-{press.id}", sent_at=press.created_at
        )
        await accept(message)
        with contextlib.suppress(discord.HTTPException):  # too late: they see an error, but the press was accepted
            await press.response.defer()

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        import discord

        if refusal := outgoing.send_refusal(message, self.limits):
            return Sent("failed", refusal)
        if not message.chat.isdecimal():
            return Sent("failed", f"{message.chat!r} isn't the id of a Discord channel, which is a number")
        if not self._client:
            return Sent("later", "the bot isn't connected", retry_after=outgoing.CONNECT_RETRY_S)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                if message.may_be_sent and not message.edits:
                    found = await _find_sent(self._client, message)
                    if found is None:
                        return Sent("unknown", "the chat's history doesn't say whether it was sent")
                    if found:
                        return Sent(native_id=found)
                return Sent(native_id=await self._deliver(self._client, message))
        except discord.RateLimited as error:
            return Sent("later", "Discord's flood limit", retry_after=error.retry_after)
        except discord.HTTPException as error:
            if error.status in {401, 429}:
                return Sent("later", f"Discord refused it: {error}", retry_after=outgoing.REFUSED_RETRY_S)
            if error.status >= 500:
                return Sent("unknown", f"Discord answered {error.status}")
            if message.edits:
                return await self.send(replace(message, edits=""))
            return Sent("failed", f"Discord refused it: {error}")
        except aiohttp.ClientConnectorError as error:
            return Sent("later", f"Discord can't be reached: {error}", retry_after=outgoing.CONNECT_RETRY_S)
        except (aiohttp.ClientError, OSError) as error:
            return Sent("unknown", f"the answer was lost: {error}")

    async def _deliver(self, client: "discord.Client", message: OutboundMessage) -> str:
        """Send or edit a message, and return its id. Raises the library's errors."""
        import discord

        chat = client.get_partial_messageable(int(message.chat))
        view = None
        if message.choices and all(len(each.text) <= MAX_BUTTON_CHARS for each in message.choices):
            view = discord.ui.View(timeout=None)
            for choice in message.choices:
                view.add_item(discord.ui.Button(label=choice.label[:80], custom_id=choice.text))
            view.stop()  # presses arrive as events
        files = [discord.File(path) for path in message.media]
        if message.edits:
            draft = chat.get_partial_message(int(message.edits))
            await draft.edit(content=message.content, attachments=files, view=view)
            return message.edits
        buttons = view or discord.utils.MISSING
        sent = await chat.send(message.content or None, files=files, view=buttons, nonce=_nonce(message))
        return str(sent.id)

    async def show(self, chat: str, draft: str, text: str) -> str:
        import discord

        if not self._client:
            raise ConnectionError("The bot isn't connected.")
        with outgoing.rate_limited_if(lambda error: isinstance(error, discord.RateLimited)):
            return await self._deliver(self._client, OutboundMessage(self.name, chat, text, edits=draft))


def _nonce(message: OutboundMessage) -> str:
    return outgoing.delivery_key(message)[:24]


async def _find_sent(client: "discord.Client", message: OutboundMessage) -> str | None:
    """The id of this message if its chat has it; empty if not; None if the bot can't look back far enough to know."""
    import discord

    answered, seen = message.in_reply_to.partition(":")[0], 0
    after = discord.Object(answered) if answered.isdigit() else outgoing.earliest_arrival(message)
    chat = client.get_partial_messageable(int(message.chat))
    try:
        async for each in chat.history(limit=MAX_SEARCHED_MESSAGES, after=after, oldest_first=False):
            is_same = str(each.nonce) == _nonce(message) if each.nonce else each.content == message.content
            if client.user and each.author.id == client.user.id and is_same:
                return str(each.id)
            seen += 1
    except discord.Forbidden:
        return None
    return "" if seen < MAX_SEARCHED_MESSAGES else None


def _new_client(connector: _Connector) -> "discord.Client":
    """A client that caches no messages or members, and raises RateLimited instead of waiting long."""
    import discord

    intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
    return discord.Client(
        intents=intents,
        connector=connector(),
        max_messages=None,
        member_cache_flags=discord.MemberCacheFlags.none(),
        chunk_guilds_at_startup=False,
        guild_ready_timeout=1.0,
        allowed_mentions=discord.AllowedMentions(everyone=False, roles=False),
        max_ratelimit_timeout=MAX_LIBRARY_WAIT_S,
    )


def _connection_error(error: Exception) -> Exception:
    import discord

    if isinstance(error, discord.PrivilegedIntentsRequired):
        return ChannelRefused(f"Turn on the bot's Message Content Intent: {_PORTAL}, Bot, Privileged Gateway Intents.")
    if isinstance(error, discord.ConnectionClosed) and error.code != 4004:
        return ConnectionError(f"Discord ended the connection: {error}")
    return ChannelRefused(f"Discord refuses the token: it is wrong or was reset. Copy the new one: {_PORTAL}, Bot.")


async def check(settings: DiscordSettings, connector: _Connector = lambda: None) -> str:
    """Log in, and return the bot's name. Raises ChannelRefused, OSError."""
    import discord

    try:
        async with _new_client(connector) as client:
            await client.login(settings.token)
            flags = client.application.flags if client.application else None
            if not flags or not (flags.gateway_message_content or flags.gateway_message_content_limited):
                raise _connection_error(discord.PrivilegedIntentsRequired(None))
            return str(client.user)
    except discord.LoginFailure as error:
        raise _connection_error(error) from error
    except (discord.HTTPException, aiohttp.ClientError) as error:
        raise ConnectionError(f"Discord can't be reached: {error}") from error


def _account(settings: DiscordSettings) -> str:
    return settings.token.partition(".")[0]  # the bot's id; what follows is the secret


KIND = ChannelKind(
    settings=DiscordSettings,
    connect=DiscordChannel,
    check=check,
    account=_account,
    steps=f"Create an application at {_PORTAL}. Under Bot, reset and copy the token, and turn on the Message Content "
    "Intent. Under OAuth2, URL Generator, choose `bot` with Send Messages, Read Message History and Attach Files, and "
    "open the URL to invite the bot to a server; then write to it.",
)
