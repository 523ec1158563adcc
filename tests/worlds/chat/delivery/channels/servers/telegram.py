"""Telegram's Bot API on loopback, as https://core.telegram.org/bots/api documents it, with faults on command.

"Making requests" has the form of answers and errors, "Getting updates" the confirmation by offset, and "Available
methods" the rest.
"""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from tests.worlds.chat.delivery.channels.servers.markdown_v2 import visible_text
from tests.worlds.chat.delivery.channels.servers.program import Listener

from denizen.testing import FarEnd

TOKEN = "1234:secret"
BOT = {"id": 1234, "is_bot": True, "first_name": "Denizen", "username": "denizen_bot"}
ANN = {"id": 1001, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
BEN = {"id": 1002, "is_bot": False, "first_name": "Ben"}
OTHER_BOT = {"id": 1003, "is_bot": True, "first_name": "Spam"}
GROUP = {"id": -100500, "type": "supergroup", "title": "Lunch", "is_forum": True}
THREAD = 7
_DATE = 1_767_268_800


@dataclass
class Refusal(Exception):
    code: int
    description: str
    parameters: dict[str, Any] | None = None


def _private(person: dict[str, Any]) -> dict[str, Any]:
    return {"id": person["id"], "type": "private", "first_name": person["first_name"]}


_HOME, _WORK = _private(ANN), _private(BEN)
_CHATS = {"home": (_HOME, None), "work": (_WORK, None), "thread": (_HOME, THREAD), "group": (GROUP, None)}


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class TelegramServer(FarEnd):
    """One bot with two people, a topic, and a group. `calls` counts its methods; `drafts` are the last of each."""

    def __init__(self) -> None:
        self.url = ""
        self.token = TOKEN
        self.calls: Counter[str] = Counter()
        self.has_drafts = False
        self.drafts: dict[str, str] = {}
        self.refuses_markup = self.is_polled_elsewhere = False
        self.messages: list[dict[str, Any]] = []
        self._updates: list[dict[str, Any]] = []
        self._files: dict[str, tuple[int, bytes | None]] = {}
        self._ids = itertools.count(1)
        self._changed = asyncio.Event()
        self._flood_s: dict[str, float] = {}
        self._loses_answer = self._refuses_edits = False
        self._connections: set[asyncio.Transport] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["TelegramServer"]:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        app.router.add_post("/bot{token}/{method}", self._answer)
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

    async def write(self, content: str, *, chat: str = "home", **fields: Any) -> None:
        """Say something; `fields` are others of the message, as Telegram names them."""
        place, thread = _CHATS[chat]
        sender = BEN if chat == "work" else ANN
        topic = {"message_thread_id": thread, "is_topic_message": True} if thread else {}
        self._tell("message", place, sender, **topic, **{"text": content, **fields})

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        mention = {"entities": [{"type": "mention", "offset": 0, "length": 12}]} if addressed else {}
        await self.write(f"@Denizen_bot {content}" if addressed else content, chat="group", **mention)

    async def write_as_bot(self, content: str) -> None:
        self._tell("message", _HOME, OTHER_BOT, text=content)

    async def edit(self, content: str) -> None:
        last = next(each["message"] for each in reversed(self._updates) if "message" in each)
        self._add({"edited_message": {**last, "text": content, "edit_date": _DATE + 60}})

    async def repeat(self, *, new_id: bool = False) -> None:
        last = next(each for each in reversed(self._updates) if "message" in each)
        self._add({"message": last["message"]})

    async def attach(self, size: int, *, kind: str = "document", data: bytes | None = None) -> None:
        number = f"file{next(self._ids)}"
        self._files[number] = (size, data if data is not None else b"x" * min(size, 1000))
        file = {"file_id": number, "file_unique_id": f"u{number}", "file_size": size}
        names = {"voice": {"duration": 1}, "document": {"file_name": "../notes 1.txt"}}
        self._tell("message", _HOME, ANN, **{kind: {**file, **names[kind]}})

    async def press(self, label: str, *, presser: dict[str, Any] = ANN) -> None:
        asked = next(message for message in reversed(self.messages) if message.get("reply_markup"))
        [row] = asked["reply_markup"]["inline_keyboard"]
        [data] = [button["callback_data"] for button in row if button["text"] == label]
        query = {"id": f"q{next(self._ids)}", "from": presser, "message": asked, "chat_instance": "1", "data": data}
        self._add({"callback_query": query})

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        place, thread = _CHATS[chat]
        return [
            message.get("text") or message.get("caption", "")
            for message in self.messages
            if message["chat"]["id"] == place["id"] and message.get("message_thread_id") == thread
        ]

    def _tell(self, kind: str, chat: dict[str, Any], sender: dict[str, Any], **fields: Any) -> None:
        self._add({kind: {"message_id": next(self._ids), "date": _DATE, "chat": chat, "from": sender, **fields}})

    def _add(self, update: dict[str, Any]) -> None:
        self._updates.append({"update_id": next(self._ids), **update})
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # Faults

    async def flood(self, seconds: float, *, method: str = "") -> None:
        """Refuse a method, or all that send; 0: no longer."""
        self._flood_s = {method: seconds} if seconds else {}

    async def lose_answer(self) -> None:
        self._loses_answer = True

    async def refuse_edits(self) -> None:
        self._refuses_edits = True

    async def rotate_token(self) -> None:
        self.token = "1234:rotated"
        self._wake()

    async def drop_connections(self) -> None:
        for transport in [*self._connections]:
            transport.abort()

    async def go_down(self) -> None:
        await self._listener.close()
        await self.drop_connections()

    async def come_back(self) -> None:
        await self._listener.open()

    # The Bot API

    async def _answer(self, request: web.Request) -> web.Response:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        self._connections.add(transport)
        try:
            result = await self._call(request.match_info["method"], request)
        except Refusal as error:
            body = {"ok": False, "error_code": error.code, "description": error.description}
            more = {"parameters": error.parameters} if error.parameters else {}
            return web.json_response(body | more, status=error.code)
        finally:
            self._connections.discard(transport)
        if self._loses_answer and request.match_info["method"].startswith(("send", "edit")):
            self._loses_answer = False
            transport.abort()
        return web.json_response({"ok": True, "result": result})

    async def _call(self, method: str, request: web.Request) -> Any:
        self._check_token(request)
        self.calls[method] += 1
        form: dict[str, Any] = dict(await request.post())
        if method.startswith(("send", "edit")):
            for name, seconds in self._flood_s.items():
                if name in {"", method}:
                    wait = {"retry_after": int(seconds)}
                    raise Refusal(429, f"Too Many Requests: retry after {int(seconds)}", wait)
        match method:
            case "getMe":
                return BOT
            case "getUpdates":
                return await self._get_updates(form, request)
            case "answerCallbackQuery":
                return True
            case "sendMessageDraft" if self.has_drafts and not str(form["chat_id"]).startswith("-"):
                self.drafts[form["draft_id"]] = form["text"]
                return True
            case "sendMessageDraft" if self.has_drafts:
                raise Refusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
            case "sendMessage" | "sendPhoto" | "sendVoice" | "sendDocument":
                return self._keep(form, self._words(form))
            case "sendMediaGroup":
                return [self._keep(form, each) for each in self._album(form)]
            case "editMessageText":
                return self._edit(form)
            case "getFile":
                if form["file_id"] not in self._files:
                    raise Refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
                size, _ = self._files[form["file_id"]]
                if size > 20_000_000:
                    raise Refusal(400, "Bad Request: file is too big")
                number = form["file_id"]
                path = f"documents/{number}.txt"
                return {"file_id": number, "file_unique_id": f"u{number}", "file_size": size, "file_path": path}
        raise Refusal(404, "Not Found")

    def _check_token(self, request: web.Request) -> None:
        if request.match_info["token"] != self.token:
            raise Refusal(401, "Unauthorized")

    async def _get_updates(self, form: dict[str, Any], request: web.Request) -> list[dict[str, Any]]:
        if self.is_polled_elsewhere:
            words = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            raise Refusal(409, words)
        offset = int(form.get("offset", 0))
        while not (updates := [each for each in self._updates if each["update_id"] >= offset]):
            await self._changed.wait()
            self._check_token(request)
        return updates[:100]

    def _words(self, form: dict[str, Any]) -> dict[str, Any]:
        """The text or caption of a message, as a reader sees it."""
        name = "text" if "text" in form else "caption"
        text = form.get(name, "")
        if form.get("parse_mode") == "MarkdownV2":
            if self.refuses_markup:
                raise Refusal(400, "Bad Request: can't parse entities: by order")
            try:
                text = visible_text(text)
            except ValueError as error:
                raise Refusal(400, f"Bad Request: {error}") from error
        text = text.strip()
        if name == "text" and not text:
            raise Refusal(400, "Bad Request: message text is empty")
        if _utf16(text) > (4096 if name == "text" else 1024):
            raise Refusal(400, f"Bad Request: message {'caption ' if name == 'caption' else ''}is too long")
        files = {key: len(value.file.read()) for key, value in form.items() if isinstance(value, web.FileField)}
        return {name: text, "sizes": files, "raw": form.get(name)}

    def _album(self, form: dict[str, Any]) -> list[dict[str, Any]]:
        media = json.loads(form["media"])
        if not 2 <= len(media) <= 10:
            raise Refusal(400, "Bad Request: wrong number of media")
        return [self._words({**each, each["media"].removeprefix("attach://"): None}) for each in media]

    def _keep(self, form: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
        room = next((chat for chat, _ in _CHATS.values() if str(chat["id"]) == form["chat_id"]), None)
        if room is None:
            raise Refusal(400, "Bad Request: chat not found")
        message: dict[str, Any] = {"message_id": next(self._ids), "date": _DATE, "chat": room, "from": BOT, **words}
        if thread := form.get("message_thread_id"):
            message |= {"message_thread_id": int(thread), "is_topic_message": True}
        if markup := form.get("reply_markup"):
            message["reply_markup"] = json.loads(markup)
            for button in itertools.chain(*message["reply_markup"]["inline_keyboard"]):
                if len(button["callback_data"].encode()) > 64:
                    raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        self.messages.append(message)
        return message

    def _edit(self, form: dict[str, Any]) -> dict[str, Any]:
        if self._refuses_edits:
            raise Refusal(400, "Bad Request: message can't be edited")
        found = [each for each in self.messages if str(each["message_id"]) == form["message_id"]]
        if not found:
            raise Refusal(400, "Bad Request: message to edit not found")
        words = self._words(form)
        if words["text"] == found[0]["text"]:
            raise Refusal(400, "Bad Request: message is not modified: specified new message content is the same")
        found[0].update(words)
        if markup := form.get("reply_markup"):
            found[0]["reply_markup"] = json.loads(markup)
        return found[0]

    def forget_files(self) -> None:
        self._files.clear()

    def lose_files(self) -> None:
        """Describe files, but answer their downloads with 404."""
        self._files = {number: (size, None) for number, (size, _) in self._files.items()}

    async def _download(self, request: web.Request) -> web.Response:
        self._check_token(request)
        number = request.match_info["path"].removeprefix("documents/").removesuffix(".txt")
        data = self._files[number][1]
        return web.Response(status=404) if data is None else web.Response(body=data)
