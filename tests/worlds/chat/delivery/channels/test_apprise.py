"""Notifications by apprise, to a service at the other end that takes them as JSON."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.worlds.chat.conftest import PATIENCE, Serve

from denizen.errors import ConfigError
from denizen.ports import OutboundMessage, Sent
from denizen.ports.channel import ChannelHome
from denizen.testing import FakeClock, MemoryChannel
from denizen.worlds.chat.delivery.channels.apprise import KIND, TIMEOUT_S, AppriseChannel, AppriseSettings

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # apprise imports it


class Phone:
    """Takes notifications, refuses them, or never answers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.status = 200
        self.answers = asyncio.Event()
        self.answers.set()
        self.came = asyncio.Event()
        self.url = ""

    async def notify(self, request: web.Request) -> web.Response:
        self.texts.append((await request.json())["message"])
        self.came.set()
        await self.answers.wait()
        return web.Response(status=self.status)


@pytest.fixture
async def phone() -> AsyncGenerator[Phone]:
    phone, app = Phone(), web.Application()
    app.router.add_post("/", phone.notify)
    async with TestServer(app) as server:
        phone.url = f"json://127.0.0.1:{server.port}/"
        yield phone
        phone.answers.set()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def channel(phone: Phone, clock: FakeClock, tmp_path: Path) -> AppriseChannel:
    targets = {"phone": phone.url, "odd": "nonsense://x"}
    return AppriseChannel(AppriseSettings(targets=targets), ChannelHome("apprise", tmp_path, clock))


def to(chat: str, *, may_be_sent: bool = False) -> OutboundMessage:
    return OutboundMessage("apprise", chat, "The backup is done.", may_be_sent=may_be_sent)


async def test_notification_reaches_its_target(channel: AppriseChannel, phone: Phone) -> None:
    assert await channel.send(to("phone")) == Sent()
    assert phone.texts == ["The backup is done."]


async def test_refused_notification_fails_with_the_words_of_apprise(channel: AppriseChannel, phone: Phone) -> None:
    phone.status = 403
    sent = await channel.send(to("phone"))
    assert sent.state == "failed"
    assert "Failed to send JSON POST notification" in sent.reason
    assert len(phone.texts) == 1


async def test_target_that_does_not_answer_in_time_is_unknown(
    channel: AppriseChannel, phone: Phone, clock: FakeClock
) -> None:
    phone.answers.clear()
    sending = asyncio.create_task(channel.send(to("phone")))
    await phone.came.wait()
    await clock.sleep(TIMEOUT_S)
    assert (await sending).state == "unknown"


async def test_notification_that_may_be_sent_is_not_sent_again(channel: AppriseChannel, phone: Phone) -> None:
    assert (await channel.send(to("phone", may_be_sent=True))).state == "unknown"
    assert not phone.texts


@pytest.mark.parametrize(("chat", "reason"), [("pager", "available: phone, odd"), ("odd", "doesn't support the URL")])
async def test_wrong_target_fails(channel: AppriseChannel, chat: str, reason: str) -> None:
    sent = await channel.send(to(chat))
    assert sent.state == "failed"
    assert reason in sent.reason


async def test_check_names_the_targets_that_apprise_does_not_know(phone: Phone) -> None:
    assert await KIND.check(AppriseSettings(targets={"phone": phone.url})) == "targets phone"
    with pytest.raises(ConfigError, match="URL of odd"):
        await KIND.check(AppriseSettings(targets={"phone": phone.url, "odd": "nonsense://x"}))


async def test_alarms_reach_a_target_by_its_name(serve: Serve, channel: AppriseChannel, phone: Phone) -> None:
    revoked = MemoryChannel("irc")
    revoked.is_revoked = True
    async with serve(channels=[revoked, channel], alarms=["apprise:phone"]):
        async with asyncio.timeout(PATIENCE):
            await phone.came.wait()
    assert "Channel irc is refused" in phone.texts[0]
