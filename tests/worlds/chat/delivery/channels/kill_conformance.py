"""The channel suite with kills: the gateway's process dies before and after each send, or another uses the account."""

import asyncio
import itertools
import re
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests import soak
from tests.conftest import Drive

from denizen.config import Config
from denizen.ports import Channel, ChannelHome, ChannelRefused, ChannelSettings
from denizen.testing import ChannelConformance, FakeClock, FarEnd
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channel_kinds import load_kind, open_channels

DRIVER = Path(__file__).with_name("kill_driver.py")
MESSAGES = soak.share(13)
"""Of each round; it dies twice for each message."""


def home_of(folder: Path, channel: str) -> ChannelHome:
    """The channel's folder in the process of a test with this temporary folder."""
    return ChannelHome(channel, folder / "channel", FakeClock())


class KilledChannelConformance(ChannelConformance):
    """Subclass it instead of `ChannelConformance`, and define how another process opens the channel."""

    @pytest.fixture
    def opening(self) -> tuple[str, ChannelSettings]:
        """The path of the kind, such as `denizen.worlds.chat.delivery.channels.irc:KIND`, and the settings."""
        raise NotImplementedError

    @pytest.fixture
    def driver(self, drive: Drive, opening: tuple[str, ChannelSettings]) -> Drive:
        """`driver(FOLDER, CHAT, STEP, content, …)`: run `kill_driver.py` with this channel."""
        kind, settings = opening
        return partial(drive, DRIVER, kind, msgspec.json.encode(settings).decode())

    async def test_killed_send_is_found_out(
        self, channel: Channel, far_end: FarEnd, driver: Drive, tmp_path: Path
    ) -> None:
        if not channel.limits.reconciles:
            pytest.skip("the channel can't find out whether a message was sent")
        assert await self.kill_each_send(channel, far_end, driver, tmp_path) == 0

    async def test_killed_send_is_reported(
        self, channel: Channel, far_end: FarEnd, driver: Drive, tmp_path: Path
    ) -> None:
        if channel.limits.reconciles:
            pytest.skip("the channel finds it out")
        assert await self.kill_each_send(channel, far_end, driver, tmp_path) == 2 * MESSAGES

    async def test_second_gateway_is_refused_by_name(
        self, channel: Channel, opening: tuple[str, ChannelSettings], tmp_path: Path
    ) -> None:
        _, settings = opening
        config, locks = Config(channels={channel.name: settings}), tmp_path / "locks"
        with (
            open_channels(config, tmp_path / "one", locks, FakeClock()),
            open_channels(config, tmp_path / "two", locks, FakeClock()) as channels,
        ):
            account = load_kind(channel.name).account(settings)
            with pytest.raises(ChannelRefused, match=f"{re.escape(account)} is in use by another gateway"):
                await channels[channel.name].receive(Inbox().accept)

    async def kill_each_send(self, channel: Channel, far_end: FarEnd, driver: Drive, folder: Path) -> int:
        """Kill the process at each step of a round of messages, and let another one go on: how many are unknown."""
        unknown = 0
        async with self.talking(channel, far_end) as (_, message):
            pass
        for step in itertools.count(1):
            contents = [f"{step}-{number}" for number in range(1, MESSAGES + 1)]
            first = await asyncio.to_thread(driver, folder, message.chat, step, *contents)
            if first.returncode == 0:
                break
            assert first.returncode == -9, first.stderr
            again = await asyncio.to_thread(driver, folder, message.chat, 0, *contents)
            states = [line.rsplit(" ", 1) for line in again.stdout.splitlines()][-MESSAGES:]
            assert [content for content, _ in states] == contents, f"killed at step {step}: {again.stderr}"
            arrived = [text for text in await far_end.arrived() if text in contents]
            maybe = {content for content, state in states if state == "unknown"}
            expected = [content for content in contents if content not in maybe or content in arrived]
            assert arrived == expected, f"killed at step {step}: {arrived}, and {states} {again.stderr}"
            assert all(state == "sent" for content, state in states if content not in maybe)
            unknown += len(maybe)
        assert step == 2 * MESSAGES + 1
        return unknown
