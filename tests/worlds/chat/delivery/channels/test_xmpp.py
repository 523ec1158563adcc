"""The XMPP channel, with Prosody."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from msgspec.structs import replace
from slixmpp import JID
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.chat.delivery.channels.servers import xmpp
from tests.worlds.chat.delivery.channels.servers.program import Relay
from tests.worlds.chat.delivery.channels.servers.xmpp import Person, XmppServer

from denizen.errors import ConfigError
from denizen.ports import ChannelHome, ChannelRefused, ChannelSettings, OutboundMessage
from denizen.testing import FakeClock, FarEnd
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channels.xmpp import KIND, XmppChannel, XmppSettings

ROOM = "club@rooms.localhost"

pytestmark = pytest.mark.needs("prosody", "openssl")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[XmppServer]:
    with xmpp.prosody(tmp_path_factory.mktemp("prosody")) as server:
        yield server


@pytest.fixture
def own(server: XmppServer) -> str:
    """The address of an agent that nobody has written to."""
    return server.add_account(f"agent{uuid4().hex}")


@pytest.fixture
async def relay(server: XmppServer) -> AsyncGenerator[Relay]:
    relay = await Relay(server.port).start()
    yield relay
    await relay.stop()


@pytest.fixture
async def home(server: XmppServer, own: str) -> AsyncGenerator[Person]:
    person = await Person(server, "home", own).connect(ROOM)
    yield person
    await person.leave()


@pytest.fixture
async def work(server: XmppServer, own: str) -> AsyncGenerator[Person]:
    person = await Person(server, "work", own).connect()
    yield person
    await person.leave()


def settings(server: XmppServer, own: str, port: int, **others: object) -> XmppSettings:
    common = {"jid": own, "password": "secret", "host": "127.0.0.1", "port": port, "ca": server.certificate}
    return msgspec.convert({**common, "rooms": (ROOM,), **others}, XmppSettings)


@pytest.fixture
def channel(server: XmppServer, own: str, relay: Relay, tmp_path: Path) -> XmppChannel:
    return XmppChannel(settings(server, own, relay.port), ChannelHome("xmpp", tmp_path, FakeClock()))


class People(FarEnd):
    """Two persons, and a relay between the channel and the server."""

    def __init__(self, relay: Relay, home: Person, work: Person) -> None:
        self.people = {"home": home, "work": work}
        self._relay = relay

    async def write(self, content: str, *, chat: str = "home") -> None:
        person = self.people[chat]
        await person.write(person.agent, content)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        await self.people[chat].sync()
        return [*self.people[chat].read[self.people[chat].agent].values()]

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        home = self.people["home"]
        while "denizen" not in home.client.plugin["xep_0045"].get_roster(ROOM):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await home.write(ROOM, f"denizen: {content}" if addressed else content, kind="groupchat")

    async def edit(self, content: str) -> None:
        home = self.people["home"]
        await home.write(home.agent, content, edits=home.written["id"])

    async def refuse_edits(self) -> None:
        pytest.skip("servers don't refuse corrections")

    async def lose_answer(self) -> None:
        self._relay.deaf = True

    async def drop_connections(self) -> None:
        self._relay.cut()

    async def go_down(self) -> None:
        await self._relay.stop()

    async def come_back(self) -> None:
        await self._relay.start()


class TestOnProsody(KilledChannelConformance):
    @pytest.fixture
    def channel(self, channel: XmppChannel) -> XmppChannel:
        return channel

    @pytest.fixture
    def far_end(self, relay: Relay, home: Person, work: Person) -> FarEnd:
        return People(relay, home, work)

    @pytest.fixture
    def opening(self, server: XmppServer, own: str, relay: Relay) -> tuple[str, ChannelSettings]:
        # in no room: the server keeps killed sessions for a while, and with them their nick
        return f"{XmppSettings.__module__}:KIND", settings(server, own, relay.port, rooms=())


def to(chat: str, content: str = "Good day.") -> OutboundMessage:
    return OutboundMessage("xmpp", chat, content)


receiving = KilledChannelConformance().receiving


@asynccontextmanager
async def talking(channel: XmppChannel, person: Person) -> AsyncGenerator[Inbox]:
    """The channel is connected, and the person has written to it."""
    async with receiving(channel) as inbox:
        await person.write(person.agent, "Hello")
        await inbox.messages.get()
        yield inbox


async def sent_to_room(channel: XmppChannel, content: str = "Good day.") -> OutboundMessage:
    """What was sent to the room once the channel is in it."""
    message = to(ROOM, content)
    while (await channel.send(message)).state != "sent":  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)
    return message


# The account


async def test_certificate_is_verified(own: str, server: XmppServer, tmp_path: Path) -> None:
    channel = XmppChannel(settings(server, own, server.port, ca=""), ChannelHome("xmpp", tmp_path, FakeClock()))
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        await channel.receive(Inbox().accept)


async def test_direct_tls_is_used_by_setting(own: str, server: XmppServer) -> None:
    assert await KIND.check(settings(server, own, server.tls_port, direct_tls=True)) == own
    assert KIND.account(settings(server, own, 1)) == own


async def test_wrong_password_is_refused(own: str, server: XmppServer, tmp_path: Path) -> None:
    wrong = settings(server, own, server.port, password="wrong")
    with pytest.raises(ChannelRefused, match="refuses the password"):
        await XmppChannel(wrong, ChannelHome("xmpp", tmp_path, FakeClock())).receive(Inbox().accept)
    with pytest.raises(ChannelRefused, match="refuses the password"):
        await KIND.check(wrong)


async def test_check_reports_a_server_that_is_down(own: str, server: XmppServer) -> None:
    with pytest.raises(ConfigError, match="can't be reached"):
        await KIND.check(settings(server, own, 1))


# Receiving


async def test_message_written_meanwhile_is_received_later(own: str, channel: XmppChannel, home: Person) -> None:
    async with talking(channel, home):
        pass
    await home.write(own, "Are you there?")
    async with receiving(channel) as inbox:
        message = await inbox.messages.get()
    assert message.content == "Are you there?"
    assert message.sent_at != FakeClock().now()  # the server's time, not that of its arrival


async def test_restarted_gateway_continues_after_the_last_accepted_message(
    own: str, channel: XmppChannel, server: XmppServer, home: Person, tmp_path: Path
) -> None:
    async with talking(channel, home):
        pass
    for text in ("1", "2"):
        await home.write(own, text)
    restarted = XmppChannel(settings(server, own, server.port), ChannelHome("xmpp", tmp_path, FakeClock()))
    async with receiving(restarted) as inbox:
        assert [(await inbox.messages.get()).content for _ in range(2)] == ["1", "2"]


async def test_history_and_own_messages_of_a_room_are_dropped(channel: XmppChannel, home: Person) -> None:
    await home.write(ROOM, "denizen: old news", kind="groupchat")
    async with receiving(channel) as inbox:
        await sent_to_room(channel)
        await home.write(ROOM, "denizen, new?", kind="groupchat")
        message = await inbox.messages.get()
    assert (message.content, message.chat, message.is_addressed) == ("new?", ROOM, True)
    assert (message.sender, message.vouched_for) == (f"{ROOM}/home", "nothing")


# Sending


async def test_reply_to_a_room_is_found_in_its_archive(channel: XmppChannel, home: Person) -> None:
    async with receiving(channel):
        message = await sent_to_room(channel)
        assert (await channel.send(replace(message, may_be_sent=True))).state == "sent"
        await home.sync()
        assert [*home.read[ROOM].values()] == ["Good day."]


async def test_room_that_refuses_is_joined_later(
    channel: XmppChannel, work: Person, caplog: pytest.LogCaptureFixture
) -> None:
    rooms = work.client.plugin["xep_0045"]
    await rooms.join_muc_wait(JID(ROOM), "denizen", maxstanzas=0)
    async with receiving(channel):
        while f"can't join {ROOM}" not in caplog.text:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        rooms.leave_muc(ROOM, "denizen")
        await sent_to_room(channel)


async def test_chat_without_archived_messages_leaves_it_unknown(channel: XmppChannel, work: Person) -> None:
    async with talking(channel, work):
        assert (await channel.send(replace(to("home@localhost"), may_be_sent=True))).state == "unknown"
        later = datetime.now(UTC) + timedelta(minutes=1)
        written = replace(to("work@localhost"), may_be_sent=True, tried_at=later)
        assert (await channel.send(written)).state == "sent"


async def test_room_may_be_written_with_capitals(
    server: XmppServer, own: str, relay: Relay, home: Person, tmp_path: Path
) -> None:
    given = settings(server, own, relay.port, rooms=(ROOM.title(),))
    async with receiving(channel := XmppChannel(given, ChannelHome("xmpp", tmp_path, FakeClock()))):
        await sent_to_room(channel)
        await home.sync()
        assert [*home.read[ROOM].values()] == ["Good day."]


async def test_address_that_does_not_exist_is_refused_in_words(channel: XmppChannel, home: Person) -> None:
    async with talking(channel, home):
        sent = await channel.send(to("nobody@elsewhere.example"))
    assert sent.state == "failed"
    assert "refuses it: " in sent.reason


async def test_control_characters_are_dropped(own: str, channel: XmppChannel, home: Person) -> None:
    async with talking(channel, home):
        assert (await channel.send(to("home@localhost", "a\x00b\x07c\n<&>"))).state == "sent"
        await home.sync()
        assert [*home.read[own].values()][-1] == "abc\n<&>"


async def test_preview_becomes_the_reply(own: str, channel: XmppChannel, home: Person) -> None:
    async with talking(channel, home):
        draft = await channel.show("home@localhost", "", "Good …")
        assert await channel.show("home@localhost", draft, "Good day …") == draft
        assert (await channel.send(replace(to("home@localhost"), edits=draft))).native_id == draft
        await home.sync()
        assert [*home.read[own].values()] == ["Good day."]


async def test_server_without_archive_and_acknowledgements_leaves_it_unknown(own: str, tmp_path: Path) -> None:
    with xmpp.prosody(tmp_path, modules=()) as server:
        server.add_account(own.partition("@")[0])
        home = await Person(server, "home", own).connect()
        channel = XmppChannel(settings(server, own, server.port), ChannelHome("xmpp", tmp_path, FakeClock()))
        async with talking(channel, home):
            reply = to("home@localhost")
            assert (await channel.send(reply)).state == "sent"
            assert (await channel.send(replace(reply, may_be_sent=True))).state == "unknown"
            assert not channel.limits.reconciles
        await home.leave()
