"""Channels: the memory that each adds to a gateway, and what a message through one costs."""

import asyncio
import json
import os
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.contenders import Broken, Entry, loopback, scratch
from benchmarks.gateway import Gateway, serving
from benchmarks.hall import Plan
from benchmarks.report import Goal, Samples, Table, number
from benchmarks.scene import TICKET, WrongAnswer
from benchmarks.services import WebhookCaller, services, toml, webhook

NOTE = """\
Resident memory of `denizen gateway`, {settled:g} s after it listens, with each kind of channel alone and with all of
them, *over* one without channels. They are connected to servers on this machine (Telegram's and Slack's are the
tests'); discord.py knows only Discord's own, so that one is measured while it tries to connect. *Imported* are the
packages of channels that the process has loaded."""
MESSAGE_NOTE = """\
CPU of the whole process for a message and its reply, {count} each, one after another in new chats: posted to a signed
webhook, whose reply is posted to a program; and through `/api/messages` and `/api/replies`. One gateway, in turn; the
model answers at once. Medians (least–most) of {rounds}."""
COLUMNS = ("channel", "MB", "over, MB", "imported")
MESSAGE_COLUMNS = ("message through", "CPU ms", "× HTTP")
PACKAGES = ("telegram", "slack_sdk", "discord", "nio", "pydle", "aioimaplib", "aiosmtplib", "slixmpp", "apprise")
OWN = {
    "telegram": {"telegram"},
    "slack": {"slack_sdk"},
    "discord": {"discord"},
    "matrix": {"nio"},
    "irc": {"pydle"},
    "email": {"aioimaplib", "aiosmtplib"},
    "xmpp": {"slixmpp"},
    "webhook": set[str](),
}
SETTLED = 6.0
ONE_MB, ALL_MB, MESSAGE_RATIO = 25, 75, 2
MESSAGES = 20  # times a plan's repeats


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Memory, and which packages were imported."""
    result = Table("Memory of channels", NOTE.format(settled=SETTLED), COLUMNS)
    with scratch() as folder, services(folder) as tables, loopback() as model:
        base, loaded = _gateway(model.url("echo"), "")
        result.add("none", number(base), "", ", ".join(loaded))
        strangers = len(loaded)
        for name, table in tables.items():
            size, loaded = _gateway(model.url("echo"), table)
            strangers += len({*loaded} - OWN[name])
            result.add(name, number(size), number(size - base), ", ".join(loaded))
            result.goals.append(Goal(f"memory of a gateway with {name}, over one without", ONE_MB, size - base, "MB"))
        size, loaded = _gateway(model.url("echo"), "".join(tables.values()))
        result.add("all eight", number(size), number(size - base), ", ".join(loaded))
        result.goals.append(Goal("memory of a gateway with all eight, over one without", ALL_MB, size - base, "MB"))
    result.goals.append(Goal("packages of channels that aren't configured, imported", 0, strangers, ""))
    return result


def message(plan: Plan, peers: Sequence[Entry]) -> Table:
    """CPU of a message through a webhook, and through HTTP."""
    count, rounds = MESSAGES * plan.repeats, plan.repeats
    result = Table("A message through a channel", MESSAGE_NOTE.format(count=count, rounds=rounds), MESSAGE_COLUMNS)
    with loopback() as model:
        hook, http = asyncio.run(_messages(model.url("echo"), count, rounds))
    result.add("HTTP", http, "")
    result.add("webhook", hook, f"{hook.beside(http):.2f} ×")
    result.goals.append(Goal("a message through a webhook, over one through HTTP", MESSAGE_RATIO, hook.beside(http)))
    return result


def _gateway(model: str, settings: str) -> tuple[float, list[str]]:
    """MB of a gateway with these settings once it is at rest, and the packages of channels that it has imported.

    Raises `Broken` where a channel but Discord's isn't connected.
    """
    os.environ["PYTHONPROFILEIMPORTTIME"] = "1"  # the log then lists what is imported
    try:
        with scratch() as home, serving(model, home, settings) as place:
            time.sleep(SETTLED)
            size = int(Path(f"/proc/{place['pid']}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
            _check_connected(place)
            log = (home / "gateway" / "log").read_text()
    finally:
        del os.environ["PYTHONPROFILEIMPORTTIME"]
    imported = {line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")}
    return size / 2**20, [package for package in PACKAGES if package in imported]


def _check_connected(place: Mapping[str, Any]) -> None:
    asked = urllib.request.Request(f"{place['url']}/api/status", headers={"Authorization": f"Bearer {place['token']}"})
    with urllib.request.urlopen(asked) as answer:
        channels = json.load(answer)["channels"]
    for name, state in channels.items():
        if name != "discord" and not (state.get("connected") and not state.get("last_error")):
            raise Broken(f"{name} isn't connected: {state}")


async def _messages(model: str, count: int, rounds: int) -> tuple[Samples, Samples]:
    """CPU ms of a message through the webhook, and through HTTP."""
    from tests.worlds.moo.djangomoo import free_port, wait_for_port

    port = free_port()
    hook, http = list[float](), list[float]()
    async with aiohttp.ClientSession() as session:
        caller = WebhookCaller(session, f"http://127.0.0.1:{port}/")
        await caller.start()
        with scratch() as home, serving(model, home, toml("webhook", webhook(port, caller.url))) as place:
            await asyncio.to_thread(wait_for_port, port)
            gateway = Gateway(session, **place)
            numbers = iter(range(10**8))
            for each in range(rounds + 1):
                hook.append(await _cost(gateway, numbers, count, f"hook{each}", caller))
                http.append(await _cost(gateway, numbers, count, f"http{each}", None))
        await caller.stop()
    return Samples(hook[1:]), Samples(http[1:])  # the first of each warms the process up


async def _cost(gateway: Gateway, numbers: Any, count: int, chat: str, caller: WebhookCaller | None) -> float:
    begun = gateway.cpu()
    for _ in range(count):
        ticket = f"{TICKET}{next(numbers):08}"
        if caller:
            reply: str | None = await caller.talk(chat, ticket, time.time())
        else:
            await gateway.post(chat, ticket)
            reply = await gateway.reply(chat)
        if ticket.removeprefix(TICKET) not in (reply or ""):
            raise WrongAnswer(f"{reply!r} to {ticket}")
    return (gateway.cpu() - begun) * 1e3 / count
