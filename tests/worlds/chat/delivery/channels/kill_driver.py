"""A process that sends messages to a chat through a channel, and kills itself before or after a send.

    kill_driver.py MODULE:KIND SETTINGS FOLDER CHAT STEP CONTENT …

SETTINGS are JSON. Steps are the moments before and after each send; STEP 0 runs to the end, and prints what the outbox
says of each message.
"""

import asyncio
import importlib
import os
import signal
import sys
from pathlib import Path

import msgspec

from denizen.ports import Accept, Channel, Fetch, InboundMessage, OutboundMessage, Sent
from denizen.ports.channel import ChannelHome, ChannelKind
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile

sys.path.insert(0, str(Path(__file__).parents[5]))
MODULE_AND_KIND, SETTINGS, FOLDER, CHAT, STEP, *CONTENTS = sys.argv[1:]
MAX_SLEEP_S = 0.05


class QuickClock(SystemClock):
    """A clock whose sleeps are short."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, MAX_SLEEP_S))


class MortalChannel:
    """A channel whose process dies at a step."""

    def __init__(self, channel: Channel) -> None:
        self.name, self.limits, self._channel = channel.name, channel.limits, channel
        self._steps = 0

    async def receive(self, accept: Accept) -> None:
        await self._channel.receive(accept)

    async def send(self, message: OutboundMessage) -> Sent:
        self._pass()
        sent = await self._channel.send(message)
        if sent.state != "later":
            self._pass()
        else:
            self._steps -= 1
        return sent

    def _pass(self) -> None:
        self._steps += 1
        if self._steps == int(STEP):
            os.kill(os.getpid(), signal.SIGKILL)


async def accept(_: InboundMessage, fetch: Fetch | None = None) -> bool:
    return True


async def main() -> None:
    module, _, name = MODULE_AND_KIND.partition(":")
    kind: ChannelKind = getattr(importlib.import_module(module), name)
    clock = QuickClock()
    home = Path(FOLDER) / "channel"
    home.mkdir(mode=0o700, exist_ok=True)
    settings = msgspec.json.decode(SETTINGS, type=kind.settings)
    channel = MortalChannel(kind.connect(settings, ChannelHome("fake", home, clock)))
    database = Database(SqliteFile(Path(FOLDER) / "gateway.db"), clock)
    outbox = Outbox(database, {"fake": channel}, clock=clock)
    for content in CONTENTS:
        await outbox.put(OutboundMessage("fake", CHAT, content, id=content))
    tasks = [asyncio.create_task(each) for each in (channel.receive(accept), outbox.run())]
    while await database.find(outbound.unsent_chats):
        await asyncio.sleep(MAX_SLEEP_S)
        for task in tasks:
            if task.done():
                task.result()
    for row in await outbox.replies("fake", CHAT, after=0, most=10_000, wait=0):
        print(row.message.content, row.state)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    database.close()


asyncio.run(main())
