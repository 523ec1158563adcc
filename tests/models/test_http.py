"""Where requests go, over which connections, and what a user is told when nobody is reached."""

import asyncio
import gc
import socket
import warnings

import pytest
from tests.models.calls import ASKED, answer
from tests.models.raw import Last, Loop, Raw, ask, complaint, open_files, rounds, run, skip, whole

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


def test_connection_is_closed_when_nobody_used_it_for_half_a_minute() -> None:
    async def test() -> None:
        http = Http()
        async with Raw(*[whole(b"Hello")] * 5) as server:
            for _ in range(3):
                await ask(http, server.url)
                await skip(29)
            assert (server.connections, len(server.open)) == (1, 1)
            await skip(31)
            await skip(31)
            assert len(server.open) == 0
            assert await ask(http, server.url) == b"Hello"
            assert server.connections == 2
            await http.close()

    run(test())


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


def test_host_whose_addresses_all_refuse_is_told() -> None:
    async def test() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            url = f"http://localhost:{silent.getsockname()[1]}/v1"
            told = await complaint(url, provider="ollama")
        assert told == f"ollama:m: nothing listens at {url} (connection refused)"

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


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"220 mail.example.com ESMTP\r\n", "the connection failed: its answer is not HTTP: Expected HTTP/"),
        (Last(), "the connection failed: the server closed the connection"),
        (whole(b"", "Content-Encoding: br"), "the connection failed: its answer is compressed (br), which it was as"),
        (whole(b"{}", status="413 Content Too Large"), "(HTTP 413)"),
        (Last(whole(b"slow down", status="429 Too Many Requests")[:-4]), "(HTTP 429)"),
    ],
)
async def test_user_is_told_what_is_wrong_with_an_answer(http: Http, answer: bytes, told: str) -> None:
    async with Raw(answer) as server:
        assert told in await complaint(server.url, http)
