"""Where requests go, over which connections, and what a user is told when nobody is reached."""

import asyncio
import gc
import socket
import warnings
from pathlib import Path

import pytest
from tests.models.calls import ASKED, answer, call, failure
from tests.models.raw import Last, Loop, Raw, ask, complaint, nothing_left, open_files, rounds, run, skip, whole

from denizen.errors import ConfigError
from denizen.models.http import Http
from denizen.models.openai import OpenAIModel
from denizen.testing import LoopbackOpenAI

# Connections that are kept


async def test_connection_that_the_server_closed_meanwhile_isn_t_used(http: Http) -> None:
    async with Raw(whole(b"1"), whole(b"2")) as server:
        assert await ask(http, server.url) == b"1"
        server.open[0].close()
        await server.gone.wait()
        await rounds(3)
        assert await ask(http, server.url) == b"2"


@pytest.mark.parametrize("body", [b"Hi", bytes(8_000_000)], ids=["small", "large"])
async def test_request_over_a_connection_that_is_just_closing_is_sent_over_another(http: Http, body: bytes) -> None:
    async with Raw(whole(b"1"), whole(b"2")) as server:
        assert await ask(http, server.url) == b"1"
        server.open[0].get_extra_info("socket").shutdown(socket.SHUT_RDWR)  # what the client sees is yet to come
        assert await ask(http, server.url, body) == b"2"
        assert server.heard[1].endswith(b"\r\n\r\n" + body)


async def test_request_is_not_repeated_once_an_answer_has_begun(http: Http) -> None:
    async with Raw(whole(b"1"), Last(b"HTTP/1.1 2"), whole(b"3")) as server:
        assert await ask(http, server.url) == b"1"
        with pytest.raises(ConnectionError):
            await ask(http, server.url)
        assert len(server.heard) == 2


async def test_request_is_repeated_once_only(http: Http) -> None:
    async with Raw(whole(b"1"), Last(), Last(), whole(b"4")) as server:
        assert await ask(http, server.url) == b"1"
        with pytest.raises(ConnectionError):
            await ask(http, server.url)
        assert len(server.heard) == 3


def test_request_that_a_server_thought_about_is_not_sent_again() -> None:
    async def test() -> None:
        http, thinking, over = Http(), asyncio.Event(), asyncio.Event()

        async def think(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            thinking.set()
            await over.wait()
            writer.transport.abort()

        async with Raw(whole(b"Hello"), think, whole(b"Again")) as server:
            await ask(http, server.url)
            asking = asyncio.create_task(ask(http, server.url))
            await thinking.wait()
            await skip(3)
            over.set()
            with pytest.raises(ConnectionError):
                await asking
            assert server.connections == 1
            await http.close()

    run(test())


async def test_many_requests_at_once_get_each_its_own_answer(http: Http) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(await reader.readexactly(3), "Connection: close"))

    async with Raw(*[echo] * 90) as server:
        bodies = [b"%03d" % number for number in range(90)]
        assert await asyncio.gather(*(ask(http, server.url, body) for body in bodies)) == bodies


async def test_connections_of_requests_at_once_are_used_again(http: Http) -> None:
    async with Raw(*[whole(b"Hello")] * 100) as server:
        for _ in range(5):
            await asyncio.gather(*(ask(http, server.url) for _ in range(20)))
        assert server.connections == 20


def test_nothing_waits_for_connections_that_are_closed() -> None:
    async def test() -> None:
        http, loop = Http(), asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        async with Raw(whole(b"Hello")) as server:
            await ask(http, server.url)
            await http.close()
            assert loop.waiting() == []
            await server.gone.wait()

    run(test())


def test_connections_of_event_loops_that_ended_are_given_up() -> None:
    async def ask_once(model: OpenAIModel) -> int:
        assert answer([event async for event in model.stream(ASKED)]).text == "Hello"
        gc.collect()
        return open_files()

    with LoopbackOpenAI() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # that is how asyncio tells of such connections
        server.say(*["Hello"] * 10)
        model = OpenAIModel("m", base_url=server.base_url)
        counts = [asyncio.run(ask_once(model)) for _ in range(10)]
        del model
        gc.collect()
    assert counts[-1] < counts[0] + 8  # the server's ends count, too


