"""Voice messages, with an endpoint that transcribes them."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.worlds.chat.conftest import ALLOWED, PATIENCE, Serve, said

from denizen import load_config
from denizen.config.redact import secrets_of
from denizen.ports import ChannelLimits, InboundMessage
from denizen.testing import FakeClock, MemoryChannel


class Endpoint:
    """Transcribes every file as the same words; it may fail or wait."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.status, self.seconds = 200, 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.came = asyncio.Event()
        self.settings: dict[str, str] = {}

    async def transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        given = {"model": form["model"], "name": file.filename, "data": file.file.read()}
        self.requests.append(given | {"key": request.headers.get("Authorization")})
        self.came.set()
        await self.answers.wait()
        usage = {"usage": {"type": "duration", "seconds": self.seconds}} if self.seconds else {}
        return web.json_response({"text": " Buy plums. ", **usage}, status=self.status)


@pytest.fixture
async def endpoint() -> AsyncGenerator[Endpoint]:
    endpoint, app = Endpoint(), web.Application()
    app.router.add_post("/v1/audio/transcriptions", endpoint.transcribe)
    async with TestServer(app) as server:
        endpoint.settings = {"base_url": str(server.make_url("/v1")), "model": "ears", "api_key": "k-1"}
        yield endpoint
        endpoint.answers.set()


@pytest.fixture
def recording(tmp_path: Path) -> str:
    path = tmp_path / "voice.oga"
    path.write_bytes(b"OggS")
    return str(path)


def with_files() -> MemoryChannel:
    return MemoryChannel(limits=ChannelLimits(media_in=1000, reconciles=True))


def speak(channel: MemoryChannel, recording: str, content: str = "") -> InboundMessage:
    return channel.write(content, chat="ann", media=(recording,))


async def test_model_gets_the_words_and_the_file(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel = with_files()
    async with serve("done", channels=[channel], transcription=endpoint.settings) as scene:
        speak(channel, recording, "for tonight")
        assert await scene.contents(1, "ann", "memory") == ["done"]
    assert f"for tonight\\n[voice message] Buy plums.\\n[attached: {recording}]" in said(scene.model)
    assert endpoint.requests == [{"model": "ears", "name": "voice.oga", "data": b"OggS", "key": "Bearer k-1"}]


async def test_voice_message_is_transcribed_once(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel = with_files()
    script = [RuntimeError("the model is away"), "done"]
    async with serve(*script, channels=[channel], clock=FakeClock(), transcription=endpoint.settings) as scene:
        channel.deliver(speak(channel, recording))
        assert await scene.contents(1, "ann", "memory") == ["done"]
        assert "[voice message] Buy plums." in said(scene.model)
    assert len(endpoint.requests) == 1


async def test_transcription_counts_against_the_senders_limit(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel, endpoint.seconds = with_files(), 90
    priced = {**endpoint.settings, "usd_per_minute": 0.01}
    async with serve("done", channels=[channel], transcription=priced, sender_day_usd=0.014) as scene:
        speak(channel, recording)
        [reply] = await scene.contents(1, "ann", "memory")
        assert "is spent: $0.0150 of $0.014" in reply
        assert not scene.model.requests


async def test_sender_is_notified_without_an_endpoint(serve: Serve, recording: str) -> None:
    channel = with_files()
    async with serve("done", channels=[channel]) as scene:
        speak(channel, recording)
        notice, reply = await scene.contents(2, "ann", "memory")
    assert "needs `[gateway.transcription]`" in notice
    assert reply == "done"
    assert f"[attached: {recording}]" in said(scene.model)


async def test_sender_is_notified_if_the_endpoint_fails(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel, endpoint.status = with_files(), 500
    async with serve("done", channels=[channel], transcription=endpoint.settings) as scene:
        speak(channel, recording)
        notice, reply = await scene.contents(2, "ann", "memory")
    assert "couldn't be transcribed" in notice
    assert reply == "done"


async def test_other_chats_do_not_wait(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel = with_files()
    endpoint.answers.clear()
    async with serve("for ben", "for ann", channels=[channel], transcription=endpoint.settings) as scene:
        speak(channel, recording)
        async with asyncio.timeout(PATIENCE):
            await endpoint.came.wait()
        channel.write("hello", chat="ben", sender="ben")
        assert await scene.contents(1, "ben", "memory") == ["for ben"]
        endpoint.answers.set()
        assert await scene.contents(1, "ann", "memory") == ["for ann"]


async def test_channel_may_leave_voice_messages_alone(serve: Serve, endpoint: Endpoint, recording: str) -> None:
    channel, silent = with_files(), type(ALLOWED)(allow=["ann"], voice=False)
    async with serve("done", channels=[channel], allow=silent, transcription=endpoint.settings) as scene:
        speak(channel, recording)
        assert await scene.contents(1, "ann", "memory") == ["done"]
    assert not endpoint.requests


def test_key_of_the_endpoint_is_redacted(home: Path) -> None:
    config = load_config(home=home, environ={}, cwd=home, overrides={"gateway": {"transcription": {"api_key": "k-1"}}})
    assert secrets_of(config, {})["gateway.transcription.api_key"] == "k-1"
