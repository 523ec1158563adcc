"""The IRC channel, with ngircd and with InspIRCd and its services."""

import asyncio
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from ssl import SSLCertVerificationError

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.chat.delivery.channels.servers import irc
from tests.worlds.chat.delivery.channels.servers.irc import IrcServer, Person
from tests.worlds.chat.delivery.channels.servers.program import Relay

from denizen.errors import ConfigError
from denizen.ports import ChannelHome, ChannelRefused, ChannelSettings, OutboundMessage
from denizen.testing import FakeClock, FarEnd
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channels.irc import CONNECT_TIMEOUT_S, KIND, IrcChannel, IrcSettings

NICK = "denizen"


@pytest.fixture(scope="module")
def ngircd(tmp_path_factory: pytest.TempPathFactory) -> Generator[IrcServer]:
    with irc.ngircd(tmp_path_factory.mktemp("ngircd")) as server:
        yield server


@pytest.fixture(scope="module")
def inspircd(tmp_path_factory: pytest.TempPathFactory) -> Generator[IrcServer]:
    with irc.inspircd(tmp_path_factory.mktemp("inspircd")) as server:
        yield server


@pytest.fixture(scope="module")
def untagged(tmp_path_factory: pytest.TempPathFactory) -> Generator[IrcServer]:
    with irc.inspircd(tmp_path_factory.mktemp("untagged"), tags=False) as server:
        yield server


def settings_of(server: IrcServer, **settings: object) -> IrcSettings:
    common = {"server": "127.0.0.1", "port": server.port, "tls": False, "nick": NICK, "rooms": ("#club",)}
    return msgspec.convert(common | settings, IrcSettings)


def connected(server: IrcServer, folder: Path, **settings: object) -> IrcChannel:
    """A channel to the server, on which pauses take no time."""
    return IrcChannel(settings_of(server, **settings), ChannelHome("irc", folder, FakeClock()))


class People(FarEnd):
    """Two persons; both are in the room, and one may disconnect others."""

    def __init__(self, home: Person, work: Person, relay: Relay) -> None:
        self.people = {"home": home, "work": work}
        self._relay = relay

    async def write(self, content: str, *, chat: str = "home") -> None:
        await self.people[chat].tell(NICK, content)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        await self.people[chat].say()
        return self.people[chat].heard[chat]

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        home = self.people["home"]
        await home.meet(NICK, "#club")
        await home.tell("#club", f"{NICK}: {content}" if addressed else content)

    async def drop_connections(self) -> None:
        await self.people["work"].say("OPER root secret", f"KILL {NICK} :dropped")

    async def go_down(self) -> None:
        await self._relay.stop()

    async def come_back(self) -> None:
        await self._relay.start()


class IrcConformance(KilledChannelConformance):
    @pytest.fixture
    def server(self) -> IrcServer:
        raise NotImplementedError

    @pytest.fixture
    async def relay(self, server: IrcServer) -> AsyncGenerator[Relay]:
        relay = await Relay(server.port).start()
        yield relay
        await relay.stop()

    @pytest.fixture
    def channel(self, server: IrcServer, relay: Relay, tmp_path: Path) -> IrcChannel:
        return connected(server, tmp_path, port=relay.port)

    @pytest.fixture
    def opening(self, server: IrcServer) -> tuple[str, ChannelSettings]:
        return f"{IrcSettings.__module__}:KIND", settings_of(server)

    @pytest.fixture
    async def far_end(self, server: IrcServer, relay: Relay) -> AsyncGenerator[FarEnd]:
        home, work = await Person.connect(server, "home", "#club"), await Person.connect(server, "work", "#club")
        yield People(home, work, relay)
        await home.leave()
        await work.leave()


needs_ngircd = pytest.mark.needs("ngircd")
needs_inspircd = pytest.mark.needs("inspircd", "atheme-services", "openssl")


@needs_ngircd
class TestOnNgircd(IrcConformance):
    @pytest.fixture
    def server(self, ngircd: IrcServer) -> IrcServer:
        return ngircd


