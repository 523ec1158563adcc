"""A player's connection, against small servers on loopback that speak as real ones do."""

import asyncio
import errno
import re
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import msgspec
import pytest
from msgspec.structs import replace

from denizen.errors import ConfigError
from denizen.worlds.moo.attribution import OutputTiming
from denizen.worlds.moo.connection import MooConnection, connected
from denizen.worlds.moo.negotiation import gmcp
from denizen.worlds.moo.server_text import CommandOutput, ServerLine
from denizen.worlds.moo.transport import Server, ServerUnreachable, Stream, open_stream

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENT = OutputTiming(timeout=300, quiet=0.2, settle=0.05, silence=300)


@asynccontextmanager
async def serving(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    """A telnet server on loopback, and how to sign in."""

    players = set[asyncio.Task[None]]()

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            players.add(task)
        await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(play, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Server(host="127.0.0.1", port=port, transport="telnet", user="ann", password="sesame")
        await asyncio.gather(*players, return_exceptions=True)


def mud(mark: bytes) -> Handler:
    """A MUD that repeats what it is told, and puts `mark` after each prompt; `die` ends the connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Welcome!\r\n> " + mark)
        while (line := (await reader.readline()).strip()) not in {b"", b"die", b"@quit"}:
            if line == b"hang":
                continue
            writer.write(b"You did " + line + b"\r\n> " + mark)

    return handle


@pytest.mark.parametrize("mark", [b"\xff\xf9", b"\xff\xef", b""])
async def test_another_mud_works_with_and_without_prompt_marks(mark: bytes, tmp_path: Path) -> None:
    async with serving(mud(mark)) as server, connected(server, tmp_path, PATIENT) as connection:
        assert connection.name == "Ann"
        assert await connection.request("look\nat me") == CommandOutput("look at me", ["You did look at me"])


def answering(welcome: bytes, answers: Mapping[bytes, Sequence[bytes | Callable[[], Awaitable[object]]]]) -> Handler:
    """A server that says these things, one after the other, to each line; between them it waits for what is awaited."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(welcome)
        while (line := (await reader.readline()).strip()) not in {b"", b"die", b"@quit"}:
            for each in answers.get(line, ()):
                if isinstance(each, bytes):
                    writer.write(each)
                else:
                    await each()

    return handle


IN = {b"connect ann sesame": [b"You wake up, Ann, with sesame.\r\n> \xff\xf9"]}


async def later() -> None:
    await asyncio.sleep(0.12)  # longer than PATIENT.settle


async def test_what_the_server_says_at_sign_in_comes_first_without_the_password(tmp_path: Path) -> None:
    welcome = b"====\r\nThe well is closed today.\r\n> \xff\xf9"
    async with serving(answering(welcome, IN)) as server, connected(server, tmp_path, PATIENT) as connection:
        heard = [(await anext(connection.lines)).text for _ in range(2)]
        assert heard == ["The well is closed today.", "You wake up, Ann, with ***."]


@pytest.mark.parametrize(
    "words",
    [
        "Either that player does not exist, or has a different password.",
        "Username and/or password is incorrect.",
        "Wrong password.",
        "Sorry, Ann isn't a known character.",
        "You have been banned.",
    ],
)
async def test_a_refused_login_ends_with_the_servers_own_words(words: str, tmp_path: Path) -> None:
    no = {b"connect ann sesame": [f"{words}\r\nPassword: ".encode()]}
    async with serving(answering(b"Welcome\r\n> ", no)) as server:
        with pytest.raises(ConfigError, match=rf"refused to sign ann in: “{re.escape(words)}”"):
            async with connected(server, tmp_path, PATIENT):
                pass


async def test_a_server_that_is_full_may_be_tried_again(tmp_path: Path) -> None:
    full = {b"connect ann sesame": [b"The game is full: no more connections. Try again later.\r\n"]}
    async with serving(answering(b"Welcome\r\n> ", full)) as server:
        with pytest.raises(ServerUnreachable, match="The game is full"):
            async with connected(server, tmp_path, replace(PATIENT, silence=0.3)):
                pass


async def test_a_mark_after_each_message_ends_nobodys_result(tmp_path: Path) -> None:
    mark = b"\xff\xf9"
    look = [b"Bob waves.\r\n" + mark, later, b"A hall.\r\n" + mark, b"It is cold.\r\n" + mark]
    signed_in = {b"connect ann sesame": [b"You wake up.\r\n" + mark]}
    world = answering(b"Welcome\r\n" + mark, {**signed_in, b"look": look})
    async with serving(world) as server, connected(server, tmp_path, PATIENT) as connection:
        assert await connection.request("look") == CommandOutput("look", ["Bob waves.", "A hall.", "It is cold."])


async def test_the_prompt_after_anothers_words_doesnt_end_a_result(tmp_path: Path) -> None:
    look = [told("Bob", "waves") + b"> \xff\xf9", later, b"A hall.\r\n> \xff\xf9"]
    world = answering(b"Welcome\r\n> \xff\xf9", {**IN, b"look": look})
    async with serving(world) as server, connected(server, tmp_path, PATIENT) as connection:
        assert await connection.request("look") == CommandOutput("look", ["A hall."])


async def test_a_result_ends_at_a_prompt_that_isnt_marked_however_slowly_it_comes(tmp_path: Path) -> None:
    answers = {
        b"connect ann sesame": [b"You wake up.\r\nHP:100> "],
        b"look": [b"A hall.\r\nHP:99> "],
        b"search": [b"You search.\r\n", later, later, later, b"You find a coin.\r\nHP:7> "],
    }
    world = answering(b"Welcome\r\nHP:?> ", answers)
    async with serving(world) as server, connected(server, tmp_path, PATIENT) as connection:
        await connection.request("look")
        assert await connection.request("look") == CommandOutput("look", ["A hall."])
        assert await connection.request("search") == CommandOutput("search", ["You search.", "You find a coin."])


@pytest.mark.parametrize(
    ("channel", "text", "line"),
    [
        ("say", "hi", 'Bob says, "hi"'),
        ("newbie", "[Newbie] Bob: hi", "[Newbie] Bob: hi"),
        ("tell", "\x1b[1mBob tells you: hi\x1b[0m", "Bob tells you: hi"),
    ],
)
async def test_what_another_server_tells_by_gmcp_and_shows_is_heard_once(
    channel: str, text: str, line: str, tmp_path: Path
) -> None:
    said = gmcp("Comm.Channel.Text", {"channel": channel, "talker": "Bob", "text": text}) + f"{line}\r\n".encode()
    world = answering(b"> \xff\xf9", {**IN, b"look": [said + b"A hall.\r\n> \xff\xf9"]})
    async with serving(world) as server, connected(server, tmp_path, PATIENT) as connection:
        assert await connection.request("look") == CommandOutput("look", ["A hall."])
        assert (await connection.request("die")).problem
        heard = [each async for each in connection.lines][1:]
        assert [(each.talker, "hi" in each.text) for each in heard] == [("Bob", True)]


async def test_requests_of_several_callers_wait_their_turn(tmp_path: Path) -> None:
    async with serving(mud(b"\xff\xf9")) as server, connected(server, tmp_path, PATIENT) as connection:
        commands = [f"go {number}" for number in range(20)]
        outputs = await asyncio.gather(*map(connection.request, commands))
        assert outputs == [CommandOutput(command, [f"You did {command}"]) for command in commands]


async def test_a_lost_connection_is_the_problem_of_the_request_and_ends_the_lines(tmp_path: Path) -> None:
    async with serving(mud(b"\xff\xf9")) as server, connected(server, tmp_path, PATIENT) as connection:
        assert "closed" in (await connection.request("die")).problem
        assert "closed" in (await connection.request("look")).problem
        assert [line.text async for line in connection.lines] == ["Welcome!", "You did connect ann ***"]
        assert [line async for line in connection.lines] == []


class ClosedWriter:
    """The outgoing half of a channel that is closed, as of a moment ago."""

    def write(self, data: bytes) -> None:
        raise BrokenPipeError("Channel not open for sending")

    def close(self) -> None:
        """It is."""


@pytest.mark.parametrize(
    "error", [None, TimeoutError(errno.ETIMEDOUT, "timed out"), asyncssh.ConnectionLost("gone")], ids=repr
)
async def test_a_connection_that_breaks_in_any_way_is_lost_and_the_problem_of_the_request(
    error: Exception | None,
) -> None:
    reader = asyncio.StreamReader()
    connection = MooConnection(Stream(reader, ClosedWriter()), Server(), PATIENT)
    asked = asyncio.create_task(connection.request("look"))
    await asyncio.sleep(0)
    if error:
        reader.set_exception(error)
    reader.feed_eof()
    await connection.receive()
    assert connection.is_lost
    assert "closed" in (await asked).problem


def told(talker: str, text: str) -> bytes:
    """A line of the world, after GMCP's word on who it is from."""
    value = msgspec.json.encode({"channel": "emote", "talker": talker, "text": text})
    return b"\xff\xfa\xc9Comm.Channel.Text " + value + b"\xff\xf0" + f"{talker} {text}\r\n".encode()


async def test_our_own_words_are_ours_where_the_server_names_talkers_but_not_us(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for text in (b"", b"Welcome.\r\n", told("Bob", "nods") + told("Ann", "waves")):
            writer.write(text + b"> \xff\xf9")
            await reader.readline()

    async with serving(handle) as server, connected(server, tmp_path, PATIENT) as connection:
        assert await connection.request("emote waves") == CommandOutput("emote waves", ["Ann waves"])
        assert await anext(connection.lines) == ServerLine("Welcome.")
        assert await anext(connection.lines) == ServerLine("Bob nods", "emote", "Bob")


async def test_a_server_that_answers_no_more_is_given_up(tmp_path: Path) -> None:
    async with serving(mud(b"\xff\xf9")) as server, connected(server, tmp_path, OutputTiming(timeout=1)) as connection:
        assert "no prompt" in (await connection.request("hang")).problem
        assert "given up" in (await connection.request("look")).problem
        assert [line.text async for line in connection.lines] == ["Welcome!", "You did connect ann ***"]
        assert connection.is_lost


async def test_waiting_for_a_line_may_be_cancelled_and_no_line_is_lost(tmp_path: Path) -> None:
    speak = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"> \xff\xf9")
        await reader.readline()
        writer.write(b"> \xff\xf9")
        await speak.wait()
        writer.write(b"Bob arrives.\r\n")
        await reader.readline()

    async with serving(handle) as server, connected(server, tmp_path, PATIENT) as connection:
        waiting = asyncio.ensure_future(anext(connection.lines))
        await asyncio.sleep(0)
        waiting.cancel()
        speak.set()
        assert await anext(connection.lines) == ServerLine("Bob arrives.")


async def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    async with serving(mud(b"")) as server:
        pass
    for transport in ("telnet", "ssh"):
        with pytest.raises(ServerUnreachable, match="can't be reached"):
            async with open_stream(Server(port=server.port, transport=transport, user="ann"), tmp_path):
                pass


def certificate(folder: Path, name: str, *options: object) -> tuple[Path, Path]:
    """A certificate and its key, of that name."""
    files = folder / f"{name.replace(':', '-')}.pem", folder / f"{name.replace(':', '-')}.key"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=moo",
        "-out",
        *files[:1],
        "-keyout",
    ]
    subprocess.run([*map(str, [*make, files[1], *options])], check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An authority of our own that vouches for servers."""
    signs = ("-addext", "keyUsage=critical,keyCertSign")
    return certificate(tmp_path_factory.mktemp("tls"), "authority", *signs)


def vouched_for(authority: tuple[Path, Path], folder: Path, name: str) -> ssl.SSLContext:
    """A server of that name, for which it vouches."""
    signed = ("-CA", authority[0], "-CAkey", authority[1], "-addext", "basicConstraints=critical,CA:false")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate(folder, name, *signed, "-addext", f"subjectAltName={name}"))
    return tls


@pytest.mark.needs("openssl")
async def test_telnet_over_tls_signs_in_where_the_certificate_can_be_trusted(
    authority: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority[0]))
    tls = vouched_for(authority, tmp_path, "IP:127.0.0.1")
    async with (
        serving(mud(b"\xff\xf9"), tls) as server,
        connected(replace(server, transport="telnets"), tmp_path, PATIENT) as connection,
    ):
        assert await connection.request("look") == CommandOutput("look", ["You did look"])


async def refusal(tls: ssl.SSLContext, home: Path) -> str:
    """What is said of a server of that certificate."""
    async with serving(mud(b""), tls) as server:
        with pytest.raises(ConfigError) as refused:
            async with open_stream(replace(server, transport="telnets"), home):
                pass
    return str(refused.value)


@pytest.mark.needs("openssl")
async def test_a_certificate_that_nobody_vouches_for_is_refused_and_says_what_to_do(
    authority: tuple[Path, Path], tmp_path: Path
) -> None:
    told = await refusal(vouched_for(authority, tmp_path, "IP:127.0.0.1"), tmp_path)
    assert (
        "has a certificate that isn't trusted: unable to get local issuer certificate. If you trust that server" in told
    )
    assert "SSL_CERT_FILE" in told


@pytest.mark.needs("openssl")
async def test_the_certificate_of_another_server_is_refused(
    authority: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority[0]))
    told = await refusal(vouched_for(authority, tmp_path, "DNS:elsewhere.example"), tmp_path)
    assert "certificate is not valid for '127.0.0.1'" in told


async def test_a_server_that_speaks_no_tls_is_unreachable_over_it(tmp_path: Path) -> None:
    async with serving(mud(b"")) as server:
        with pytest.raises(ServerUnreachable, match=r"can't be reached over telnets: .*SSL"):
            async with open_stream(replace(server, transport="telnets"), tmp_path):
                pass


class Doorkeeper(asyncssh.SSHServer):
    """Lets ann in, who says sesame."""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        self._connection.send_auth_banner("Only members\r\nget in.\r\n")
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("ann", "sesame")


SshHandler = Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]


async def say_terminal(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Says which terminal it was given."""
    process.stdout.write((process.get_terminal_type() or "").encode())
    process.exit(0)


def terminal_world(prompt: bytes, welcome: bytes = b"Welcome, ann.\r\n") -> SshHandler:
    """A world that knows nothing of telnet, and repeats what is typed as a terminal does; `who` has two parts."""

    async def play(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(welcome + prompt)
        while (line := (await process.stdin.readline()).strip()) not in {b"", b"@quit"}:
            process.stdout.write(line + b"\r\n")
            await later()
            process.stdout.write(b"You did " + line + b".\r\n")
            if line == b"who":
                await asyncio.sleep(2 * PATIENT.quiet)
                process.stdout.write(b"Nobody is here.\r\n")
            process.stdout.write(prompt)
        process.exit(0)

    return play


@asynccontextmanager
async def ssh_server(
    key: asyncssh.SSHKey, port: int = 0, play: SshHandler = say_terminal, **options: str
) -> AsyncGenerator[Server]:
    """An SSH server on loopback."""
    accepting = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=Doorkeeper,
        server_host_keys=[key],
        process_factory=play,
        encoding=None,
        **options,
    )
    try:
        yield Server(host="127.0.0.1", port=accepting.get_port(), user="ann", password="sesame")
    finally:
        accepting.close()
        await accepting.wait_closed()


KEY, OTHER_KEY = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))


