"""Slack's Web API and Socket Mode on loopback, as https://docs.slack.dev documents them, with faults on command.

"Using Socket Mode" has the envelopes, "message event" and "app_mention event" their payloads, "block_actions payload"
a pressed button, and "chat.postMessage" … "files.completeUploadExternal" the methods.
"""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from tests.worlds.chat.delivery.channels.servers.program import Listener

from denizen.testing import FarEnd

BOT_TOKEN, APP_TOKEN = "xoxb-1-2-secret", "xapp-1-A01APP-3-secret"
BOT, BOT_ID, ANN, BEN, TEAM = "U0BOT", "B0BOT", "U0ANN", "U0BEN", "T0TEAM"
_CHATS = {"home": ("D0ANN", ""), "work": ("D0BEN", ""), "thread": ("D0ANN", "1699.000007"), "group": ("C0LUNCH", "")}


@dataclass
class Refusal(Exception):
    error: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class SlackServer(FarEnd):
    """One workspace with two people, a thread and a channel.

    `calls` counts methods, `messages` are what the bot posted, and `last` is the last event of a person.
    """

    def __init__(self) -> None:
        self.url = ""
        self.token = BOT_TOKEN
        self.calls: Counter[str] = Counter()
        self.messages: list[dict[str, Any]] = []
        self.page_size = 2
        self.refuses_streams = self.refuses_markup = self.hides_files = False
        self._ids = itertools.count(1)
        self._sockets: list[web.WebSocketResponse] = []
        self._open: dict[str, dict[str, Any]] = {}  # envelopes that weren't acknowledged
        self.last: dict[str, Any] = {}
        self._settled = asyncio.Event()
        self._files: dict[str, bytes] = {}
        self._flood_s: dict[str, float] = {}
        self._loses_answer = self._refuses_edits = False
        self._requests: set[asyncio.Transport] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["SlackServer"]:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_get("/socket", self._socket)
        app.router.add_get("/files/{number}", self._download)
        app.router.add_post("/upload/{number}", self._upload)
        app.router.add_route("*", "/api/{method}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        self._listener = Listener(runner)
        await self._listener.open()
        self.url = f"http://127.0.0.1:{self._listener.port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    # A person's side

    async def write(self, content: str, *, chat: str = "home", kind: str = "message", **fields: Any) -> None:
        """Say something; `fields` are others of the event, as Slack names them."""
        channel, thread = _CHATS[chat]
        event = {
            "type": kind,
            "channel": channel,
            "user": BEN if chat == "work" else ANN,
            "text": content,
            "ts": self._new_ts(),
            "channel_type": "im" if channel.startswith("D") else "channel",
            **({"thread_ts": thread} if thread else {}),
            **fields,
        }
        await self._tell(event)
        self.last = event

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        await self.write(f"<@{BOT}> {content}" if addressed else content, chat="group")

    async def write_as_bot(self, content: str) -> None:
        await self.write(content, subtype="bot_message", bot_id="B0SPAM", user=None)

    async def edit(self, content: str, *, is_edited: bool = True) -> None:
        edited = {"edited": {"user": ANN, "ts": self._new_ts()}} if is_edited else {}
        message = {**self.last, "text": content, **edited}
        message.pop("channel")
        changed = {"type": "message", "subtype": "message_changed", "message": message}
        changed |= {"channel": self.last["channel"], "previous_message": self.last, "ts": self._new_ts()}
        await self._tell(changed)

    async def repeat(self, *, new_id: bool = False) -> None:
        await self._tell(self.last, retry_attempt=1, retry_reason="timeout")

    async def echo(self) -> None:
        last = self.messages[-1]
        await self._tell({"type": "message", "channel_type": "im", **last})

    async def attach(self, size: int) -> None:
        number = f"F{next(self._ids)}"
        self._files[number] = b"x" * min(size, 1000)
        url = f"{self.url}/files/{number}"
        file = {"id": number, "name": "../notes 1.txt", "mimetype": "text/plain", "size": size, "url_private": url}
        await self.write("", subtype="file_share", files=[file])

    async def press(self, label: str, *, presser: str = ANN) -> None:
        asked = next(message for message in reversed(self.messages) if "blocks" in message)
        buttons = next(block["elements"] for block in asked["blocks"] if block["type"] == "actions")
        [button] = [each for each in buttons if each["text"]["text"] == label]
        payload = {
            "type": "block_actions",
            "user": {"id": presser, "team_id": TEAM},
            "container": {"type": "message", "message_ts": asked["ts"], "channel_id": asked["channel"]},
            "message": asked,
            "actions": [{**button, "action_ts": self._new_ts()}],
        }
        await self._envelope("interactive", payload)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        channel, thread = _CHATS[chat]
        return [
            message["text"]
            for message in self.messages
            if (message["channel"], message.get("thread_ts", "")) == (channel, thread)
        ]

    def _new_ts(self) -> str:
        return f"{int(time.time())}.{next(self._ids):06}"

    async def _tell(self, event: dict[str, Any], **retry: Any) -> None:
        event = {name: value for name, value in event.items() if value is not None}
        payload = {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{event['ts']}", "event": event}
        await self._envelope("events_api", payload, **retry)

    async def _envelope(self, kind: str, payload: dict[str, Any], **retry: Any) -> None:
        identifier = f"envelope-{next(self._ids)}"
        self._open[identifier] = {"type": kind, "envelope_id": identifier, "payload": payload, **retry}
        self._settled.clear()
        for socket in self._sockets[-1:]:
            with suppress(ConnectionResetError):  # a dropped connection: it is delivered to the next one
                await socket.send_json(self._open[identifier])

    # Faults

    async def flood(self, seconds: float, *, method: str = "") -> None:
        """Refuse a method, or all that write; 0: no longer."""
        self._flood_s = {method: seconds} if seconds else {}

    async def lose_answer(self) -> None:
        self._loses_answer = True

    async def refuse_edits(self) -> None:
        self._refuses_edits = True

    async def drop_connections(self) -> None:
        for transport in [*self._requests]:
            transport.abort()

    async def go_down(self) -> None:
        await self._listener.close()
        await self.drop_connections()

    async def come_back(self) -> None:
        await self._listener.open()

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask for a new connection, as Slack does every few hours."""
        for socket in self._sockets:
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "wss-1"}})

    async def rotate_token(self) -> None:
        self.token = "xoxb-rotated"
        await self.refresh("link_disabled")

    # Socket Mode

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert isinstance(request.transport, asyncio.Transport)
        self._requests.add(request.transport)
        self._sockets.append(socket)
        try:
            await socket.send_json({"type": "hello", "num_connections": 1})
            for envelope in [*self._open.values()]:
                await socket.send_json({**envelope, "retry_attempt": 1})
            async for frame in socket:
                if frame.type == WSMsgType.TEXT:
                    self._open.pop(json.loads(frame.data)["envelope_id"], None)
                    if not self._open:
                        self._settled.set()
        except ConnectionResetError:  # the test dropped it
            return socket
        finally:
            self._sockets.remove(socket)
            self._requests.discard(request.transport)
        return socket

    # The Web API

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        try:
            result = await self._call(method, request)
        except Refusal as error:
            body = {"ok": False, "error": error.error}
            return web.json_response(body, status=error.status, headers=error.headers)
        if self._loses_answer and method in {"chat.postMessage", "chat.update", "files.completeUploadExternal"}:
            self._loses_answer = False
            assert isinstance(request.transport, asyncio.Transport)
            request.transport.abort()
        return web.json_response({"ok": True, **result})

    async def _call(self, method: str, request: web.Request) -> dict[str, Any]:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in {self.token, APP_TOKEN} or self.token == "xoxb-rotated":
            raise Refusal("invalid_auth")
        self.calls[method] += 1
        form: dict[str, Any] = {**request.query}
        if request.method == "POST":
            is_json = request.content_type == "application/json"
            form |= await request.json() if is_json else dict(await request.post())
        if method.startswith(("chat.", "files.")):
            for name, seconds in self._flood_s.items():
                if name in {"", method}:
                    raise Refusal("ratelimited", 429, {"Retry-After": str(int(seconds))})
        match method:
            case "auth.test":
                return {"user_id": BOT, "bot_id": BOT_ID, "team_id": TEAM, "user": "denizen", "team": "Lunch & Co"}
            case "apps.connections.open" if token == APP_TOKEN:
                return {"url": f"{self.url.replace('http', 'ws')}/socket?ticket={next(self._ids)}"}
            case "chat.postMessage":
                return self._post(form)
            case "chat.update":
                return self._update(form)
            case "chat.startStream" if not self.refuses_streams and form.get("recipient_user_id"):
                return self._post(form, is_stream=True)
            case "chat.appendStream":
                self._stream(form)["text"] += form["markdown_text"]
                return {}
            case "chat.stopStream":
                self._stream(form)["is_stream"] = False
                return {}
            case "conversations.history" | "conversations.replies":
                return self._history(form)
            case _:
                return self._call_files(method, form)

    def _call_files(self, method: str, form: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "files.getUploadURLExternal":
                number = f"F{next(self._ids)}:{form['filename']}"
                self._files[number] = b""
                return {"file_id": number, "upload_url": f"{self.url}/upload/{number}"}
            case "files.completeUploadExternal":
                files = [{**each, "name": each["id"].partition(":")[2]} for each in json.loads(form["files"])]
                self._keep({"channel": form["channel_id"], "thread_ts": form.get("thread_ts")}, "", files=files)
                return {"files": files}
        raise Refusal("unknown_method")

    def _shown(self, form: dict[str, Any], most: int) -> dict[str, Any]:
        """What is seen of a message. `most` is the limit of a plain text."""
        if self.refuses_markup and "text" not in form:
            raise Refusal("invalid_blocks")
        if sum(map(bool, (form.get("markdown_text"), form.get("blocks") or form.get("text")))) != 1:
            raise Refusal("markdown_text_conflict")
        markdown = "".join(each["text"] for each in form.get("blocks", ()) if each["type"] == "markdown")
        markdown = markdown or form.get("markdown_text", "")
        if len(markdown) > 12_000 or len(form.get("text", "")) > most:
            raise Refusal("msg_too_long")
        shown = {"text": markdown or form["text"], "metadata": form.get("metadata", {})}
        return shown | ({"blocks": form["blocks"], "fallback": form["text"]} if form.get("blocks") else {})

    def _post(self, form: dict[str, Any], *, is_stream: bool = False) -> dict[str, Any]:
        return self._keep(form, **self._shown(form, 40_000), is_stream=is_stream)

    def _keep(self, form: dict[str, Any], text: str, **fields: Any) -> dict[str, Any]:
        if form["channel"] not in {channel for channel, _ in _CHATS.values()}:
            raise Refusal("channel_not_found")
        message = {
            "user": BOT,
            "bot_id": BOT_ID,
            "ts": self._new_ts(),
            "channel": form["channel"],
            "text": text,
            **fields,
        }
        if thread := form.get("thread_ts"):
            message["thread_ts"] = thread
        self.messages.append(message)
        return {"ts": message["ts"], "channel": message["channel"]}

    def _update(self, form: dict[str, Any]) -> dict[str, Any]:
        found = [each for each in self.messages if (each["ts"], each["channel"]) == (form["ts"], form["channel"])]
        if self._refuses_edits or not found:
            raise Refusal("cant_update_message" if found else "message_not_found")
        if found[0].get("is_stream"):
            raise Refusal("streaming_state_conflict")
        found[0].update(self._shown(form, 4000))
        return {"ts": form["ts"]}

    def _stream(self, form: dict[str, Any]) -> dict[str, Any]:
        for message in self.messages:
            if message["ts"] == form["ts"] and message.get("is_stream"):
                return message
        raise Refusal("message_not_in_streaming_state")

    def _history(self, form: dict[str, Any]) -> dict[str, Any]:
        """A page, newest first."""
        thread = form.get("ts", "")
        found = [
            message
            for message in reversed(self.messages)
            if message["channel"] == form["channel"] and message.get("thread_ts", "") == thread
            if message["ts"] > form.get("oldest", "")
        ]
        begin = int(form.get("cursor") or 0)
        end = begin + self.page_size
        more = str(end) if end < len(found) else ""
        return {"messages": found[begin:end], "has_more": bool(more), "response_metadata": {"next_cursor": more}}

    async def _upload(self, request: web.Request) -> web.Response:
        self._files[request.match_info["number"]] = await request.read()
        return web.Response(text="OK")

    async def _download(self, request: web.Request) -> web.Response:
        if self.hides_files or request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return web.Response(body=self._files[request.match_info["number"]], content_type="text/plain")

    def uploaded(self) -> list[bytes]:
        """The files that were posted."""
        return [self._files[file["id"]] for message in self.messages for file in message.get("files", ())]

    def unconfirmed(self) -> int:
        """How many envelopes weren't acknowledged."""
        return len(self._open)

    async def settled(self) -> None:
        """Return once everything sent has been acknowledged."""
        await self._settled.wait()