class PeopleWithTags(People):
    async def repeat(self, *, new_id: bool = False) -> None:
        """As a bouncer plays back; those that keep no ids leave them out."""
        said = [line for line in bytes(self._relay.answers).splitlines() if f" PRIVMSG {NICK} :".encode() in line]
        self._relay.answer((re.sub(rb"msgid=[^; ]*;?", b"", said[-1]) if new_id else said[-1]) + b"\r\n")

    async def write_as_bot(self, content: str) -> None:
        await self.people["work"].say(f"MODE {self.people['work'].nick} +B")
        await self.write(content, chat="work")


@needs_inspircd
class TestOnInspircd(IrcConformance):
    @pytest.fixture
    def server(self, inspircd: IrcServer) -> IrcServer:
        return inspircd

    @pytest.fixture
    async def far_end(self, server: IrcServer, relay: Relay) -> AsyncGenerator[FarEnd]:
        home, work = await Person.connect(server, "home", "#club"), await Person.connect(server, "work", "#club")
        yield PeopleWithTags(home, work, relay)
        await home.leave()
        await work.leave()


receiving = KilledChannelConformance().receiving


@asynccontextmanager
async def talking(channel: IrcChannel, person: Person) -> AsyncGenerator[Inbox]:
    """The channel is connected, and the person has written to it."""
    async with receiving(channel) as inbox:
        await person.tell(NICK, "Hello")
        await inbox.messages.get()
        yield inbox


@asynccontextmanager
async def ann_at(server: IrcServer, nick: str = "ann") -> AsyncGenerator[Person]:
    person = await Person.connect(server, nick, "#club")
    yield person
    await person.leave()


def to(chat: str, content: str = "Good day.") -> OutboundMessage:
    return OutboundMessage("irc", chat, content)


# The account


async def test_login_that_is_never_answered_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as server:
        settings = IrcSettings(server="127.0.0.1", port=server.sockets[0].getsockname()[1], tls=False)
        channel = IrcChannel(settings, ChannelHome("irc", tmp_path, FakeClock()))
        receiving = asyncio.create_task(channel.receive(Inbox().accept))
        await asked.wait()
        loop_time = asyncio.get_running_loop().time
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: loop_time() + CONNECT_TIMEOUT_S)
        with pytest.raises(ConnectionError, match="doesn't answer"):
            await receiving


@needs_inspircd
async def test_certificate_is_verified(inspircd: IrcServer, tmp_path: Path) -> None:
    channel = connected(inspircd, tmp_path, tls=True, port=inspircd.tls_port)
    with pytest.raises(SSLCertVerificationError):
        await channel.receive(Inbox().accept)


@needs_inspircd
async def test_private_authority_is_trusted_by_setting(inspircd: IrcServer, tmp_path: Path) -> None:
    channel = connected(inspircd, tmp_path, tls=True, port=inspircd.tls_port, ca=inspircd.certificate)
    async with ann_at(inspircd) as ann, talking(channel, ann):
        assert (await channel.send(to("ann"))).state == "sent"


@needs_inspircd
async def test_account_logs_in(inspircd: IrcServer, tmp_path: Path) -> None:
    async with ann_at(inspircd, "carol") as carol:
        await carol.log_in()
        channel = connected(inspircd, tmp_path, account="carol", password="secret")
        async with talking(channel, carol):
            assert any(f" 330 carol {NICK} carol " in line for line in await carol.say(f"WHOIS {NICK}"))


@needs_inspircd
async def test_wrong_password_is_refused(inspircd: IrcServer, tmp_path: Path) -> None:
    with pytest.raises(ChannelRefused, match="refuses the login"):
        await connected(inspircd, tmp_path, account="dan", password="wrong").receive(Inbox().accept)


@needs_ngircd
async def test_server_without_sasl_is_refused_an_account(ngircd: IrcServer, tmp_path: Path) -> None:
    with pytest.raises(ChannelRefused, match="has no SASL"):
        await connected(ngircd, tmp_path, account="dan", password="secret").receive(Inbox().accept)


