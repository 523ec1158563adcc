"""The Matrix channel on a real home server, with faults between the two."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import nio
import pytest
from msgspec.structs import replace
from nio.crypto import encrypt_attachment
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance, home_of
from tests.worlds.chat.delivery.channels.servers.synapse_server import FaultyProxy, MatrixUser, Synapse

from denizen.errors import ConfigError
from denizen.ports import Channel, ChannelHome, ChannelRefused, ChannelSettings, Fetch, InboundMessage, OutboundMessage
from denizen.testing import FakeClock, FarEnd
from denizen.worlds.chat.delivery.channels.matrix import KIND, MatrixChannel
from denizen.worlds.chat.delivery.channels.matrix_account import MatrixSettings

PATIENCE_S = 60.0


class MatrixEnd(FarEnd):
    """A home server with the assistant, Alice and Bob, and the rooms that Alice has invited the others to."""

    proxy: FaultyProxy
    bot: MatrixUser
    alice: MatrixUser
    rooms: dict[str, str]
    settings: MatrixSettings

    def __init__(self) -> None:
        self.last = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls, synapse: Synapse) -> AsyncGenerator["MatrixEnd"]:
        async with aiohttp.ClientSession() as http:
            end = cls()
            end.proxy = FaultyProxy(synapse.url, http)
            url = await end.proxy.start()
            end.bot, end.alice, bob = [
                await MatrixUser.register(synapse, http, name) for name in ("assistant", "alice", "bob")
            ]
            end.rooms = {name: await end.alice.create_room(end.bot.id, is_direct=True) for name in ("home", "work")}
            end.rooms["group"] = await end.alice.create_room(end.bot.id, bob.id)
            end.settings = MatrixSettings(
                homeserver=url, user=end.bot.id, access_token=end.bot.token, allow=[end.alice.id]
            )
            try:
                yield end
            finally:
                await end.proxy.stop()

    async def write(self, content: str, *, chat: str = "home", **more: Any) -> None:
        room, root = self.rooms["home" if chat == "thread" else chat], {}
        if chat == "thread":
            root = {"m.relates_to": {"rel_type": "m.thread", "event_id": self.last}}
        event = await self.alice.say(room, {"msgtype": "m.text", "body": content, **root, **more})
        self.last = self.last if chat == "thread" else event

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        texts: dict[str, str] = {}
        for event in await self.alice.timeline(self.rooms["home" if chat == "thread" else chat]):
            content, relation = event["content"], event["content"].get("m.relates_to", {})
            if event["sender"] != self.bot.id or content.get("msgtype") != "m.text":
                continue
            if relation.get("rel_type") == "m.replace":
                if relation["event_id"] in texts:
                    texts[relation["event_id"]] = content["m.new_content"]["body"]
            elif (relation.get("rel_type") == "m.thread") == (chat == "thread"):
                texts[event["event_id"]] = content["body"]
        return [*texts.values()]

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        await self.write(content, chat="group", **{"m.mentions": {"user_ids": [self.bot.id] if addressed else []}})

    async def attach(self, size: int) -> None:
        url = await self.upload(b"x" * size)
        await self.alice.say(self.rooms["home"], {"msgtype": "m.file", "body": "notes.txt", "url": url})

    async def upload(self, data: bytes) -> str:
        return (await self.alice.call("POST", "/_matrix/media/v3/upload", data))["content_uri"]

    async def download(self, url: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.alice.token}"}
        path = f"/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}"
        async with self.alice.http.get(f"{self.alice.url}{path}", headers=headers) as answer:
            return await answer.read()

    async def refuse_edits(self) -> None:
        self.proxy.refuses_edits = True

    async def echo(self) -> None:
        """The server has done it."""

    async def edit(self, content: str) -> None:
        new, relation = {"msgtype": "m.text", "body": content}, {"rel_type": "m.replace", "event_id": self.last}
        edit = {"msgtype": "m.text", "body": f"* {content}", "m.new_content": new, "m.relates_to": relation}
        await self.alice.say(self.rooms["home"], edit)

    async def write_as_bot(self, content: str) -> None:
        await self.alice.say(self.rooms["home"], {"msgtype": "m.notice", "body": content})

    async def flood(self, seconds: float) -> None:
        self.proxy.flood_ms = int(seconds * 1000)

    async def lose_answer(self) -> None:
        self.proxy.loses_answer = True

    async def drop_connections(self) -> None:
        self.proxy.drop_connections()

    async def go_down(self) -> None:
        await self.proxy.listener.close()
        self.proxy.drop_connections()

    async def come_back(self) -> None:
        await self.proxy.listener.open()

    async def rotate_token(self) -> None:
        await self.bot.call("POST", "/_matrix/client/v3/logout", {})
        self.proxy.drop_connections()


@pytest.fixture
async def far_end(synapse: Synapse) -> AsyncIterator[MatrixEnd]:
    async with MatrixEnd.opened(synapse) as end:
        yield end


@pytest.fixture
def home(tmp_path: Path) -> ChannelHome:
    return ChannelHome("matrix", tmp_path / "matrix", FakeClock())


class TestMatrix(KilledChannelConformance):
    @pytest.fixture
    async def far_end(self, synapse: Synapse) -> AsyncIterator[MatrixEnd]:
        async with MatrixEnd.opened(synapse) as end:
            yield end

    @pytest.fixture
    def channel(self, far_end: MatrixEnd, tmp_path: Path) -> Channel:
        return MatrixChannel(far_end.settings, home_of(tmp_path, "matrix"))

    @pytest.fixture
    def opening(self, far_end: MatrixEnd) -> tuple[str, ChannelSettings]:
        return "denizen.worlds.chat.delivery.channels.matrix:KIND", far_end.settings


@asynccontextmanager
async def listening(channel: Channel) -> AsyncGenerator[asyncio.Queue[InboundMessage]]:
    """What the channel receives until the end of the block."""
    messages: asyncio.Queue[InboundMessage] = asyncio.Queue()

    async def accept(message: InboundMessage, fetch: Fetch | None = None) -> bool:
        messages.put_nowait(await fetch(message) if fetch else message)
        return True

    task = asyncio.create_task(channel.receive(accept))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield messages
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def reply(message: InboundMessage, content: str, *media: Path) -> OutboundMessage:
    return OutboundMessage("matrix", message.chat, content, media=tuple(map(str, media)))


class EncryptedPeer:
    """Alice on a client that encrypts, in a room where everybody does."""

    def __init__(self, client: Any, room: str, end: MatrixEnd) -> None:
        self.client, self.room, self.bot, self.proxy = client, room, end.bot.id, end.proxy

    @classmethod
    @asynccontextmanager
    async def opened(cls, end: MatrixEnd, folder: Path) -> AsyncGenerator["EncryptedPeer"]:
        folder.mkdir()
        client: Any = nio.AsyncClient(end.alice.url, end.alice.id, store_path=str(folder))
        client.restore_login(end.alice.id, end.alice.device, end.alice.token)
        state = {"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
        peer = cls(client, await end.alice.create_room(end.bot.id, initial_state=[state]), end)
        try:
            await client.sync(full_state=True)
            await client.keys_upload()
            yield peer
        finally:
            await client.close()

    async def meet(self) -> None:
        """Wait until the account has joined the room, and its device and that device's one-time keys are there.

        The home server announces a device before it stores the one-time keys of the same upload.
        """
        await self.proxy.wait_for_answer("/keys/upload")
        while not [*self.client.device_store.active_user_devices(self.bot)]:
            await self.client.sync(100)
            if self.client.should_query_keys:
                await self.client.keys_query()

    async def say(self, content: dict[str, Any]) -> None:
        await self.client.room_send(self.room, "m.room.message", content, ignore_unverified_devices=True)

    async def say_without_key(self, body: str) -> dict[str, Any]:
        """Send a text; the message to devices that has its key, which isn't sent."""
        await self.client.keys_claim(self.client.get_missing_sessions(self.room))
        users = [self.bot]
        [(_, keys)] = self.client.olm.share_group_session_parallel(self.room, users, ignore_unverified_devices=True)
        self.client.olm.outbound_group_sessions[self.room].shared = True
        await self.say({"msgtype": "m.text", "body": body})
        return keys

    async def heard(self, number: int) -> list[dict[str, Any]]:
        """The next messages of the account, decrypted: at least so many."""
        contents: list[dict[str, Any]] = []
        while len(contents) < number:
            sync = await self.client.sync(1000)
            for info in [info for room, info in sync.rooms.join.items() if room == self.room]:
                events = [each for each in info.timeline.events if each.sender == self.bot and each.decrypted]
                contents += [each.source["content"] for each in events]
        return contents


