"""Signing in to the page: links, cookies, and what a browser may do with them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.worlds.chat.conftest import Serve, SimulatedClock
from tests.worlds.chat.http.test_http import Client, reached

from denizen.worlds.chat.http.page_files import POLICY
from denizen.worlds.chat.http.sign_in import COOKIE_LIFETIME_S, MAX_BROWSERS


class Browser:
    """Sends what a browser sends from the page: its cookies and its origin."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, **body: Any) -> Any:
        given = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"} if headers is None else headers
        async with self.session.request(method, self.url + path, headers=given, **body) as response:
            return response.status, await response.json()

    async def sign_in(self, client: Client) -> None:
        _, link = await client.ask("POST", "/api/sign-in-links")
        answer = await self.ask("POST", "/api/sign-in", json={"code": link["code"]})
        assert answer == (200, {"signed_in": True})

    @property
    def is_signed_out(self) -> bool:
        return not [*self.session.cookie_jar]


@asynccontextmanager
async def browser_at(url: str) -> AsyncGenerator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(session, url)


@asynccontextmanager
async def signed_in(client: Client) -> AsyncGenerator[Browser]:
    async with browser_at(client.url) as browser:
        await browser.sign_in(client)
        yield browser


async def test_link_signs_in_one_browser_once(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client, browser_at(client.url) as browser:
        assert (await browser.ask("GET", "/api/status"))[0] == 401
        _, link = await client.ask("POST", "/api/sign-in-links")
        assert (await browser.ask("POST", "/api/sign-in", json={"code": link["code"]}))[0] == 200
        assert (await browser.ask("GET", "/api/status"))[0] == 200
        assert (await browser.ask("POST", "/api/sign-in", json={"code": link["code"]}))[0] == 403
        async with browser_at(client.url) as other:
            assert (await other.ask("GET", "/api/status"))[0] == 401


async def test_link_expires_after_five_minutes_and_the_cookie_after_a_month(serve: Serve, home: Path) -> None:
    clock = SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with serve(clock=clock) as scene, reached(scene, home) as client:
        _, link = await client.ask("POST", "/api/sign-in-links")
        clock.suspend(timedelta(minutes=5))
        async with browser_at(client.url) as late:
            assert (await late.ask("POST", "/api/sign-in", json={"code": link["code"]}))[0] == 403
        async with signed_in(client) as browser:
            clock.suspend(timedelta(seconds=COOKIE_LIFETIME_S - 1))
            assert (await browser.ask("GET", "/api/status"))[0] == 200
            clock.suspend(timedelta(seconds=1))
            assert (await browser.ask("GET", "/api/status"))[0] == 401


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({}, False),
        ({"X-Forwarded-Proto": "https"}, True),
        ({"Origin": "https://agent.example", "Host": "agent.example"}, True),
    ],
)
async def test_cookie_is_strict_hidden_from_scripts_and_secure_behind_tls(
    serve: Serve, home: Path, headers: Mapping[str, str], is_secure: bool
) -> None:
    async with (
        serve(hosts=["agent.example"]) as scene,
        reached(scene, home) as client,
        browser_at(client.url) as browser,
    ):
        _, link = await client.ask("POST", "/api/sign-in-links")
        given = {"Origin": client.url, **headers}
        async with browser.session.post(f"{client.url}/api/sign-in", json={"code": link["code"]}, headers=given) as got:
            [cookie] = got.headers.getall("Set-Cookie")
    for part in ("HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={COOKIE_LIFETIME_S:.0f}"):
        assert part in cookie
    assert ("Secure" in cookie) is is_secure


