"""The floor: the scene played by hand on aiohttp and msgspec, with nothing that an engine adds."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp
import msgspec
from yarl import URL

from benchmarks.driver import WARM_UP, Command, Figures, Stage, Turn, main
from benchmarks.scene import CHUNKS, KEY, MODEL, QUESTION, SYSTEM, TOOL_NAME, TOOL_TEXT

TOOL = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": TOOL_TEXT,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HEADERS = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "content-type": "application/json"}


class Function(msgspec.Struct):
    name: str
    arguments: str


class Call(msgspec.Struct):
    id: str
    function: Function
    type: str = "function"


class Message(msgspec.Struct, omit_defaults=True):
    role: str
    content: str | None = None
    tool_calls: list[Call] = []
    tool_call_id: str = ""


class Choice(msgspec.Struct):
    message: Message


class Completion(msgspec.Struct):
    choices: list[Choice]


class Delta(msgspec.Struct):
    content: str = ""  # OpenAI
    text: str = ""  # Anthropic, Gemini


class DeltaChoice(msgspec.Struct):
    delta: Delta


class Content(msgspec.Struct):
    parts: list[Delta]


class Candidate(msgspec.Struct):
    content: Content


class Event(msgspec.Struct):
    """One event of a stream, in any format."""

    choices: list[DeltaChoice] = []  # OpenAI
    delta: Delta | str | None = None  # Anthropic; OpenAI Responses: the text itself
    candidates: list[Candidate] = []  # Gemini


_encode = msgspec.json.Encoder().encode
_completion = msgspec.json.Decoder(Completion).decode
_event = msgspec.json.Decoder(Event).decode
_arguments = msgspec.json.Decoder(dict[str, str]).decode


class Transcript:
    """A file that gets one line per message; `syncs` times per turn it is brought to the disk as well."""

    def __init__(self, path: Path, syncs: int) -> None:
        self._file = path.open("ab", buffering=0)
        self._syncs = syncs
        self._due = syncs

    def add(self, message: Message) -> None:
        if message.role == "user":
            self._due = self._syncs
        self._file.write(_encode(message) + b"\n")
        if self._due:
            self._due -= 1
            os.fsync(self._file.fileno())


class Floor:
    """A bare loop. A store is `memory`, `disk`, or `synced:N` for N syncs in each turn."""

    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage, http: aiohttp.ClientSession) -> None:
        self._stage = stage
        self._http = http
        self._url = f"{stage.base_url}/chat/completions"

    async def open(self, key: str, store: str) -> Turn:
        messages = [Message("system", SYSTEM)]
        transcript = self._transcript(key, store)

        def add(message: Message) -> None:
            messages.append(message)
            if transcript:
                transcript.add(message)

        async def turn(text: str) -> str:
            add(Message("user", text))
            while True:
                add(reply := await self._ask(messages))
                if not reply.tool_calls:
                    return reply.content or ""
                for call in reply.tool_calls:
                    add(Message("tool", self._run(call), tool_call_id=call.id))

        return turn

    def _transcript(self, key: str, store: str) -> Transcript | None:
        if store == "memory":
            return None
        return Transcript(self._stage.home / f"{key}.jsonl", int(store.partition(":")[2] or 0))

    def _run(self, call: Call) -> str:
        return self._stage.weather.look_up(**_arguments(call.function.arguments))

    async def _ask(self, messages: list[Message]) -> Message:
        return await self._post(_encode({"model": MODEL, "messages": messages, "tools": [TOOL]}))

    async def _post(self, body: bytes) -> Message:
        async with self._http.post(self._url, data=body, headers=HEADERS) as response:
            return _completion(await response.read()).choices[0].message

    async def replay(self, count: int) -> Figures:
        """CPU milliseconds of each turn that only sends the two bodies that the server saw last, and runs the tool."""
        bodies = [await self._seen("/body/before"), await self._seen("/body")]
        for _ in range(WARM_UP):
            await self._resend(bodies)
        costs = [await self._resend(bodies) for _ in range(count)]
        return {"cpu_ms": costs, "bytes": sum(map(len, bodies))}

    async def _resend(self, bodies: Sequence[bytes]) -> float:
        cpu = time.process_time()
        for body in bodies:
            for call in (await self._post(body)).tool_calls:
                self._run(call)
        return (time.process_time() - cpu) * 1e3

    async def _seen(self, path: str) -> bytes:
        async with self._http.get(URL(self._url).with_path(path)) as response:
            return await response.read()

    async def answered(self) -> Figures:
        """One question that is answered at once."""
        await (await self.open("answered", "disk"))(QUESTION)
        return {}

    async def words(self, path: str, count: int) -> Figures:
        """CPU microseconds per chunk of a streamed reply, its text handed on in pieces; `path` tells the format."""
        url = self._stage.base_url.replace("/scene/", "/words/") + path
        cpu = time.process_time()
        for _ in range(count):
            await self._stream(url)
        return {"cpu_us": (time.process_time() - cpu) * 1e6 / count / CHUNKS}

    async def _stream(self, url: str) -> None:
        body = _encode({"model": MODEL, "stream": True, "messages": [Message("user", QUESTION)], "max_tokens": 8192})
        pieces: list[str] = []
        async with self._http.post(url, data=body, headers=HEADERS) as response:
            rest = b""
            async for data in response.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        pieces.extend(text_of(_event(line[6:])))
        assert len(pieces) == CHUNKS


def text_of(event: Event) -> Sequence[str]:
    """The text that an event brings: one piece, or none."""
    if event.candidates:
        return [part.text for part in event.candidates[0].content.parts if part.text]
    delta = event.choices[0].delta if event.choices else event.delta
    if isinstance(delta, str):
        return (delta,)
    text = (delta.content or delta.text) if delta else ""
    return (text,) if text else ()


async def build(stage: Stage) -> Floor:
    return Floor(stage, aiohttp.ClientSession())


def extra(floor: Floor) -> Mapping[str, Command]:
    return {"replay": floor.replay, "words": floor.words, "answered": floor.answered}


if __name__ == "__main__":
    main(build, extra)
