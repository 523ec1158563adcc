"""How a request and its answer go over one connection, whatever the server sends, and whenever the caller goes away."""

import asyncio
import gzip
import zlib
from collections.abc import Callable

import pytest
from tests.models.raw import Last, Loop, Raw, Talk, ask, deaf, look, rounds, run, skip, whole

from denizen.models.endpoint import Endpoint
from denizen.models.http import MAX_ANSWER_BYTES, Http

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LARGE = bytes(8_000_000)


# The frame of an answer


@pytest.mark.parametrize("size", [0, 1, 7], ids=["at once", "byte by byte", "in pieces"])
@pytest.mark.parametrize(
    ("answer", "body", "used_again"),
    [
        (whole(b"Hello"), b"Hello", True),
        (whole(b""), b"", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"", True),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nHi", b"Hi", True),
        (CHUNKED + b"2\r\nHe\r\n3\r\nllo\r\n0\r\n\r\n", b"Hello", True),
        (CHUNKED + b'5;name="a;b"\r\nHello\r\n0\r\nX-Sum: 7\r\nX-More: 8\r\n\r\n', b"Hello", True),
        (CHUNKED + b"00005  \r\nHello\r\n000\r\n\r\n", b"Hello", True),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nHello", b"Hello", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + whole(b"Hello"), b"Hello", True),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + whole(b"Hello"), b"Hello", True),
        (whole(b"Hello", "Connection: close"), b"Hello", False),
        (Last(b"HTTP/1.1 200 OK\r\n\r\nHello"), b"Hello", False),
        (Last(b"HTTP/1.0 200 OK\r\n\r\nHello"), b"Hello", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nHello", b"Hello", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nHello", b"Hello", True),
    ],
)
async def test_answer_is_read_as_its_frame_says(
    http: Http, answer: bytes, body: bytes, used_again: bool, size: int
) -> None:
    async with Raw(answer, whole(b"next"), size=size) as server:
        assert await ask(http, server.url) == body
        assert await ask(http, server.url) == b"next"
        assert server.connections == (1 if used_again else 2)


async def test_name_of_a_field_is_found_in_any_case_and_its_value_as_it_came(http: Http) -> None:
    async with Raw(whole(b"", "RETRY-After:  7 ", "X-Name: Bj\u00f6rn")) as server:
        response = await look(http, server.url)
    assert response.status == 200
    assert response.headers["retry-after"] == "7"
    assert response.headers["x-name"] == "Björn"


async def test_remarks_before_the_answer_are_not_part_of_it(http: Http) -> None:
    async with Raw(b"HTTP/1.1 103 Early Hints\r\nRetry-After: 7\r\n\r\n" + whole(b"")) as server:
        response = await look(http, server.url)
    assert (response.status, "retry-after" in response.headers) == (200, False)


async def test_fields_after_a_body_are_not_those_of_the_answer(http: Http) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Type: c/d\r\n\r\n"
    async with Raw(answer) as server:
        assert (await look(http, server.url)).headers["content-type"] == "a/b"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"220 mail.example.com ESMTP\r\n", "not HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "not HTTP"),
        (b"HTTP/3.0 200 OK\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nHello", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "not HTTP"),
        (CHUNKED + b"xyz\r\n", "not HTTP"),
        (CHUNKED + b"-1\r\n", "not HTTP"),
        (CHUNKED + b"fffffffffffffffff\r\n", "not HTTP"),
        (CHUNKED + b"2\r\nHello\r\n0\r\n\r\n", "not HTTP"),
        (whole(b"Hello", "Content-Encoding: gzip"), "can't be read"),
        (Last(), "the server closed the connection"),
        (Last(b"HTTP/1.1 200 OK\r\nContent-"), "the server closed the connection"),
        (Last(b"HTTP/1.1 100 Continue\r\n\r\n"), "the server closed the connection"),
        (Last(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello"), "the server closed the connection"),
        (Last(CHUNKED + b"5\r\nHello\r\n"), "the server closed the connection"),
        (Last(CHUNKED + b"5\r\nHello\r\n0\r\nX-Sum: 7\r\n"), "the server closed the connection"),
    ],
)
async def test_what_is_no_answer_is_reported_and_its_connection_is_used_no_more(
    http: Http, answer: bytes, why: str
) -> None:
    async with Raw(answer, whole(b"next")) as server:
        with pytest.raises(ConnectionError, match=why):
            await ask(http, server.url)
        assert await ask(http, server.url) == b"next"
        assert server.connections == 2


async def test_what_came_of_a_stream_is_read_before_it_is_reported_that_it_broke(http: Http) -> None:
    async with (
        Raw(Last(CHUNKED + b"5\r\nHello\r\n")) as server,
        http.post(Endpoint(server.url, "/", "base_url"), [b""], stream=True) as response,
    ):
        assert await response.read_some() == b"Hello"
        with pytest.raises(ConnectionError):
            await response.read_some()