# Ways to a server


async def test_server_on_ipv6_is_reached(http: Http) -> None:
    try:
        server = await asyncio.start_server(_hello, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    async with server:
        assert await ask(http, f"http://[::1]:{server.sockets[0].getsockname()[1]}") == b"Hello"


async def _hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"Hello"))
    writer.close()


def test_address_that_refuses_is_no_hindrance_where_the_host_has_another() -> None:
    async def test() -> None:
        http = Http()
        async with Raw(whole(b"Hello")) as server:
            assert await ask(http, f"http://localhost:{server.port}") == b"Hello"
            await http.close()

    run(test(), "::1", "127.0.0.1")


def test_host_whose_addresses_all_refuse_is_reported() -> None:
    async def test() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            url = f"http://localhost:{silent.getsockname()[1]}/v1"
            told = await complaint(url, provider="ollama")
        assert told == f"ollama:m: no server listens at {url} (connection refused)"

    run(test(), "127.0.0.1", "127.0.0.1")


def test_host_that_nobody_knows_is_named() -> None:
    async def test() -> None:
        assert "the host nowhere.example can't be found (Name or service not known)" in await complaint(
            "https://nowhere.example/v1"
        )

    run(test(), "nowhere")


def test_way_that_takes_too_long_is_given_up() -> None:
    async def test() -> None:
        telling = asyncio.create_task(complaint("https://far.example/v1"))
        await skip(11)
        assert await telling == "openai:m: no answer in time (no connection within 10 s)"

    run(test(), "unheard")


# Proxies


@pytest.mark.parametrize(
    ("setting", "variable"),
    [(True, ""), (False, "HTTP_PROXY"), (False, "http_proxy")],
    ids=["setting", "upper", "lower"],
)
async def test_request_goes_through_the_proxy(setting: bool, variable: str) -> None:
    async with nothing_left(), Raw(whole(b"Hello")) as proxy:
        http = Http(proxy=proxy.url if setting else "", environ={variable: proxy.url})
        assert await ask(http, "http://models.example/v1") == b"Hello"
        assert proxy.heard[0].startswith(b"POST http://models.example/v1/ask HTTP/1.1\r\n")
        await http.close()


async def test_login_of_the_proxy_is_sent_to_it() -> None:
    async with Raw(whole(b"Hello")) as proxy:
        http = Http(proxy=proxy.url.replace("//", "//me:secret@"))
        assert await ask(http, "http://models.example/v1") == b"Hello"
        assert b"\r\nproxy-authorization: basic bwu6c2vjcmv0\r\n" in proxy.heard[0].lower()
        await http.close()


def test_hosts_of_no_proxy_are_reached_directly() -> None:
    async def test() -> None:
        async with Raw(whole(b"Hello")) as server:
            http = Http(proxy="http://127.0.0.1:9", environ={"NO_PROXY": "other.example,.models.example"})
            assert await ask(http, f"http://eu.models.example:{server.port}") == b"Hello"
            await http.close()

    run(test(), "127.0.0.1")


async def test_server_on_this_machine_is_reached_directly(http: Http) -> None:
    async with Raw(whole(b"Hello")) as server:
        http = Http(proxy="http://127.0.0.1:9", environ={"HTTP_PROXY": "http://127.0.0.1:9"})
        assert await ask(http, server.url) == b"Hello"
        await http.close()


async def test_passwords_for_a_host_in_netrc_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine models.example login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with Raw(whole(b"Hello")) as proxy:
        http = Http(proxy=proxy.url)
        await ask(http, "http://models.example/v1")
        assert b"authorization" not in proxy.heard[0].lower()
        await http.close()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")


async def test_proxy_that_refuses_says_so(http: Http) -> None:
    async with Raw(_refuse) as proxy:
        http = Http(proxy=proxy.url)
        told = await complaint("https://models.example/v1", http)
    assert told == "openai:m: the connection failed: the proxy refused to connect (407 Proxy Authentication Required)"


