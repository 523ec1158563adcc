"""A day of one assistant in six places: its gateway is killed four times, and everything arrives once, in its place.

The gateway is a program with the real clock, so a flood limit asks for one second where the service would say sixty.
"""

import asyncio
import os
import re
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.character import CharacterProgram
from tests.cli.gateway import PATIENCE, GatewayProgram
from tests.worlds.chat.delivery.channels.servers.irc import Person, ngircd
from tests.worlds.chat.delivery.channels.servers.program import self_signed
from tests.worlds.chat.delivery.channels.servers.slack import ANN as SLACK_ANN
from tests.worlds.chat.delivery.channels.servers.slack import APP_TOKEN, BEN, BOT_TOKEN, SlackServer
from tests.worlds.chat.delivery.channels.servers.synapse_server import Synapse
from tests.worlds.chat.delivery.channels.servers.telegram import ANN as OWNER
from tests.worlds.chat.delivery.channels.servers.telegram import TOKEN, TelegramServer
from tests.worlds.chat.delivery.channels.test_email import AGENT, ANN, Mailbox, MailService
from tests.worlds.chat.delivery.channels.test_matrix import MatrixEnd
from tests.worlds.moo.djangomoo import DjangoMoo

from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.testing import FarEnd, LoopbackOpenAI, LoopbackRequest, Step

pytestmark = pytest.mark.needs("ngircd", "dovecot", "openssl", "redis-server")

FLOOD_S = 1.0
POLL_S = 0.05
LUNCH, RIPE, HARVEST, WALL = "Lunch is at noon.", "Plums and pears.", "The harvest is in.", "A wall around the harbour."


class KillingMail(MailService):
    """A mail service that can kill the gateway once it has taken a mail with these words, before it says so."""

    kills_at = ""
    gateway: GatewayProgram

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        answer = await super().handle_DATA(server, _session, envelope)
        if self.kills_at and self.kills_at.encode() in envelope.content:
            self.kills_at = ""
            self.gateway.kill()
        return answer


class Day:
    """The services with their people, the model, and the gateway between them."""

    irc: Person
    matrix: MatrixEnd
    telegram: TelegramServer
    slack: SlackServer
    mail: KillingMail
    model: LoopbackOpenAI
    gateway: GatewayProgram
    unwanted: Path

    def answer(self, request: LoopbackRequest) -> AssistantMessage | str:
        """The model's words: what is asked for first, then about its result."""
        *_, last = messages = request.json["messages"]
        asked = str(next(each["content"] for each in reversed(messages) if each["role"] == "user"))
        is_done = last["role"] == "tool"
        if "cleo about lunch" in asked:
            return "Cleo knows." if is_done else call("message", text=LUNCH, channel="irc", chat="cleo")
        if "Delete the notes" in asked:
            return "I left them." if is_done else call("bash", command=f"rm {self.unwanted}", unsandboxed=True)
        if "every harvest" in asked:
            when = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
            return "I will report." if is_done else call("cron", action="add", text="Report it", kind="at", when=when)
        if "Report it" in asked:
            return HARVEST
        if "[Operator]: What are you building?" in asked:
            self.gateway.kill()
            return WALL
        return f"Noted: {re.findall('[a-z]+[?]', asked)[-1]}"

    async def begin(self) -> None:
        """Start the gateway, also after it was killed."""
        await self.gateway.end(signal.SIGKILL)
        await self.gateway.start()

    @property
    def questions(self) -> int:
        """How many questions the owner got."""
        return len([each for each in self.telegram.messages if "reply_markup" in each])

    async def cleo_hears(self, count: int) -> list[str]:
        """What Cleo hears on IRC, once it is so much."""

        async def has_come() -> bool:
            await self.irc.say()
            return len(self.irc.heard["cleo"]) >= count

        await until(has_come)
        return self.irc.heard["cleo"]

    async def has_sent_everything(self) -> bool:
        """Whether nothing waits to be sent, and all is known to have arrived."""
        _, status = await self.gateway.request("GET", "/api/status")
        return {state for state, count in status["outbox"].items() if count} <= {"sent"}

    async def is_in_room(self) -> bool:
        """Whether the assistant has joined the room that Alice invited it to."""
        events = await self.matrix.alice.timeline(self.matrix.rooms["home"])
        bot = self.matrix.bot.id
        return any(each.get("state_key") == bot and each["content"].get("membership") == "join" for each in events)