@pytest.mark.parametrize("size", [0, 1], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_compressed_answer_is_read(
    http: Http, coding: str, compress: Callable[[bytes], bytes], size: int
) -> None:
    async with Raw(whole(compress(b"Hello"), f"Content-Encoding: {coding}"), size=size) as server:
        assert await ask(http, server.url) == b"Hello"
        assert b"accept-encoding: gzip, deflate" in server.heard[0].lower()


# Bytes that nobody asked for


@pytest.mark.parametrize("unasked", [whole(b"forged"), b"HTTP/1.1 103 Early Hints\r\n\r\n"])
async def test_second_answer_is_never_that_of_the_next_request(http: Http, unasked: bytes) -> None:
    async with Raw(whole(b"first", "X-Number: 1") + unasked, whole(b"second")) as server:
        response = await look(http, server.url)
        assert (response.status, response.headers["x-number"]) == (200, "1")
        assert await ask(http, server.url) == b"second"
        assert server.connections == 2


async def test_start_of_a_second_answer_is_not_that_of_the_next_request(http: Http) -> None:
    async with Raw(whole(b"first") + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n", whole(b"second")) as server:
        assert await ask(http, server.url) == b"first"
        assert await ask(http, server.url) == b"second"


async def test_garbage_after_an_answer_ends_the_connection(http: Http) -> None:
    async with Raw(whole(b"first") + b"x", whole(b"second")) as server:
        with pytest.raises(ConnectionError, match="not HTTP"):
            await ask(http, server.url)
        assert await ask(http, server.url) == b"second"


async def test_answer_isn_t_longer_for_a_second_one_after_it(http: Http) -> None:
    async with Raw(whole(b"first") + whole(b"forged")) as server:
        assert await ask(http, server.url) == b"first"


async def test_bytes_that_come_while_nobody_asks_are_no_answer(http: Http) -> None:
    async with Raw(whole(b"first"), whole(b"second")) as server:
        assert await ask(http, server.url) == b"first"
        server.open[0].write(whole(b"forged"))
        await rounds(20)
        assert await ask(http, server.url) == b"second"


async def test_end_of_an_answer_that_nobody_read_isn_t_the_start_of_the_next(http: Http) -> None:
    async with Raw(whole(b"first"), whole(b"second")) as server:
        async with http.post(Endpoint(server.url, "/", "base_url"), [b""], stream=True):
            pass
        assert await ask(http, server.url) == b"second"
        assert server.connections == 1


async def test_server_that_speaks_first_is_no_web_server(http: Http) -> None:
    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        greeted.append(writer)

    greeted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    with pytest.raises(ConnectionError, match=r"not HTTP|before it was asked"):
        await ask(http, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for writer in greeted:
        writer.transport.abort()
    server.close()


# Bounds


async def _endlessly(writer: asyncio.StreamWriter, start: bytes, more: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(more * (1 + 65536 // len(more)))
        await writer.drain()


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Field: value\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Field: ", b"value"),
        (CHUNKED + b"0\r\n", b"X-Trailer: value\r\n"),
    ],
    ids=["fields", "one field", "trailers"],
)
async def test_headers_without_an_end_are_given_up(http: Http, start: bytes, more: bytes) -> None:
    async with Raw(lambda _, writer: _endlessly(writer, start, more)) as server:
        with pytest.raises(ConnectionError, match=r"Too many headers|Got more than 8190 bytes"):
            await ask(http, server.url)


async def test_answer_without_an_end_is_given_up_where_it_is_read_whole(http: Http) -> None:
    async with Raw(lambda _, writer: _endlessly(writer, b"HTTP/1.1 200 OK\r\n\r\n", bytes(65536))) as server:
        with pytest.raises(ConnectionError, match="longer than 64 MB"):
            await ask(http, server.url)


async def test_long_answer_comes_whole(http: Http) -> None:
    async with Raw(whole(LARGE + b"end"), whole(b"next")) as server:
        assert await ask(http, server.url) == LARGE + b"end"
        assert await ask(http, server.url) == b"next"
        assert server.connections == 1


async def test_server_waits_until_its_answer_is_read_and_goes_on_then(http: Http) -> None:
    said = 0

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal said
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MAX_ANSWER_BYTES)
        while said < MAX_ANSWER_BYTES:
            writer.write(bytes(65536))
            said += 65536
            await writer.drain()

    async with (
        Raw(talk, whole(b"next")) as server,
        http.post(Endpoint(server.url, "/", "base_url"), [b""], stream=True) as response,
    ):
        await rounds(3000)
        assert 65536 < said < MAX_ANSWER_BYTES // 2
        assert len(await response.read()) == MAX_ANSWER_BYTES


# Requests that the server doesn't take


async def test_large_request_arrives_whole(http: Http) -> None:
    async with Raw(whole(b"Thanks")) as server:
        async with http.post(Endpoint(server.url, "/", "base_url"), [LARGE, b"", LARGE], stream=True) as response:
            assert await response.read() == b"Thanks"
        head, _, body = server.heard[0].partition(b"\r\n\r\n")
        assert (b"content-length: 16000000" in head, body) == (True, LARGE + LARGE)


@pytest.mark.parametrize("then_closes", [False, True])
async def test_refusal_is_heard_although_the_request_wasn_t_taken_whole(http: Http, then_closes: bool) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await deaf(reader, writer)
        writer.write(whole(b"Too large", status="413 Content Too Large"))
        await writer.drain()
        if then_closes:
            writer.close()

    async with Raw(refuse, whole(b"next")) as server:
        async with http.post(Endpoint(server.url, "/", "base_url"), [LARGE], stream=True) as response:
            assert (response.status, await response.read()) == (413, b"Too large")
        assert await ask(http, server.url) == b"next"
        assert server.connections == 2


# Silence, on a clock that the test puts forward


@pytest.mark.parametrize("body", [b"Hi", LARGE], ids=["after the request", "amid the request"])
@pytest.mark.parametrize(
    ("stream", "seconds"), [(True, 120), (False, 600)], ids=["of a stream", "of an answer in one piece"]
)
def test_silence_ends_a_request(body: bytes, stream: bool, seconds: int) -> None:
    async def test() -> None:
        async with Raw(deaf) as server:
            asking = asyncio.create_task(ask(Http(), server.url, body, stream=stream))
            await skip(seconds - 1)
            assert not asking.done()
            await skip(2)
            with pytest.raises(TimeoutError, match=f"nothing came for {seconds} s"):
                await asking

    run(test())


@pytest.mark.parametrize("head", [CHUNKED + b"5\r\n", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["chunked", "until it closes"])
def test_silence_amid_an_answer_is_not_its_end(head: bytes) -> None:
    async def test() -> None:
        async with Raw(head + b"Hello") as server:
            asking = asyncio.create_task(ask(Http(), server.url, stream=True))
            await skip(121)
            with pytest.raises(TimeoutError):
                await asking

    run(test())


def test_each_byte_breaks_the_silence() -> None:
    async def slowly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in whole(b"Hello"):
            writer.write(bytes([byte]))
            await skip(100)

    async def test() -> None:
        http = Http()
        async with Raw(slowly) as server:
            assert await ask(http, server.url, stream=True) == b"Hello"
            await http.close()

    run(test())


def test_caller_who_reads_nothing_is_not_the_server_s_silence() -> None:
    async def test() -> None:
        http = Http()
        async with (
            Raw(whole(LARGE)) as server,
            http.post(Endpoint(server.url, "/", "base_url"), [b""], stream=True) as response,
        ):
            await skip(1000)
            assert await response.read() == LARGE
        await http.close()

    run(test())


@pytest.mark.parametrize("stream", [True, False])
def test_no_timer_outlives_what_it_watched(stream: bool) -> None:
    async def test() -> None:
        loop, http = asyncio.get_running_loop(), Http()
        assert isinstance(loop, Loop)
        async with Raw(whole(b"Hello"), deaf) as server:
            assert await ask(http, server.url, stream=stream) == b"Hello"
            asking = asyncio.create_task(ask(http, server.url, stream=stream))
            await rounds(20)
            asking.cancel()
            await asyncio.wait([asking])
            await http.close()
            assert loop.waiting() == []

    run(test())


# A caller who goes away


async def _half(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED + b"5\r\nHello\r\n")


@pytest.mark.parametrize(
    ("talk", "body"),
    [(deaf, LARGE), (deaf, b"Hi"), (_half, b"Hi")],
    ids=["amid the request", "before the answer", "amid the answer"],
)
async def test_cancelled_request_closes_its_connection(http: Http, talk: Talk, body: bytes) -> None:
    async with Raw(talk, whole(b"next")) as server:
        asking = asyncio.create_task(ask(http, server.url, body))
        await server.asked.wait()
        await rounds(20)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await ask(http, server.url) == b"next"
        assert server.connections == 2


async def test_request_that_is_cancelled_at_any_moment_leaves_nothing(http: Http) -> None:
    async with Raw(*[whole(b"Hello")] * 60) as server:
        for moment in range(30):
            asking = asyncio.create_task(ask(http, server.url))
            await rounds(moment)
            asking.cancel()
            await asyncio.wait([asking])
            assert await ask(http, server.url) == b"Hello"
            await http.close()


async def test_answer_that_is_left_early_isn_t_read_to_its_end(http: Http) -> None:
    async with Raw(_half, whole(b"next")) as server:
        async with http.post(Endpoint(server.url, "/", "base_url"), [b""], stream=True) as response:
            assert await response.read_some() == b"Hello"
        assert await ask(http, server.url) == b"next"
        assert server.connections == 2
