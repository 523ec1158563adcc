"""`denizen web`: a link to the page of a gateway that runs, or that it starts."""

import asyncio
import re
import signal
from pathlib import Path

import aiohttp
from tests.cli.conftest import Run
from tests.cli.gateway import PATIENCE, GatewayProgram


class WebProgram(GatewayProgram):
    arguments = ("web", "--no-open", "--port", "0")


async def sign_in(link: str) -> int:
    """The status of the gateway's status for a browser that has followed the link."""
    url, _, code = link.partition("/#sign-in=")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.post(f"{url}/api/sign-in", json={"code": code}, headers={"Origin": url}) as response:
            assert response.status == 200
        async with browser.get(f"{url}/api/status") as response:
            return response.status


async def test_web_starts_a_gateway_without_a_key_and_prints_a_link(
    home: Path, environ: dict[str, str], denizen: Run, warm_python: list[str]
) -> None:
    program = WebProgram(home, environ, python=warm_python)
    try:
        await program.start()
        assert program.process.stdout
        link = (await asyncio.wait_for(program.process.stdout.readline(), PATIENCE)).decode().strip()
        assert re.fullmatch(rf"{program.url}/#sign-in=[\w-]{{32}}", link)
        assert await sign_in(link) == 200
        ran = await asyncio.to_thread(denizen, "web", "--no-open")
        assert ran.status == 0, ran.err
        assert await sign_in(ran.out.strip()) == 200
    finally:
        await program.end(signal.SIGKILL)
