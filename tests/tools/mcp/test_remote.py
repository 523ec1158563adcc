"""Servers that are reached over HTTP, and signing in at them."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.tools.mcp.conftest import Scene
from yarl import URL

from denizen.config.settings import McpServer
from denizen.errors import ToolRefused
from denizen.runtime.clock import SystemClock
from denizen.tools.mcp.connection import McpConnection
from denizen.tools.mcp.remote import Remote, Tokens
from denizen.trusted.session_files import SessionFiles

OVER_HTTP = Path(__file__).parents[2] / "data" / "mcp" / "over_http.py"


@asynccontextmanager
async def serving(*options: str, port: int = 0) -> AsyncGenerator[McpServer]:
    """The server over HTTP, as settings."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(OVER_HTTP), str(port), *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    try:
        port = int(await process.stdout.readline())
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        await process.wait()


async def test_a_server_over_http_answers(scene: Scene) -> None:
    async with serving() as server, scene.met({"web": server}) as tools:
        assert (await scene.call(tools["mcp_web_add"], a=2, b=3)).text == "5"


async def test_an_answer_that_is_too_long_is_an_error(scene: Scene) -> None:
    async with serving() as server, scene.met({"web": server}) as tools:
        with pytest.raises(ToolRefused, match=r"was lost, .*: it sent a message of more than 16,000,000 bytes"):
            await scene.call(tools["mcp_web_flood"])
        assert (await scene.call(tools["mcp_web_add"], a=2, b=3)).text == "5"


async def test_a_server_that_is_gone_is_an_error_and_one_that_is_back_is_used(scene: Scene) -> None:
    async with AsyncExitStack() as stack:
        async with serving() as server:
            tools = await stack.enter_async_context(scene.met({"web": server}))
        for _ in range(2):
            with pytest.raises(ToolRefused, match="MCP server web"):
                await scene.call(tools["mcp_web_add"], a=2, b=3)
        await scene.clock.sleep(60)
        await stack.enter_async_context(serving(port=URL(server.url).port or 0))
        assert (await scene.call(tools["mcp_web_add"], a=2, b=3)).text == "5"


async def sign_in(scene: Scene, server: McpServer) -> None:
    """As `denizen mcp login`; the browser is one that follows where it is sent."""

    async def browse(address: str) -> None:
        async with aiohttp.ClientSession() as browser, browser.get(address) as page:
            assert "go back to Denizen" in await page.text()

    clock = SystemClock()
    remote = Remote("web", server, Tokens(scene.home, server.url, clock), browse)
    connection = McpConnection("web", server, remote, clock, scene.workspace, SessionFiles(scene.home))
    try:
        assert "add" in (await connection.listing()).tools
    finally:
        await connection.close()


async def test_a_server_that_wants_a_sign_in_says_how(scene: Scene) -> None:
    async with serving("locked") as server, scene.servers({"web": server}) as servers:
        (why,) = await servers.meet()
        assert "denizen mcp login web" in why


async def test_after_a_sign_in_the_server_is_used_and_the_sign_in_renewed(scene: Scene) -> None:
    async with serving("locked") as server:
        await sign_in(scene, server)
        kept = scene.home / "mcp-tokens.json"
        assert kept.stat().st_mode & 0o077 == 0
        tokens = json.loads(kept.read_bytes())[server.url]
        tokens["until"] = 1.0  # long ago
        kept.write_text(json.dumps({server.url: tokens}))
        async with scene.met({"web": server}) as tools:
            assert (await scene.call(tools["mcp_web_add"], a=2, b=3)).text == "5"
            assert int((await scene.call(tools["mcp_web_renewed"])).text) >= 1


async def test_tokens_go_to_their_own_server_only(scene: Scene) -> None:
    async with serving("locked") as server, serving("locked") as other:
        await sign_in(scene, server)
        async with scene.servers({"web": other}) as servers:
            (why,) = await servers.meet()
        assert "401" in why
