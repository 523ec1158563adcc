"""Slack: an app in one workspace, over Socket Mode and the Web API (https://docs.slack.dev)."""

import html
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from denizen.errors import ConfigError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelSettings, Sent
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import outgoing, slack_errors
from denizen.worlds.chat.delivery.channels.media import Received, not_received, save_media, too_large, with_files

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

_HEARTBEAT_S = 20.0
_TIMEOUT_S = 120
_MAX_SEARCHED = 1_000  # messages, when looking for a sent one
_MAX_REMEMBERED_CHATS = 1000
_MESSAGE_SUBTYPES = {None, "bot_message", "file_share", "me_message", "message_changed", "thread_broadcast"}
_STREAM_PREFIX = "stream:"
_MARKUP = re.compile(r"<([@#!]?)([^>|]*)(?:\|([^>]*))?>")
_TIMESTAMP = re.compile(r":(\d+\.\d+)")


MANIFEST = {
    "display_information": {"name": "Denizen"},
    "features": {
        "app_home": {"messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
        "bot_user": {"display_name": "Denizen", "always_online": True},
    },
    "oauth_config": {
        "scopes": {
            "bot": [
                "app_mentions:read",
                "channels:history",
                "chat:write",
                "files:read",
                "files:write",
                "groups:history",
                "im:history",
                "mpim:history",
            ]
        }
    },
    "settings": {
        "event_subscriptions": {
            "bot_events": ["app_mention", "message.channels", "message.groups", "message.im", "message.mpim"]
        },
        "interactivity": {"is_enabled": True},
        "socket_mode_enabled": True,
    },
}
"""The permissions of the app, for Slack's dialog."""


class SlackSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Slack app."""

    bot_token: str
    """The bot's token, from "OAuth & Permissions"."""
    app_token: str
    """The app-level token with the scope `connections:write`, from "Basic Information"."""
    base_url: str = "https://slack.com/api/"
    """The Web API."""


class SlackChannel:
    """A Slack app, its direct messages, channels and threads. A chat is `CHANNEL`, or `CHANNEL/TS` for a thread."""

    limits = ChannelLimits(
        length=12_000,
        markup="Markdown",
        media_in=50_000_000,
        media_out=50_000_000,
        live="stream",
        live_interval=1.5,
        buttons=True,
        threads=True,
        groups=True,
        reconciles=True,
    )

    def __init__(self, home: ChannelHome, settings: SlackSettings, web: "AsyncWebClient") -> None:
        self.name = home.name
        self._home = home
        self._settings = settings
        self._web = web
        self._me: dict[str, str] = {}
        self._recipients: dict[str, dict[str, str]] = {}  # by thread: who wrote last, for streams
        self._streamed: dict[str, str] = {}  # by stream: the text shown so far

    # Receiving

    async def receive(self, accept: Accept) -> None:
        async with slack_errors.report_refused_token(f"[channels.{self.name}]"), aiohttp.ClientSession() as http:
            me = await self._web.auth_test()
            self._me = {name: str(me.get(name)) for name in ("user_id", "bot_id")}
            while True:
                opened = await self._web.apps_connections_open(app_token=self._settings.app_token)
                async with http.ws_connect(str(opened["url"]), heartbeat=_HEARTBEAT_S, proxy=self._web.proxy) as socket:
                    async for frame in socket:
                        envelope = frame.json()
                        if envelope["type"] == "disconnect":  # Slack refreshes a connection every few hours
                            break
                        if heard := self._read(envelope):
                            await accept(*heard)
                        if identifier := envelope.get("envelope_id"):
                            await socket.send_json({"envelope_id": identifier})
                    else:
                        raise ConnectionResetError("Slack closed the connection.")

    def _read(self, envelope: dict[str, Any]) -> Received | None:
        """The message of an envelope, and how to fetch its files; None unless a person or another bot wrote one."""
        payload = envelope.get("payload") or {}
        if envelope["type"] == "interactive" and payload.get("type") == "block_actions":
            press = self._message_of_press(payload)
            return (press, None) if press else None
        event = payload.get("event") or {}
        is_edit = event.get("subtype") == "message_changed"
        message = event.get("message", {}) if is_edit else event
        if event.get("type") not in {"app_mention", "message"} or event.get("subtype") not in _MESSAGE_SUBTYPES:
            return None
        sender = message.get("user") or message.get("bot_id") or ""
        if not sender or sender == self._me["user_id"] or message.get("bot_id") == self._me["bot_id"]:
            return None
        if is_edit and not (
            message.get("edited") and message.get("text") != event.get("previous_message", {}).get("text")
        ):
            return None  # a link was unfolded, say
        channel, at = event["channel"], message["ts"]
        thread = message.get("thread_ts", "") if message.get("thread_ts") != at else ""
        mention, text = f"<@{self._me['user_id']}>", message.get("text", "")
        is_answer = message.get("parent_user_id") == self._me["user_id"]
        heard = self._new_message(
            channel,
            thread,
            sender,
            _readable_text(text.removeprefix(mention)),
            id=f"{channel}:{at}:{message['edited']['ts']}" if is_edit else f"{channel}:{at}",
            is_addressed=channel.startswith("D") or mention in text or is_answer,
            is_bot="bot_id" in message,
            edit_of=f"{channel}:{at}" if is_edit else "",
            sent_at=datetime.fromtimestamp(float(message["edited"]["ts"] if is_edit else at), UTC),
        )
        _remember_recent(self._recipients, heard.chat, {"user": sender, "team": payload.get("team_id", "")})
        files = message.get("files")
        return heard, partial(self._fetch, files, at) if files else None

    def _message_of_press(self, payload: dict[str, Any]) -> InboundMessage | None:
        place, [action, *_] = payload["container"], payload["actions"]
        if not action.get("value"):
            return None
        channel, sender = place["channel_id"], payload["user"]["id"]
        thread = payload.get("message", {}).get("thread_ts", "")
        identifier = f"press:{channel}:{place['message_ts']}:{sender}:{action['action_ts']}"
        return self._new_message(channel, thread, sender, action["value"], id=identifier)

    def _new_message(self, channel: str, thread: str, sender: str, content: str, **rest: Any) -> InboundMessage:
        is_group, chat = not channel.startswith("D"), f"{channel}/{thread}" if thread else channel
        key = SessionKey(chat, kind="group" if is_group else "direct", channel=self.name)
        return InboundMessage(self.name, chat, sender, content, str(key), thread=thread, is_group=is_group, **rest)

    async def _fetch(self, files: Sequence[dict[str, Any]], at: str, message: InboundMessage) -> InboundMessage:
        saved, complaints = list[str](), list[str]()
        headers = {"Authorization": f"Bearer {self._settings.bot_token}"}
        for file in files:
            name, url = file.get("name") or file["id"], file.get("url_private_download") or file.get("url_private")
            if not url or file.get("size", 0) > self.limits.media_in:
                complaints.append(not_received(name, too_large(self.limits) if url else "this app may not have it"))
                continue
            if not self._is_slacks(url):  # any host, which must not get the token
                complaints.append(not_received(name, f"it is kept at {url}, not by Slack"))
                continue
            async with aiohttp.request("GET", url, headers=headers, proxy=self._web.proxy) as reply:
                if 400 <= reply.status < 500 and reply.status != 429:  # deleted, say: it would fail again
                    complaints.append(not_received(name, f"Slack answered {reply.status}"))
                    continue
                reply.raise_for_status()
                if reply.content_type == "text/html" and file.get("mimetype") != "text/html":
                    complaints.append(not_received(name, "the app needs the scope files:read"))
                    continue
                saved.append(await save_media(self._home, f"{at}-{file['id']}", name, await reply.read()))
        return with_files(message, saved, complaints)

    def _is_slacks(self, url: str) -> bool:
        """Whether a URL is of Slack, or of the server that is used in its place."""
        found, own = urlsplit(url), urlsplit(self._settings.base_url)
        is_slacks = found.scheme == "https" and (found.hostname or "").endswith((".slack.com", ".slack-gov.com"))
        return is_slacks or (found.scheme, found.netloc) == (own.scheme, own.netloc)

    # Sending

    async def send(self, message: OutboundMessage) -> Sent:
        if refusal := outgoing.send_refusal(message, self.limits):
            return Sent("failed", refusal)
        return await slack_errors.outcome_of(self._deliver(message))

    async def _deliver(self, message: OutboundMessage) -> Sent:
        key = outgoing.delivery_key(message)
        found = await slack_errors.none_if_refused(self._find(message, key)) if message.may_be_sent else ("", False)
        if found is None:
            return Sent("unknown", "Slack's history doesn't say whether it was sent.")
        at, has_files = found
        if message.content and not at:
            at = await self._put_text(message, key)
        if not message.media or has_files:
            return Sent(native_id=at)
        # The text is already sent, so the message can't be retried "later": wait here to send the files.
        while (files := await slack_errors.outcome_of(self._put_files(message, key))).state == "later" and at:
            await self._home.clock.sleep(files.retry_after)
        return msgspec.structs.replace(files, native_id=at)

    async def _find(self, message: OutboundMessage, key: str) -> tuple[str, bool] | None:
        """The native id of the text if Slack has it, and whether Slack has the files; None if that remains unknown."""
        room, _, thread = message.chat.partition("/")
        asked = _TIMESTAMP.search(message.in_reply_to) if message.in_reply_to.startswith(room) else None
        oldest = (
            asked[1] if asked else f"{since.timestamp():.6f}" if (since := outgoing.earliest_arrival(message)) else None
        )
        look = {"channel": room, "oldest": oldest, "limit": 200, "include_all_metadata": True}
        replies, history = self._web.conversations_replies, self._web.conversations_history
        at, has_files, searched = "", False, 0
        async for page in await (replies(ts=thread, **look) if thread else history(**look)):
            for each in page.get("messages") or ():
                if each.get("metadata", {}).get("event_payload", {}).get("id") == key:
                    at = each["ts"]
                names = [file.get("name", "") for file in each.get("files", ())]  # a deleted one has none
                has_files |= any(name.startswith(key[:8]) for name in names)
            if (at or not message.content) and (has_files or not message.media):
                break
            searched += len(page.get("messages") or ())
            if searched >= _MAX_SEARCHED and page.get("has_more"):
                return None
        return at, has_files

    async def _put_text(self, message: OutboundMessage, key: str) -> str:
        """Turn the preview into the message, or post a new one; return its native id."""
        room, _, thread = message.chat.partition("/")
        metadata = {"event_type": "denizen_message", "event_payload": {"id": key}}
        if preview := message.edits.removeprefix(_STREAM_PREFIX):
            if preview != message.edits:
                await slack_errors.none_if_refused(self._web.chat_stopStream(channel=room, ts=preview))
            update = _send_markdown(self._web.chat_update, message, channel=room, ts=preview, metadata=metadata)
            if await slack_errors.none_if_refused(update):
                return preview
        place = {"channel": room, "thread_ts": thread or None, "metadata": metadata}
        return (await _send_markdown(self._web.chat_postMessage, message, **place))["ts"]

    async def _put_files(self, message: OutboundMessage, key: str) -> Sent:
        room, _, thread = message.chat.partition("/")
        uploads = [
            {"file": path, "filename": f"{key[:8]}-{Path(path).name}", "title": Path(path).name}
            for path in message.media
        ]
        await self._web.files_upload_v2(channel=room, thread_ts=thread or None, file_uploads=uploads)
        return Sent()

    async def show(self, chat: str, draft: str, text: str) -> str:
        with outgoing.rate_limited_if(lambda error: slack_errors.outcome_of_error(error).state == "later"):
            room, _, thread = chat.partition("/")
            bare = text.rstrip("… ")  # Slack itself marks an unfinished stream
            if at := draft.removeprefix(_STREAM_PREFIX):
                shown = self._streamed.get(draft, bare)
                if at == draft:
                    await self._web.chat_update(channel=room, ts=at, markdown_text=text)
                elif bare.startswith(shown) and bare != shown:
                    await self._web.chat_appendStream(channel=room, ts=at, markdown_text=bare[len(shown) :])
                    _remember_recent(self._streamed, draft, bare)
                return draft
            if thread and (to := self._recipients.get(chat)):
                recipient = {"recipient_user_id": to["user"], "recipient_team_id": to["team"]}
                stream = self._web.chat_startStream(channel=room, thread_ts=thread, markdown_text=bare, **recipient)
                if started := await slack_errors.none_if_refused(stream):
                    _remember_recent(self._streamed, draft := _STREAM_PREFIX + started["ts"], bare)
                    return draft
            posted = await self._web.chat_postMessage(channel=room, thread_ts=thread or None, markdown_text=text)
            return str(posted["ts"])


def _remember_recent(values: dict[str, Any], key: str, value: Any) -> None:
    """Store a value; drop the oldest if there are too many."""
    values.pop(key, None)
    values[key] = value
    if len(values) > _MAX_REMEMBERED_CHATS:
        values.pop(next(iter(values)))


async def _send_markdown(method: Callable[..., Awaitable[Any]], message: OutboundMessage, **place: Any) -> Any:
    """Call a Web API method with a message's Markdown and buttons, or with plain text if Slack rejects those."""
    body: dict[str, Any] = {"markdown_text": message.content}
    if message.choices:
        buttons: list[dict[str, Any]] = []
        for number, choice in enumerate(message.choices):
            label = {"type": "plain_text", "text": choice.label}
            buttons.append({"type": "button", "action_id": f"choice-{number}", "text": label, "value": choice.text})
        blocks = [{"type": "markdown", "text": message.content}, {"type": "actions", "elements": buttons}]
        body = {"blocks": blocks, "text": html.escape(message.content[:1000], quote=False)}
    plain = html.escape(message.content, quote=False)
    return await slack_errors.none_if_refused(method(**place, **body)) or await method(**place, text=plain)


def _readable_text(text: str) -> str:
    """The text as people see it; Slack encodes links and names as `<url|label>` and `<@id>`."""

    def shown(match: re.Match[str]) -> str:
        sign, target, label = match[1], match[2], match[3]
        if sign:
            return label if label and label.startswith("@") else f"{'#' if sign == '#' else '@'}{label or target}"
        return f"{label} ({target})" if label and label not in target else target

    return html.unescape(_MARKUP.sub(shown, text)).strip()


def _web(settings: SlackSettings) -> "AsyncWebClient":
    """A client without retries: after a lost connection they would post a message twice."""
    from slack_sdk.web.async_client import AsyncWebClient

    return AsyncWebClient(settings.bot_token, settings.base_url, timeout=_TIMEOUT_S, retry_handlers=[])


def _connect(settings: SlackSettings, home: ChannelHome) -> SlackChannel:
    return SlackChannel(home, settings, _web(settings))


async def _check(settings: SlackSettings) -> str:
    """Try both tokens, and return the names of the bot and its workspace. Raises ChannelRefused and ConfigError."""
    from slack_sdk.errors import SlackClientError

    web = _web(settings)
    try:
        async with slack_errors.report_refused_token("this app"):
            me = await web.auth_test()
            await web.apps_connections_open(app_token=settings.app_token)
    except (SlackClientError, aiohttp.ClientError) as error:
        raise ConfigError(f"{settings.base_url} doesn't respond like Slack: {error}.") from error
    return f"@{me['user']} in {me['team']}"


def _account(settings: SlackSettings) -> str:
    return "".join(settings.app_token.split("-")[2:3])  # the id of the app


KIND = ChannelKind(
    settings=SlackSettings,
    connect=_connect,
    check=_check,
    account=_account,
    steps="Open https://api.slack.com/apps?new_app=1, choose From a manifest and your workspace, and paste this "
    f"(the tab JSON):\n\n{msgspec.json.format(msgspec.json.encode(MANIFEST), indent=2).decode()}\n\n"
    "Install the app. Copy the Bot User OAuth Token (xoxb-…) from OAuth & Permissions. In Basic Information, App-Level "
    "Tokens, generate a token with the scope connections:write, and copy it (xapp-…).",
)
