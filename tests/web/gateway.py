"""A gateway with a scripted model, and browsers that are signed in to its page."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect
from tests.cli.gateway import GatewayProgram

from denizen.testing import LoopbackOpenAI

CHROMIUM = "/usr/bin/chromium"
TIMEOUT_S = 60.0
"""Seconds that anything may take in the page, on a busy machine."""
expect.set_options(timeout=TIMEOUT_S * 1000)
_COUNTS_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", ({violatedDirective, blockedURI, sourceFile, lineNumber}) =>
    window.violations.push(`${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`));
"""


def settings(server: LoopbackOpenAI | None, more: str = "") -> str:
    """A configuration with the scripted model, or with `offline`."""
    if server is None:
        return f'model = "offline"\n{more}'
    return f'model = "test:scripted"\n[providers.test]\nbase_url = "{server.base_url}"\n{more}'


def gateway_at(home: Path, workspace: Path) -> GatewayProgram:
    """A gateway that isn't started yet, in a home with a configuration."""
    program = GatewayProgram(home, os.environ | {"DENIZEN_HOME": str(home)}, python=(sys.executable,))
    program.options = ("--workspace", str(workspace))
    return program


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """Debian's Chromium, without a screen and without a network."""
    offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", offline])
        try:
            yield browser
        finally:
            await browser.close()


class Visit:
    """A page in a browser, and what went wrong in it."""

    def __init__(self, page: Page, gateway: GatewayProgram) -> None:
        self.page = page
        self.gateway = gateway
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def go(self, path: str) -> None:
        """Open an address of the page."""
        await self.page.goto(self.gateway.url + path)

    async def violations(self) -> list[str]:
        """What the page did against its policy since it was loaded."""
        return await self.page.evaluate("window.violations")


@asynccontextmanager
async def visit(browser: Browser, gateway: GatewayProgram, **options: Any) -> AsyncGenerator[Visit]:
    """A browser's own context, signed in by a one-time link. Fails if the page broke its policy, or raised."""
    context = await browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_S * 1000)
    try:
        await context.add_init_script(_COUNTS_VIOLATIONS)
        seen = Visit(await context.new_page(), gateway)
        status, link = await gateway.request("POST", "/api/sign-in-links", json={})
        assert status == 200, link
        await seen.go(f"/#sign-in={link['code']}")
        await seen.page.locator("#main").wait_for()
        yield seen
        assert (await seen.violations(), seen.errors) == ([], [])
    finally:
        await context.close()


def words_of(body: dict[str, Any]) -> str:
    """The last message of a request to the model, as text."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)
