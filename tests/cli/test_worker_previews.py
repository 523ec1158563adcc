"""Previews of turns that a worker runs: the gateway shows them, and the delivery replaces them."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.gateway import PATIENCE, GatewayProgram, WorkerProgram, share
from tests.cli.model import Model, stalls
from tests.worlds.chat.delivery.channels.servers.telegram import ANN, TOKEN, TelegramServer

from denizen.messages import AssistantMessage, Text
from denizen.testing import Step

REPLY = "There are plums, pears, and apples."


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (no process tells another)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("is_killed", [False, True], ids=["worker goes on", "worker is killed"])
async def test_preview_of_a_worker_becomes_the_reply(
    home: Path,
    postgres_url: str,
    model: Model,
    gateway: GatewayProgram,
    workers: list[WorkerProgram],
    *,
    is_killed: bool,
) -> None:
    share(home, postgres_url, "turns = 1\n")
    model.plays(stalls("This keeps the gateway's only turn busy"))
    head, first_word, *rest = model.server.wire.streamed(AssistantMessage([Text(REPLY)]))
    model.server.send(head, first_word, Step.HOLD, *rest)
    model.plays(REPLY)
    async with TelegramServer().serving() as telegram:
        with (home / "denizen.toml").open("a") as settings:
            settings.write(
                f'[channels.telegram]\ntoken = "{TOKEN}"\nbase_url = "{telegram.url}"\nallow = ["{ANN["id"]}"]\n'
            )
        await gateway.start()
        await gateway.post("ann", "Wait")
        await until(lambda: model.requests)
        await workers[0].start()
        await telegram.write("What fruit is there?")
        await until(lambda: [message["text"] for message in telegram.messages] == ["There …"])
        if is_killed:
            await workers[0].end(signal.SIGKILL)
            await workers[1].start()
        else:
            model.server.release()
        await until(lambda: [message["text"] for message in telegram.messages] == [REPLY])
        assert telegram.calls["sendMessage"] == 1
        await gateway.end(signal.SIGKILL)