async def read_all(server: Server, home: Path) -> bytes:
    async with open_stream(server, home) as stream:
        return await stream.reader.read()


async def test_the_first_key_of_a_server_is_pinned_and_another_one_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ssh_server(KEY) as server:
        assert await read_all(server, home) == b"xterm-256-basic"
        assert await read_all(server, home) == b"xterm-256-basic"
    pinned = home / "known_hosts"
    assert pinned.read_text().startswith(f"[127.0.0.1]:{server.port} ssh-ed25519 ")
    assert pinned.read_text().count("\n") == 1
    assert pinned.stat().st_mode & 0o777 == 0o600
    other_type = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    for key in (OTHER_KEY, other_type):
        async with ssh_server(key, server.port):
            with pytest.raises(ConfigError, match=r"another SSH key.*remove the line"):
                await read_all(server, home)
    pinned.unlink()
    async with ssh_server(OTHER_KEY, server.port):
        assert await read_all(server, home)


async def test_a_key_is_pinned_below_a_line_that_was_left_without_an_end(tmp_path: Path) -> None:
    other = f"[elsewhere]:22 {OTHER_KEY.export_public_key().decode().strip()}"
    (tmp_path / "known_hosts").write_text(other)
    async with ssh_server(KEY) as server:
        for _ in range(2):
            assert await read_all(server, tmp_path) == b"xterm-256-basic"
    pinned = (tmp_path / "known_hosts").read_text().splitlines()
    assert (pinned[0], pinned[1].split()[0], len(pinned)) == (other, f"[127.0.0.1]:{server.port}", 2)


