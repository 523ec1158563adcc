"""Whom a request trusts, and what is said where it trusts nobody."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.models.raw import Raw, Talk, ask, complaint, rounds, run, skip, whole

from denizen.models.http import Http

pytestmark = pytest.mark.needs("openssl")


class Identity:
    """A certificate that only its own server vouches for."""

    def __init__(self, folder: Path, name: str) -> None:
        self.certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -addext".split()
        files = ["-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run([*command, f"subjectAltName={name}", *files], check=True, capture_output=True)
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server.load_cert_chain(self.certificate, key)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return Identity(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return Identity(tmp_path_factory.mktemp("tls"), "DNS:elsewhere.example")


@pytest.fixture
def trusted(here: Identity, monkeypatch: pytest.MonkeyPatch) -> Identity:
    monkeypatch.setenv("SSL_CERT_FILE", str(here.certificate))
    return here


async def test_certificate_that_nobody_vouches_for_is_refused_and_says_so(here: Identity, http: Http) -> None:
    async with Raw(whole(b"Hello"), tls=here.server) as server:
        told = await complaint(server.url, http)
        assert "can't be reached" in told
        assert "certificate verify failed: self" in told
        assert server.heard == []


async def test_certificate_of_somebody_else_is_refused(
    elsewhere: Identity, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(elsewhere.certificate))
    async with Raw(whole(b"Hello"), tls=elsewhere.server) as server:
        assert "certificate is not valid for '127.0.0.1'" in await complaint(server.url, http)


async def test_certificate_that_the_environment_names_is_trusted(trusted: Identity, http: Http) -> None:
    large = bytes(3_000_000)
    async with Raw(whole(b"Hello"), whole(large), tls=trusted.server) as server:
        assert await ask(http, server.url) == b"Hello"
        assert await ask(http, server.url, large, stream=True) == large
        assert server.heard[1].endswith(large)
        assert server.connections == 1


async def test_closed_connection_isn_t_used_again(trusted: Identity, http: Http) -> None:
    async with Raw(whole(b"1"), whole(b"2"), tls=trusted.server) as server:
        assert await ask(http, server.url) == b"1"
        server.open[0].close()
        await server.gone.wait()
        await rounds(3)
        assert await ask(http, server.url) == b"2"


async def test_server_waits_until_its_answer_is_read(trusted: Identity, http: Http) -> None:
    async with Raw(whole(bytes(16_000_000)), tls=trusted.server) as server:
        assert len(await ask(http, server.url)) == 16_000_000


async def _puzzled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(whole(b"What?", "Connection: close", status="400 Bad Request"))
    writer.close()


async def _annoyed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.close()


@pytest.mark.parametrize("talk", [_puzzled, _annoyed])
async def test_https_where_the_server_speaks_http_is_reported(http: Http, talk: Talk) -> None:
    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        told = await complaint(url, http)
    assert told.startswith(f"openai:m: the connection failed: no TLS with {url} (")
    assert told.endswith("): does it speak https?")


async def test_http_where_the_server_speaks_https_is_reported(here: Identity, http: Http) -> None:
    async with Raw(whole(b"Hello"), tls=here.server) as server:
        told = await complaint(server.url.replace("https:", "http:"), http)
    assert "the connection failed" in told


async def _listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def test_server_that_never_shakes_hands_is_given_up() -> None:
    async def test() -> None:
        server = await asyncio.start_server(_listen_only, "127.0.0.1", 0)
        telling = asyncio.create_task(complaint(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        await skip(11)
        assert await telling == "openai:m: no answer in time (no connection within 10 s)"
        server.close()
        await rounds(10)

    run(test())


async def test_request_that_is_cancelled_at_any_moment_leaves_nothing(trusted: Identity, http: Http) -> None:
    async with Raw(*[whole(b"Hello")] * 60, tls=trusted.server) as server:
        for moment in range(30):
            asking = asyncio.create_task(ask(http, server.url))
            await rounds(moment)
            asking.cancel()
            await asyncio.wait([asking])
            await http.close()
        assert await ask(http, server.url) == b"Hello"