@needs_ngircd
async def test_nick_in_use_gets_an_underscore(ngircd: IrcServer, tmp_path: Path) -> None:
    async with ann_at(ngircd, NICK), ann_at(ngircd) as ann, receiving(connected(ngircd, tmp_path)) as inbox:
        await ann.tell(f"{NICK}_", "Hello")
        assert (await inbox.messages.get()).content == "Hello"


@needs_ngircd
async def test_check_says_who_the_account_is(ngircd: IrcServer) -> None:
    settings = IrcSettings(server="127.0.0.1", port=ngircd.port, tls=False, nick=NICK)
    assert await KIND.check(settings) == f"{NICK} on 127.0.0.1"
    assert KIND.account(settings) == f"{NICK}@127.0.0.1:{ngircd.port}"


async def test_check_reports_a_server_that_is_down() -> None:
    with pytest.raises(ConfigError, match="Can't connect"):
        await KIND.check(IrcSettings(server="127.0.0.1", port=1))


@needs_ngircd
async def test_check_names_the_setting_for_a_port_without_tls() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        with pytest.raises(ConfigError, match=r"doesn't answer with TLS.* set tls = false"):
            await KIND.check(IrcSettings(server="127.0.0.1", port=server.sockets[0].getsockname()[1]))


async def test_stopped_gateway_leaves_with_a_reason(ngircd: IrcServer, tmp_path: Path) -> None:
    async with ann_at(ngircd) as ann:
        async with talking(connected(ngircd, tmp_path), ann):
            pass
        assert any("QUIT" in line and "The gateway is stopped." in line for line in await ann.say())


# Who writes