async def test_a_world_over_ssh_needs_no_marks_its_prompt_ends_a_result(tmp_path: Path) -> None:
    async with (
        ssh_server(KEY, play=terminal_world(b"> ")) as server,
        connected(server, tmp_path, PATIENT) as connection,
    ):
        assert [(await anext(connection.lines)).text for _ in range(3)] == ["Only members", "get in.", "Welcome, ann."]
        assert await connection.request("who") == CommandOutput("who", ["You did who.", "Nobody is here."])
        assert await connection.request("look") == CommandOutput("look", ["You did look."])


async def test_a_world_over_ssh_needs_no_prompt_silence_ends_a_result(tmp_path: Path) -> None:
    async with (
        ssh_server(KEY, play=terminal_world(b"")) as server,
        connected(server, tmp_path, PATIENT) as connection,
    ):
        assert await connection.request("look") == CommandOutput("look", ["You did look."])


async def test_a_world_over_ssh_that_asks_for_a_line_to_sign_in_gets_it(tmp_path: Path) -> None:
    asks = b"To play, type:\r\n   connect <username> <password>\r\n"
    async with (
        ssh_server(KEY, play=terminal_world(b"", asks)) as server,
        connected(server, tmp_path, PATIENT) as connection,
    ):
        said = [(await anext(connection.lines)).text for _ in range(5)]
        assert said[-1] == "You did connect ann ***."