async def test_proxy_that_does_not_run_says_so() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        told = await complaint("https://models.example/v1", Http(proxy=f"http://me:secret@{host}"))
    assert told.startswith(f"openai:m: the connection failed: the proxy {host} can't be reached (Connect")


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        (
            "socks5://me:secret@127.0.0.1:9",
            """is "socks5://127.0.0.1:9", not an http or https address (SOCKS isn't sup""",
        ),
        (
            "SOCKS5H://127.0.0.1:9",
            """is "SOCKS5H://127.0.0.1:9", not an http or https address (SOCKS isn't supported)""",
        ),
        ("ftp://proxy.example", 'is "ftp://proxy.example", not an http or https address: write one like http://proxy'),
        ("http:/proxy.example:3128", "not an http or https address: write one like http://proxy.example:3128"),
        ("http://", "not an http or https address: write one like http://proxy.example:3128"),
        ("http://proxy.example:99999", "not an http or https address: write one like http://proxy.example:3128"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
async def test_variable_that_names_no_http_proxy_is_reported(variable: str, address: str, wrong: str) -> None:
    http = Http(environ={variable: address})
    model = OpenAIModel("m", base_url="https://models.example/v1", http=http)
    error = failure(await call(model))
    assert error.message.startswith(f"openai:m: {variable} is ")
    assert wrong in error.message
    assert error.kind == "unknown"  # trying again wouldn't help


@pytest.mark.parametrize("address", ["socks5://proxy:3128", "http://proxy:port", "proxy.example"])
def test_setting_that_names_no_http_proxy_is_reported(address: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^proxy is .* not an http or https address.*: write .*http://proxy"
    ) as error:
        Http(proxy=address)
    assert "/v1" not in str(error.value)


@pytest.mark.parametrize("written", ["HTTP://{}", "  http://{}\n"], ids=["capitals", "spaces"])
@pytest.mark.parametrize("setting", [True, False], ids=["setting", "variable"])
async def test_proxy_may_be_written_with_capitals_or_spaces(written: str, setting: bool) -> None:
    async with Raw(whole(b"Hello")) as proxy:
        address = written.format(proxy.url.removeprefix("http://"))
        http = Http(proxy=address) if setting else Http(environ={"http_proxy": address})
        assert await ask(http, "http://models.example/v1") == b"Hello"
        assert proxy.heard
        await http.close()


@pytest.mark.parametrize("empty", ["", " "])
def test_empty_proxy_is_none(empty: str) -> None:
    async def test() -> None:
        async with Raw(whole(b"Hello")) as server:
            http = Http(proxy=empty, environ={"http_proxy": empty, "HTTP_PROXY": "socks5://127.0.0.1:9"})
            assert await ask(http, f"http://models.example:{server.port}") == b"Hello"
            await http.close()

    run(test(), "127.0.0.1")


async def test_proxy_may_lack_its_scheme() -> None:
    async with Raw(whole(b"Hello")) as proxy:
        http = Http(environ={"http_proxy": proxy.url.removeprefix("http://")})
        assert await ask(http, "http://models.example/v1") == b"Hello"
        await http.close()


def test_proxy_must_be_an_address() -> None:
    with pytest.raises(
        ConfigError, match='proxy is "proxy:3128", not an http or https address: write http://proxy:3128'
    ):
        Http(proxy="proxy:3128")


# What the user is told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"220 mail.example.com ESMTP\r\n", "the connection failed: its answer is not HTTP: Bad status line: Exp"),
        (Last(), "the connection failed: the server closed the connection"),
        (
            whole(b"Hello", "Content-Encoding: gzip"),
            "openai:m: the connection failed: its answer can't be read: Can not decode content-encoding: gzip",
        ),
        (whole(b"", "Content-Encoding: br"), "the connection failed: its answer is compressed, in a way that it wa"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nPRI *", "(HTTP 101)"),
        (whole(b"{}", status="413 Content Too Large"), "(HTTP 413)"),
        (Last(whole(b"slow down", status="429 Too Many Requests")[:-4]), "(HTTP 429)"),
    ],
)
async def test_user_is_told_what_is_wrong_with_an_answer(http: Http, answer: bytes, told: str) -> None:
    async with Raw(answer) as server:
        assert told in await complaint(server.url, http)