@needs_inspircd
@pytest.mark.parametrize("kind", ["inspircd", "untagged"])
async def test_sender_is_an_account_if_logged_in(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: IrcServer = request.getfixturevalue(kind)
    async with ann_at(server, "erin") as erin, receiving(connected(server, tmp_path)) as inbox:
        await erin.tell(NICK, "Hello")
        stranger = await inbox.messages.get()
        await erin.log_in()
        await erin.tell(NICK, "Hello")
        erin_herself = await inbox.messages.get()
    assert (stranger.sender, stranger.vouched_for) == ("erin", "nothing")
    assert (erin_herself.sender, erin_herself.vouched_for) == ("account:erin", "sender")


@needs_ngircd
@pytest.mark.parametrize(("trust_nicks", "vouched_for"), [(False, "nothing"), (True, "chat")])
async def test_nick_is_proof_of_identity_only_with_trust_nicks(
    trust_nicks: bool, vouched_for: str, ngircd: IrcServer, tmp_path: Path
) -> None:
    channel = connected(ngircd, tmp_path, trust_nicks=trust_nicks)
    async with ann_at(ngircd) as ann, receiving(channel) as inbox:
        await ann.tell(NICK, "Hello")
        assert (await inbox.messages.get()).vouched_for == vouched_for


@needs_ngircd
async def test_action_addresses_by_mention_and_other_ctcp_is_ignored(ngircd: IrcServer, tmp_path: Path) -> None:
    async with ann_at(ngircd) as ann, talking(connected(ngircd, tmp_path), ann) as inbox:
        await ann.tell("#club", "\x01VERSION\x01")
        await ann.tell("#club", f"\x01ACTION waves at {NICK}\x01")
        await ann.tell("#club", f"{NICK}, what's \x02\x0304,01new\x0f?")
        wave, question = await inbox.messages.get(), await inbox.messages.get()
    assert (wave.content, wave.is_addressed) == (f"* ann waves at {NICK}", True)
    assert (question.content, question.is_addressed) == ("what's new?", True)


# Sending


@needs_ngircd
async def test_each_line_is_a_message_and_controls_are_dropped(ngircd: IrcServer, tmp_path: Path) -> None:
    channel = connected(ngircd, tmp_path)
    async with ann_at(ngircd) as ann, talking(channel, ann):
        assert (await channel.send(to("ann", "one\r\n\n\x01two\x01\rQUIT\n"))).state == "sent"
        await ann.say()
        assert ann.heard["ann"] == ["one", "two", "QUIT"]


@needs_ngircd
async def test_lines_keep_within_the_flood_limit(ngircd: IrcServer, tmp_path: Path) -> None:
    clock = FakeClock()
    settings = IrcSettings(server="127.0.0.1", port=ngircd.port, tls=False, nick=NICK)
    channel = IrcChannel(settings, ChannelHome("irc", tmp_path, clock))
    async with ann_at(ngircd) as ann, talking(channel, ann):
        await clock.sleep(60)
        clock.slept.clear()
        assert (await channel.send(to("ann", "\n".join("123456789")))).state == "sent"
        assert [wait for wait in clock.slept if wait] == [2.0] * 6  # four lines at once, five more and a ping


@needs_ngircd
@pytest.mark.parametrize(("chat", "number"), [("nobody", "401"), ("#elsewhere", "40")])
async def test_refusal_is_reported_in_words(chat: str, number: str, ngircd: IrcServer, tmp_path: Path) -> None:
    channel = connected(ngircd, tmp_path)
    async with ann_at(ngircd) as ann, talking(channel, ann):
        sent = await channel.send(to(chat, "one\ntwo"))
    assert (sent.state, f"refuses 2 of 2 lines: {number}" in sent.reason) == ("failed", True)


@pytest.mark.parametrize("chat", ["ann,bob", "ann :x", "", ":ann"])
async def test_chat_that_is_no_target_is_refused(chat: str, tmp_path: Path) -> None:
    assert (await connected(IrcServer(1), tmp_path).send(to(chat))).state == "failed"


@asynccontextmanager
async def bouncer(*lines: str) -> AsyncGenerator[IrcServer]:
    """A server that lets anybody in, says these lines, and closes the connection when it gets a message."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            if line.startswith(b"USER"):
                writer.write("\r\n".join((f":bnc 001 {NICK} :Welcome", *lines, "")).encode())
            if line.startswith(b"PING"):
                writer.write(b"PONG bnc" + line[4:])
            if line.startswith((b"PRIVMSG", b"QUIT")):
                break
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield IrcServer(server.sockets[0].getsockname()[1])


LINE = f"@time=2020-02-02T20:20:20.000Z;account=ann :ann!a@b PRIVMSG {NICK} :Hello"


async def test_connection_that_ends_before_the_confirmation_leaves_it_unknown(tmp_path: Path) -> None:
    async with bouncer(LINE) as server, receiving(channel := connected(server, tmp_path)) as inbox:
        await inbox.messages.get()
        sent = await channel.send(to("ann"))
        again = await channel.send(replace(to("ann"), may_be_sent=True))
    assert (sent.state, again.state) == ("unknown", "unknown")


async def test_message_to_the_operators_of_a_room_is_a_group_message(tmp_path: Path) -> None:
    lines = [f":bnc 005 {NICK} CHANTYPES=#& STATUSMSG=&@+ :are supported"]
    lines += [f":ann!a@b PRIVMSG {target} :{NICK}: Hello" for target in ("@#club", "&club", "@&club", NICK)]
    async with bouncer(*lines) as server, receiving(connected(server, tmp_path)) as inbox:
        heard = [await inbox.messages.get() for _ in range(4)]
    assert [each.chat for each in heard if each.is_group] == ["@#club", "&club", "@&club"]
    assert [each.chat for each in heard if not each.is_group] == ["ann"]


async def test_playback_says_when_it_was_written(tmp_path: Path) -> None:
    async with bouncer(LINE, f":{NICK}!a@b PRIVMSG ann :Hello") as server:
        channel = connected(server, tmp_path)
        async with receiving(channel) as inbox:
            message = await inbox.messages.get()
    assert message.sent_at == datetime(2020, 2, 2, 20, 20, 20, tzinfo=UTC)
    assert channel.limits.replays_with_new_ids
    assert inbox.messages.empty()
