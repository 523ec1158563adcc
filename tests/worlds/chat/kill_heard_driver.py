"""A gateway that is told a second message while it answers the first, and kills itself at the end of that turn.

    kill_heard_driver.py HOME answered|over|never

It dies when the answer is written, or when the turn is over and the ledger doesn't know. Where it lives, it prints what
each reply answers.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from denizen import Agent, load_config
from denizen.events import LlmEnd, RunEvent
from denizen.messages import AssistantMessage, Text, ToolCall, UserMessage
from denizen.ports import InboundMessage, ModelRequest, OutboundMessage, Parked, QueuedTurn
from denizen.runtime.clock import SystemClock
from denizen.testing import ScriptedModel
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.outbound import ALSO
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.settings import CronSettings
from denizen.worlds.chat.timers.cron import Cron
from denizen.worlds.chat.turns.turn_runner import TurnRunner

HOME, DIES = Path(sys.argv[1]), sys.argv[2]
KEY = "agent:main:channel:http:account:default:peer:direct:ann"
FIRST, SECOND = (InboundMessage("http", "ann", "ann", each, KEY, id=each) for each in ("first", "second"))


def die_when(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


class MortalRunner(TurnRunner):
    async def run(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
        outcome = await super().run(turn)
        die_when(DIES == "over")
        return outcome


async def main() -> None:
    clock, stop = SystemClock(), asyncio.Event()
    config = load_config(
        home=HOME,
        environ={},
        cwd=HOME,
        overrides={"gateway": {"grace": 0.0, "heartbeat": {"enabled": False}, "when_busy": {"http": "steer"}}},
    )
    database = Database(SqliteFile(HOME / "gateway.db"), clock)
    outbox = Outbox(database, {}, clock=clock)

    async def listen_or_answer(request: ModelRequest) -> AssistantMessage | str:
        if any(isinstance(each, UserMessage) and "second" in each.text for each in request.messages):
            return "both"
        await gateway.accept(SECOND)
        for _ in range(20):
            await database.run(lambda _: None)
        return AssistantMessage([Text("wait"), ToolCall(f"call-{len(request.messages)}", "ls", {})])

    def hear(_: str, event: RunEvent) -> None:
        die_when(DIES == "answered" and isinstance(event, LlmEnd) and event.message.text == "both")

    model = ScriptedModel([] if DIES == "never" else [listen_or_answer] * 20)
    async with Agent(config, profile="gateway", model=model, clock=clock, environ={}) as agent:
        cron = Cron(database, clock=clock, zone=None, settings=CronSettings())
        gateway = Gateway(agent, outbox, cron)
        gateway.runner = MortalRunner(agent, outbox, gateway.listeners, gateway.metrics, gateway.caps)
        gateway.listeners.of_all.append(hear)
        await gateway.accept(FIRST)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(gateway.run(stop))
            for message in (FIRST, SECOND):
                await outbox.outcome(message, ledger.OVER)
            for reply in await outbox.replies("http", "ann", after=0, most=10, wait=0):
                sent = reply.message
                print(sent.in_reply_to, *sent.metadata.get(ALSO, ()), "→", sent.content)
            stop.set()
    database.close()


asyncio.run(main())