async def test_a_wrong_password_is_for_the_user_to_fix(tmp_path: Path) -> None:
    async with ssh_server(KEY) as server:
        wrong = Server(port=server.port, user="ann", password="abracadabra")
        with pytest.raises(ConfigError, match=r"refused to sign ann in: “Only members get in.”"):
            await read_all(wrong, tmp_path)


async def test_a_key_signs_in_without_a_password(tmp_path: Path) -> None:
    own = asyncssh.generate_private_key("ssh-ed25519")
    own.write_private_key(tmp_path / "id")
    own.write_public_key(tmp_path / "allowed")
    async with ssh_server(KEY, authorized_client_keys=str(tmp_path / "allowed")) as server:
        with_key = Server(port=server.port, user="bob", key_file=str(tmp_path / "id"))
        assert await read_all(with_key, tmp_path) == b"xterm-256-basic"
        missing = Server(port=server.port, user="bob", key_file=str(tmp_path / "nothing"))
        with pytest.raises(ConfigError, match="nothing"):
            await read_all(missing, tmp_path)


async def test_a_file_of_keys_that_is_broken_is_for_the_user_to_fix(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("nonsense\n")
    async with ssh_server(KEY) as server:
        with pytest.raises(ConfigError, match="known_hosts"):
            await read_all(server, tmp_path)
