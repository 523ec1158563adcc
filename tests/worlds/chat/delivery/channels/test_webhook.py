"""The webhook channel, with a program that posts messages, again until they are accepted, and receives the replies."""

import asyncio
import base64
import importlib
import os
import random
import re
import socket
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from aiohttp import ClientConnectionError, ClientSession, web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.chat.delivery.channels.servers.program import Listener

from denizen.errors import ConfigError
from denizen.ports import AnswerChoice, Channel, OutboundMessage
from denizen.ports.channel import ChannelHome, ChannelSettings
from denizen.runtime.clock import SystemClock
from denizen.testing import FakeClock, FarEnd
from denizen.worlds.chat.delivery.channels.webhook import KIND, WebhookSettings, signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))


class Program(FarEnd):
    """Posts each message, in order, until it is accepted; takes each id once."""

    connects_itself = True

    def __init__(self, port: int, clock: FakeClock) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"
        self.replies_url = ""
        self.listener: Listener
        self.received: dict[str, dict[str, object]] = {}
        self.refusal: web.Response | None = None
        self.loses_answer = False
        self._clock = clock
        self._outgoing: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._last = ("", b"")

    async def write(self, content: str, *, chat: str = "home") -> None:
        self._last = (uuid4().hex, msgspec.json.encode({"chat": chat, "sender": "ann", "content": content}))
        self._outgoing.put_nowait(self._last)

    async def repeat(self, *, new_id: bool = False) -> None:
        self._outgoing.put_nowait(self._last)

    async def press(self, label: str) -> None:
        [*_, last] = self.received.values()
        choices = msgspec.convert(last["choices"], list[AnswerChoice])
        await self.write(*(choice.text for choice in choices if choice.label == label))

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        return [str(body["content"]) for body in self.received.values() if body["chat"] == chat]

    async def flood(self, seconds: float) -> None:
        self.refusal = web.Response(status=429, headers={"Retry-After": f"{seconds:.0f}"}) if seconds else None

    async def lose_answer(self) -> None:
        self.loses_answer = True

    async def go_down(self) -> None:
        await self.listener.close()

    async def come_back(self) -> None:
        await self.listener.open()

    async def post(self, message_id: str, body: bytes, **changes: str) -> int:
        """Post a signed message, with some headers changed, and return the status."""
        timestamp = str(int(self._clock.now().timestamp()))
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": signature(KEY, message_id, changes.get("timestamp", timestamp), body),
            **{f"webhook-{name}": value for name, value in changes.items()},
        }
        async with ClientSession() as http, http.post(self.url, data=body, headers=headers) as response:
            return response.status

    async def deliver(self) -> None:
        """Post what was written, until cancelled."""
        while True:
            message, is_accepted = await self._outgoing.get(), False
            while not is_accepted:
                is_accepted = await self._is_accepted(*message)
                await asyncio.sleep(0)

    async def _is_accepted(self, message_id: str, body: bytes) -> bool:
        try:
            return await self.post(message_id, body) == 204
        except ClientConnectionError:
            return False

    async def receive(self, request: web.Request) -> web.Response:
        message_id, timestamp = request.headers["webhook-id"], request.headers["webhook-timestamp"]
        body = await request.read()
        assert request.headers["webhook-signature"] == signature(KEY, message_id, timestamp, body)
        if self.refusal:
            return web.Response(status=self.refusal.status, headers=self.refusal.headers)
        self.received.setdefault(message_id, msgspec.json.decode(body))
        if self.loses_answer:
            self.loses_answer = False
            assert request.transport
            request.transport.close()
        return web.Response(status=204)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def free_port() -> int:
    """A free port below the range that the system uses for outgoing connections."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture
async def program(clock: FakeClock) -> AsyncIterator[Program]:
    program = Program(free_port(), clock)
    app = web.Application()
    app.router.add_post("/replies", program.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    program.listener = Listener(runner)
    await program.listener.open()
    program.replies_url = f"http://127.0.0.1:{program.listener.port}/replies"
    task = asyncio.create_task(program.deliver())
    yield program
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await runner.cleanup()


def settings_of(program: Program) -> WebhookSettings:
    return WebhookSettings(url=program.replies_url, secret=SECRET, port=program.port)


@pytest.fixture
def webhook(program: Program, clock: FakeClock, tmp_path: Path) -> Channel:
    return KIND.connect(settings_of(program), ChannelHome("webhook", tmp_path, clock))


class TestWebhook(KilledChannelConformance):
    @pytest.fixture
    def channel(self, webhook: Channel) -> Channel:
        return webhook

    @pytest.fixture
    def far_end(self, program: Program) -> FarEnd:
        return program

    @pytest.fixture
    def opening(self, program: Program) -> tuple[str, ChannelSettings]:
        return f"{WebhookSettings.__module__}:KIND", settings_of(program)


REPLY = OutboundMessage("webhook", "orders", "Good day.", id="1")


def test_signature_is_that_of_the_standard() -> None:
    body = b'{"test": 2432232314}'
    signed = signature(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"signature": ""},
        {"id": "another"},
        {"timestamp": "1767268499"},
        {"timestamp": "soon"},
    ],
    ids=["wrong signature", "none", "other id", "301 s late", "no time"],
)
async def test_request_without_a_valid_signature_is_refused(
    webhook: Channel, program: Program, changes: dict[str, str]
) -> None:
    async with TestWebhook().talking(webhook, program) as (inbox, _):
        assert await program.post("1", b'{"content": "Delete everything"}', **changes) == 401
        assert inbox.messages.empty()


async def test_one_of_several_signatures_is_enough(webhook: Channel, program: Program) -> None:
    body = b'{"content": "Hello"}'
    both = f"v1,b2xk {signature(KEY, '1', '1767268800', body)}"
    async with TestWebhook().talking(webhook, program) as (inbox, _):
        assert await program.post("1", body, signature=both) == 204
        message = await inbox.messages.get()
    assert (message.id, message.chat, message.content) == ("1", "webhook", "Hello")


@pytest.mark.parametrize("body", [b"Hello", b"{}", b'{"content": "", "chat": ""}', b'{"content": "", "chats": "x"}'])
async def test_invalid_body_is_refused(webhook: Channel, program: Program, body: bytes) -> None:
    async with TestWebhook().talking(webhook, program) as (inbox, _):
        assert await program.post("1", body) == 400
        assert inbox.messages.empty()


@pytest.mark.parametrize(
    ("refusal", "state", "retry_after"),
    [
        (web.Response(status=503, headers={"Retry-After": "149"}), "later", 149),
        (web.Response(status=502), "later", 30),
        (web.Response(status=401), "later", 60),
        (web.Response(status=404), "failed", 0),
        (web.Response(status=302, headers={"Location": "/"}), "failed", 0),
    ],
    ids=["busy", "away", "wrong secret", "not found", "redirect"],
)
async def test_refusal_says_whether_the_message_waits(
    webhook: Channel, program: Program, refusal: web.Response, state: str, retry_after: float
) -> None:
    program.refusal = refusal
    sent = await webhook.send(REPLY)
    assert (sent.state, sent.retry_after, str(refusal.status) in sent.reason) == (state, retry_after, True)


async def test_message_waits_until_the_receiver_is_there(program: Program, clock: FakeClock, tmp_path: Path) -> None:
    away = WebhookSettings(url=program.url, secret=SECRET, port=program.port)
    sent = await KIND.connect(away, ChannelHome("webhook", tmp_path, clock)).send(REPLY)
    assert (sent.state, sent.retry_after) == ("later", 5)


async def test_check_reaches_the_receiver(program: Program) -> None:
    settings = settings_of(program)
    assert program.replies_url in await KIND.check(settings)
    with pytest.raises(ConfigError, match="can't be reached"):
        await KIND.check(replace(settings, url=program.url))
    with pytest.raises(ConfigError, match="at least 24 bytes"):
        await KIND.check(replace(settings, secret="whsec_c2hvcnQ="))


async def test_receiver_of_the_documentation_prints_each_reply_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    receiver = importlib.import_module("docs.examples.webhook.receiver")
    async with TestServer(receiver.make_app([])) as server:
        settings = WebhookSettings(url=str(server.make_url("/replies")), secret=SECRET, port=1)
        channel = KIND.connect(settings, ChannelHome("webhook", tmp_path, SystemClock()))
        for message in (REPLY, replace(REPLY, may_be_sent=True), replace(REPLY, id="2", content="Good night.")):
            assert (await channel.send(message)).state == "sent"
        forger = KIND.connect(
            replace(settings, secret=f"whsec_{'A' * 32}"), ChannelHome("webhook", tmp_path, SystemClock())
        )
        assert (await forger.send(replace(REPLY, id="3"))).state == "later"
    assert capsys.readouterr().out == "Good day.\nGood night.\n"


@pytest.mark.needs("bash", "curl", "openssl")
async def test_command_of_the_documentation_posts_a_message(program: Program) -> None:
    page = Path(__file__).parents[5] / "docs" / "channels" / "webhook.md"
    [command] = [block for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL) if "curl" in block]
    environ = {"WEBHOOK_SECRET": SECRET, "DENIZEN_WEBHOOK": program.url, "PATH": os.environ["PATH"]}
    channel = KIND.connect(
        WebhookSettings(url=program.url, secret=SECRET, port=program.port),
        ChannelHome("webhook", Path(), SystemClock()),
    )
    async with TestWebhook().receiving(channel) as inbox:
        while True:
            shell = await asyncio.create_subprocess_exec("bash", "-c", command, env=environ, stdout=PIPE, stderr=PIPE)
            output, _ = await shell.communicate()
            if output:
                break
        assert b"204" in output.splitlines()[0]
        message = await inbox.messages.get()
    assert (message.chat, message.sender, message.content) == ("orders", "shop", "Which orders are late?")