def call(name: str, **args: Any) -> AssistantMessage:
    """An answer that asks for a tool."""
    return AssistantMessage([ToolCall(f"call-{name}", name, args)], stop_reason="tool_calls")


async def until(is_so: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    """Wait until something of another process is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(POLL_S)


async def arrives(service: FarEnd, *texts: str, chat: str = "home") -> None:
    """Wait until a chat has these texts, and no others."""

    async def has_come() -> bool:
        return [*await service.arrived(chat)] == [*texts]

    await until(has_come)


async def settles(day: Day, count: int) -> None:
    """Wait until the owner has got so many messages, and nothing is on its way: killed then, it might arrive unseen."""
    await until(lambda: len(day.telegram.messages) == count)
    await until(day.has_sent_everything)


def settings_of(day: Day, irc_port: int, imap_port: int, certificate: Path) -> str:
    """The configuration of the home."""
    tables: dict[str, dict[str, Any]] = {
        "providers.test": {"base_url": day.model.base_url},
        "gateway": {"owner": f"telegram:{OWNER['id']}", "heartbeat": {"enabled": False}},
        "channels.irc": {"server": "127.0.0.1", "port": irc_port, "tls": False, "trust_nicks": True},
        "channels.matrix": msgspec.structs.asdict(day.matrix.settings),
        "channels.telegram": {"token": TOKEN, "base_url": day.telegram.url},
        "channels.slack": {
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "base_url": f"{day.slack.url}/api/",
            "allow": [SLACK_ANN, BEN],
        },
        "channels.email": {
            "address": AGENT,
            "password": "secret",
            "imap": f"127.0.0.1:{imap_port}",
            "smtp": f"127.0.0.1:{day.mail.smtp.port}",
            "authserv": "mx.den.example",
            "ca": str(certificate),
            "allow": [ANN],
        },
    }
    lines = ['model = "test:scripted"']
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return msgspec.json.encode(value).decode()


@pytest.fixture
async def day(
    home: Path, tmp_path: Path, synapse: Synapse, loopback_openai: LoopbackOpenAI, warm_python: list[str]
) -> AsyncIterator[Day]:
    async with AsyncExitStack() as stack:
        day = Day()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-day-")))
        folder.chmod(0o755)  # the mail server isn't always run by who owns it
        certificate, key = self_signed(folder)
        day.model = loopback_openai
        day.model.otherwise = day.answer
        day.unwanted = tmp_path / "notes.txt"
        day.unwanted.write_text("mine")
        server = stack.enter_context(ngircd(tmp_path))
        day.irc = await Person.connect(server, "cleo")
        stack.push_async_callback(day.irc.leave)
        day.matrix = await stack.enter_async_context(MatrixEnd.opened(synapse))
        day.telegram = await stack.enter_async_context(TelegramServer().serving())
        day.slack = await stack.enter_async_context(SlackServer().serving())
        mailbox = Mailbox(folder)
        stack.callback(mailbox.stop)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, key)
        day.mail = KillingMail(mailbox, tls)
        day.mail.smtp.start()
        stack.callback(day.mail.smtp.stop)
        (home / "denizen.toml").write_text(settings_of(day, server.port, mailbox.port, certificate))
        (home / "denizen.toml").chmod(0o600)
        user = tmp_path / "user"
        user.mkdir()
        environ = os.environ | {"DENIZEN_HOME": str(home), "HOME": str(user)}
        day.gateway = day.mail.gateway = GatewayProgram(home, environ, python=warm_python)
        stack.push_async_callback(day.gateway.end, signal.SIGKILL)
        await day.begin()
        await until((home / "channels" / "email" / "position.json").exists)
        await until(day.is_in_room)
        yield day


@pytest.fixture
async def mason(
    moo_server: DjangoMoo, day: Day, home: Path, tmp_path: Path, warm_python: list[str]
) -> AsyncIterator[CharacterProgram]:
    """A character in the gateway's home, which thinks only when it is instructed."""
    environ = os.environ | {"DENIZEN_HOME": str(home), "HOME": str(tmp_path / "user")}
    world = f'host = "127.0.0.1"\nport = {moo_server.port}\n'
    character = CharacterProgram(tmp_path / "Mason", environ, warm_python, world)
    await character.start()
    yield character
    await character.end()


@pytest.mark.usefixtures("mason")
async def test_everything_of_a_day_arrives_once_in_order_and_in_place(day: Day) -> None:
    await pair_on_irc(day)
    await approve_in_telegram_for_slack(day)
    await ask_in_matrix_during_a_flood(day)
    await ask_the_character_from_telegram(day)
    await refuse_to_delete_by_mail(day)
    await report_a_job_by_mail(day)

    await until(day.has_sent_everything)
    _, status = await day.gateway.request("GET", "/api/status")
    assert {state for state, count in status["inbox"].items() if count} == {"done"}
    code, greeting, *heard = await day.cleo_hears(4)
    assert ("code is" in code, "paired" in greeting, heard) == (True, True, ["Noted: pears?", LUNCH])
    to_owner = [text.partition("(")[0] for text in await day.telegram.arrived()]
    assert to_owner == [
        "irc:cleo may speak now.",
        "Allow message",
        "Approved.",
        f"mason: {WALL}",
        "Allow bash",
        "Denied.",
    ]
    assert await day.slack.arrived() == ["Cleo knows."]
    assert await day.slack.arrived("work") == ["Noted: figs?", "Noted: quinces?"]
    assert await day.matrix.arrived() == [RIPE]
    assert "RoomMessageText" not in day.gateway.log  # the libraries don't write of each message
    assert sorted(await day.mail.arrived()) == ["I left them.", "I will report.", HARVEST]


async def pair_on_irc(day: Day) -> None:
    """A stranger asks, and the owner admits them from another channel."""
    await day.irc.tell("denizen", "plums?")
    [asked] = await day.cleo_hears(1)
    [code] = re.findall("code is ([A-Z]{6})", asked)
    await day.telegram.write(f"/pair {code}")
    await day.cleo_hears(2)
    await day.irc.tell("denizen", "pears?")
    assert (await day.cleo_hears(3))[2] == "Noted: pears?"


async def approve_in_telegram_for_slack(day: Day) -> None:
    """The gateway dies while a question waits, and people go on: one answers it, another writes."""
    await day.slack.write("Tell cleo about lunch")
    await until(lambda: day.questions == 1)
    await until(day.has_sent_everything)
    day.gateway.kill()
    await day.telegram.press("Approve")
    for words in ("figs?", "quinces?"):
        await day.slack.write(words, chat="work")
    await day.begin()
    await arrives(day.slack, "Cleo knows.")
    await arrives(day.slack, "Noted: figs?", "Noted: quinces?", chat="work")
    await day.cleo_hears(4)
    await settles(day, 3)


async def ask_in_matrix_during_a_flood(day: Day) -> None:
    """The preview meets a flood limit, then the reply does, and the gateway dies while the reply waits."""
    events = day.model.wire.streamed(AssistantMessage([Text(RIPE)]))
    day.model.send(*events[:-2], Step.HOLD, *events[-2:])
    await day.matrix.flood(FLOOD_S)
    await day.matrix.write("What is ripe?")
    await until(lambda: day.matrix.proxy.refused == 1)
    day.model.release()
    await until(lambda: day.matrix.proxy.refused > 1)
    day.gateway.kill()
    await day.begin()
    await day.matrix.flood(0)
    await arrives(day.matrix, RIPE)


async def ask_the_character_from_telegram(day: Day) -> None:
    """The gateway dies while a character in a text world thinks about the owner's question."""
    await day.telegram.write("/in mason What are you building?")
    await asyncio.wait_for(day.gateway.process.wait(), PATIENCE)
    await day.begin()
    await settles(day, 4)


async def refuse_to_delete_by_mail(day: Day) -> None:
    """A mail asks to delete a file: the owner is asked in Telegram, and the file stays."""
    day.mail.receive(day.mail.mail("Delete the notes"))
    await until(lambda: day.questions == 2)
    await day.telegram.press("Deny")
    await arrives(day.mail, "I left them.")
    await settles(day, 6)
    assert day.unwanted.exists()


async def report_a_job_by_mail(day: Day) -> None:
    """The gateway dies when the mail service has taken the report, and hasn't said so."""
    day.mail.kills_at = HARVEST
    day.mail.receive(day.mail.mail("Tell me of every harvest"))
    await until(lambda: not day.mail.kills_at)
    await day.begin()