async def test_browser_stays_signed_in_over_a_restart_and_not_over_a_new_token(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client, browser_at("") as browser:
        browser.url = client.url
        await browser.sign_in(client)
        [cookie] = [each.value for each in browser.session.cookie_jar]
    assert cookie not in (home / "sign_ins.json").read_text()
    async with serve() as scene, reached(scene, home) as client, browser_at(client.url) as browser:
        own = {"Cookie": f"denizen-{client.url.rpartition(':')[2]}={cookie}"}
        assert (await browser.ask("GET", "/api/status", own))[0] == 200
        await client.ask("POST", "/api/token")
        assert (await browser.ask("GET", "/api/status", own))[0] == 401


async def test_sign_out_invalidates_the_cookie_and_ends_the_browsers_events(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client, signed_in(client) as browser:
        [cookie] = browser.session.cookie_jar
        async with (
            signed_in(client) as other,
            browser.session.ws_connect(f"{client.url}/api/events", origin=client.url) as events,
            other.session.ws_connect(f"{client.url}/api/events", origin=client.url) as others,
        ):
            assert await browser.ask("POST", "/api/sign-out") == (200, {"signed_in": False})
            assert browser.is_signed_out
            assert (await events.receive()).type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE}
            own = {"Cookie": f"{cookie.key}={cookie.value}"}
            assert (await browser.ask("GET", "/api/status", own))[0] == 401
            assert not others.closed
            assert (await other.ask("GET", "/api/status"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/api/sign-out", {}),
        ("POST", "/api/sign-out", {"Origin": "https://evil.example"}),
        ("POST", "/api/sign-out", {"Origin": "null"}),
        ("POST", "/api/sign-out", {"Origin": "http://127.0.0.1:1"}),
        ("GET", "/api/status", {"Sec-Fetch-Site": "cross-site"}),
        ("GET", "/api/status", {"Sec-Fetch-Site": "same-site"}),
        ("GET", "/api/events", {"Connection": "upgrade", "Upgrade": "websocket"}),
    ],
)
async def test_cookie_counts_only_for_requests_of_the_page_itself(
    serve: Serve, home: Path, method: str, path: str, headers: Mapping[str, str]
) -> None:
    async with serve() as scene, reached(scene, home) as client, signed_in(client) as browser:
        assert (await browser.ask(method, path, headers))[0] in {401, 403}
        assert not browser.is_signed_out
        assert (await browser.ask("GET", "/api/status", {}))[0] == 200


@pytest.mark.parametrize("host", ["localhost:99999", "a:b", "localhost, evil.example:80"])
async def test_a_malformed_host_is_refused_and_not_logged_as_a_fault(
    serve: Serve, home: Path, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    async with serve() as scene, reached(scene, home) as client, browser_at(client.url) as browser:
        assert (await browser.ask("GET", "/api/status", {"Host": host}))[0] in {401, 403}
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_wrong_token_is_refused_though_the_browser_is_signed_in(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client, signed_in(client) as browser:
        assert (await browser.ask("GET", "/api/status", {"Authorization": "Bearer guessed"}))[0] == 401


async def test_one_browser_too_many_signs_out_the_first(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client, signed_in(client) as first:
        async with browser_at(client.url) as browser:
            for _ in range(MAX_BROWSERS):
                await browser.sign_in(client)
            assert (await browser.ask("GET", "/api/status"))[0] == 200
        assert (await first.ask("GET", "/api/status"))[0] == 401


async def test_damaged_file_of_sign_ins_signs_out_everybody_and_breaks_nothing(serve: Serve, home: Path) -> None:
    (home / "sign_ins.json").write_text("{")
    async with serve() as scene, reached(scene, home) as client, signed_in(client) as browser:
        assert (await browser.ask("GET", "/api/status"))[0] == 200


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>the page")
    (folder / "assets" / "app-1a2b.js").write_text("plain()")
    (folder / "assets" / "app-1a2b.js.br").write_bytes(b"brotli")
    monkeypatch.setattr("denizen.worlds.chat.http.page_files.FOLDER", folder)
    return folder


@pytest.mark.parametrize("path", ["/", "/waiting", "/sessions/agent%3Amain%3Achannel%3Acli", "/story/a/b"])
async def test_page_is_served_to_strangers_under_its_policy(serve: Serve, home: Path, page: Path, path: str) -> None:
    async with serve() as scene, reached(scene, home) as client, aiohttp.ClientSession() as session:
        async with session.get(client.url + path) as response:
            assert (response.status, response.content_type) == (200, "text/html")
            assert await response.text() == "<!doctype html>the page"
            assert response.headers["Content-Security-Policy"] == POLICY
            assert response.headers["Cache-Control"] == "no-cache"
            tag = response.headers["ETag"]
        async with session.get(client.url + path, headers={"If-None-Match": tag}) as response:
            assert response.status == 304


async def test_assets_are_kept_by_browsers_and_sent_compressed(serve: Serve, home: Path, page: Path) -> None:
    async with (
        serve() as scene,
        reached(scene, home) as client,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
        url = f"{client.url}/assets/app-1a2b.js"
        for accepted, body in (("gzip, br", b"brotli"), ("identity", b"plain()")):
            async with session.get(url, headers={"Accept-Encoding": accepted}) as response:
                assert response.content_type.endswith("/javascript")
                assert await response.read() == body
                assert "immutable" in response.headers["Cache-Control"]
                assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/assets/app-9.js", 404),
        ("/assets/..%2findex.html", 401),
        ("/api/nonsense", 401),
        ("/v1/nonsense", 401),
        ("/metrics", 401),
        ("/openapi.json", 401),
    ],
)
async def test_nothing_but_the_page_is_served_to_strangers(
    serve: Serve, home: Path, page: Path, path: str, status: int
) -> None:
    async with (
        serve() as scene,
        reached(scene, home) as client,
        aiohttp.request("GET", client.url + path) as response,
    ):
        assert response.status == status