@pytest.fixture
async def peer(far_end: MatrixEnd, tmp_path: Path) -> AsyncIterator[EncryptedPeer]:
    async with EncryptedPeer.opened(far_end, tmp_path / "alice") as peer:
        yield peer


async def test_encrypted_room_is_read_and_answered_also_after_a_restart(
    far_end: MatrixEnd, home: ChannelHome, peer: EncryptedPeer
) -> None:
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        await peer.meet()
        await peer.say({"msgtype": "m.text", "body": "Hello"})
        hello = await messages.get()
        assert (await channel.send(reply(hello, "**Good** day."))).state == "sent"
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        await peer.say({"msgtype": "m.text", "body": "Still there?"})
        assert (await messages.get()).content == "Still there?"
        assert (await channel.send(reply(hello, "Yes."))).state == "sent"
    first, second = await peer.heard(2)
    assert (first["formatted_body"], second["body"]) == ("<p><strong>Good</strong> day.</p>", "Yes.")
    kinds = {event["type"] for event in await far_end.alice.timeline(peer.room) if event["sender"] == far_end.bot.id}
    assert "m.room.message" not in kinds
    assert (home.folder / "pickle.key").stat().st_mode & 0o077 == 0


async def test_encrypted_files_go_both_ways(
    far_end: MatrixEnd, home: ChannelHome, peer: EncryptedPeer, tmp_path: Path
) -> None:
    (notes := tmp_path / "notes.txt").write_text("secret")
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        await peer.meet()
        ciphertext, secret = encrypt_attachment(b"cipher me")
        url = await far_end.upload(ciphertext)
        await peer.say({"msgtype": "m.file", "body": "../a b.txt", "file": {**secret, "url": url}})
        message = await messages.get()
        assert [Path(path).read_bytes() for path in message.media] == [b"cipher me"]
        assert Path(message.media[0]).parent == home.folder / "media"
        assert (await channel.send(reply(message, "", notes))).state == "sent"
    [content] = await peer.heard(1)
    assert (content["msgtype"], content["body"], "url" in content) == ("m.file", "notes.txt", False)
    assert await far_end.download(content["file"]["url"]) != b"secret"


