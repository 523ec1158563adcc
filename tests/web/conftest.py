"""Browsers for the tests of the page."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser
from tests.cli.gateway import GatewayProgram
from tests.web.gateway import Visit, chromium, gateway_at, settings, visit

from denizen.testing import LoopbackOpenAI

Visiting = Callable[..., AbstractAsyncContextManager[Visit]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as started:
        yield started


@pytest.fixture
def configure(home: Path) -> Callable[..., None]:
    """`configure(server, more)`: the home's configuration; without a server, the model is `offline`."""

    def write(server: LoopbackOpenAI | None = None, more: str = "") -> None:
        (home / "denizen.toml").write_text(settings(server, more))
        (home / "denizen.toml").chmod(0o600)

    return write


@pytest.fixture
async def gateway(home: Path, workspace: Path, configure: Callable[..., None]) -> AsyncGenerator[GatewayProgram]:
    """A gateway with the `offline` model, unless the test configures another, that isn't started yet."""
    configure()
    program = gateway_at(home, workspace)
    yield program
    if program.is_running:
        program.kill()
        await program.end()


@pytest.fixture
def visiting(browser: Browser, gateway: GatewayProgram) -> Visiting:
    """`async with visiting(viewport=…) as seen`: a signed-in browser; see `visit`."""
    return partial(visit, browser, gateway)