async def test_encrypted_message_waits_for_its_key_also_over_a_restart(
    far_end: MatrixEnd, home: ChannelHome, peer: EncryptedPeer
) -> None:
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        await peer.meet()
        keys = await peer.say_without_key("Too early")
        await far_end.write("After that")
        assert (await messages.get()).content == "After that"
        await far_end.proxy.wait_for_next("/sync")  # it has written down what it received
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        await far_end.alice.call("PUT", "/_matrix/client/v3/sendToDevice/m.room.encrypted/late", keys)
        assert (await messages.get()).content == "Too early"


async def test_all_messages_of_a_long_absence_arrive_in_order(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        await far_end.write("Hello")
        await messages.get()
        await far_end.proxy.wait_for_next("/sync")  # it has written down what it received
    for number in range(130):
        await far_end.write(str(number))
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        assert [(await messages.get()).content for _ in range(130)] == [*map(str, range(130))]


async def test_history_from_before_the_invitation_is_not_received(far_end: MatrixEnd, home: ChannelHome) -> None:
    room = await far_end.alice.create_room(preset="public_chat")
    far_end.rooms["home"] = room
    await far_end.write("Between us")
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        await far_end.alice.call("POST", f"/_matrix/client/v3/rooms/{room}/invite", {"user_id": far_end.bot.id})
        await far_end.write("Hello")
        assert (await messages.get()).content == "Hello"


async def test_only_allowed_people_can_invite_it(far_end: MatrixEnd, home: ChannelHome) -> None:
    settings = replace(far_end.settings, allow=["@nobody:localhost"])
    async with listening(MatrixChannel(settings, home)):
        await far_end.proxy.wait_for("/sync", times=2)
    rooms = await far_end.bot.call("GET", "/_matrix/client/v3/joined_rooms")
    assert rooms["joined_rooms"] == []


async def test_edit_in_a_thread_stays_in_its_chat(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        await far_end.write("Root")
        root = await messages.get()
        await far_end.write("In it", chat="thread")
        message = await messages.get()
        far_end.last = message.id
        await far_end.edit("In here")
        edit = await messages.get()
    assert message.chat == edit.chat == f"{root.chat}/{root.id}"
    assert (edit.thread, edit.edit_of, edit.content) == (root.id, message.id, "In here")


async def test_name_pill_and_answer_address_it_in_a_group(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        name = far_end.bot.id[1:].partition(":")[0]
        await far_end.write(f"{name.upper()}, hello", chat="group")
        hello = await messages.get()
        sent = await channel.send(reply(hello, "Good day."))
        pill = f'<a href="https://matrix.to/#/{far_end.bot.id}">A</a>'
        await far_end.write("A", chat="group", format="org.matrix.custom.html", formatted_body=pill)
        answer = {"m.in_reply_to": {"event_id": sent.native_id}}
        await far_end.write("> <@a> Good day.\n\nThanks", chat="group", **{"m.relates_to": answer})
        await far_end.write(f"not{name}", chat="group")
        others = [await messages.get() for _ in range(3)]
    assert hello.is_addressed
    assert [each.is_addressed for each in others] == [True, True, False]
    assert others[1].content == "Thanks"


async def test_message_that_was_tried_long_ago_stays_unknown(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        await far_end.write("Hello")
        lost = replace(reply(await messages.get(), "Good day."), may_be_sent=True)
        now = home.clock.now()
        assert (await channel.send(replace(lost, tried_at=now - timedelta(hours=13)))).state == "unknown"
        assert not await far_end.arrived()
        assert (await channel.send(replace(lost, tried_at=now - timedelta(hours=1)))).state == "sent"


async def test_malformed_message_is_no_obstacle(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        relations = ["x", {"rel_type": "m.replace"}, {"m.in_reply_to": {"event_id": "."}}]
        for odd in ({"file": {"url": 1}, "info": []}, *({"m.relates_to": each} for each in relations)):
            await far_end.write("odd", chat="group", **odd)
        await far_end.write("Hello")
        while (await messages.get()).content != "Hello":
            pass


async def test_file_that_the_server_lost_is_reported(far_end: MatrixEnd, home: ChannelHome) -> None:
    async with listening(MatrixChannel(far_end.settings, home)) as messages:
        event = {"msgtype": "m.image", "body": "cat.png", "url": "mxc://localhost/missing"}
        await far_end.alice.say(far_end.rooms["home"], event)
        message = await messages.get()
    assert (message.media, message.content) == (
        (),
        "[The file cat.png was not received: the home server answered 404.]",
    )


async def test_real_flood_limit_says_how_long_to_wait(far_end: MatrixEnd, home: ChannelHome, synapse: Synapse) -> None:
    async with listening(channel := MatrixChannel(far_end.settings, home)) as messages:
        await far_end.write("Hello")
        hello = await messages.get()
        async with aiohttp.ClientSession() as http:  # only now: joining rooms is limited too
            admin = await MatrixUser.register(synapse, http, "admin", is_admin=True)
            path = f"/_synapse/admin/v1/users/{far_end.bot.id}/override_ratelimit"
            await admin.call("POST", path, {"messages_per_second": 1, "burst_count": 1})
        states = [await channel.send(reply(hello, str(number))) for number in range(12)]
    assert {each.state for each in states} == {"sent", "later"}
    assert len(await far_end.arrived()) == len([each for each in states if each.state == "sent"])


async def test_password_makes_one_device_also_after_its_login_ended(far_end: MatrixEnd, home: ChannelHome) -> None:
    password = far_end.bot.id[1:].partition(":")[0]
    settings = replace(far_end.settings, access_token="", password=password)
    async with listening(MatrixChannel(settings, home)) as messages:
        await far_end.write("Hello")
        await messages.get()
        await far_end.proxy.wait_for_next("/sync")  # it has written down what it received
    login = msgspec.json.decode((home.folder / "login.json").read_bytes())
    ended = replace_token(far_end.bot, login["access_token"])
    await ended.call("POST", "/_matrix/client/v3/logout", {})
    async with listening(MatrixChannel(settings, home)) as messages:
        await far_end.write("Still there?")
        assert (await messages.get()).content == "Still there?"
    renewed = msgspec.json.decode((home.folder / "login.json").read_bytes())
    assert renewed["device_id"] == login["device_id"]
    assert renewed["access_token"] != login["access_token"]


def replace_token(user: MatrixUser, token: str) -> MatrixUser:
    return MatrixUser(user.url, user.http, {"user_id": user.id, "access_token": token, "device_id": user.device})


async def test_check_names_the_account_or_says_what_is_wrong(far_end: MatrixEnd) -> None:
    password = far_end.bot.id[1:].partition(":")[0]
    with_password = replace(far_end.settings, access_token="", password=password)
    assert await KIND.check(far_end.settings) == await KIND.check(with_password) == far_end.bot.id
    for wrong in (replace(far_end.settings, access_token="x"), replace(with_password, password="x")):
        with pytest.raises(ChannelRefused, match="Check the channel's user"):
            await KIND.check(wrong)
    with pytest.raises(ConfigError, match="password"):
        await KIND.check(replace(far_end.settings, access_token=""))
    with pytest.raises(OSError, match="can't be reached"):
        await KIND.check(replace(far_end.settings, homeserver="http://127.0.0.1:9"))
