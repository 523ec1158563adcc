"""Three tasks on a phone, by visible labels alone: answer a question, undo a turn, find an earlier conversation."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.cli.gateway import GatewayProgram
from tests.web.conftest import Visiting
from tests.web.furnish import AFTER, BEFORE, furnish

from denizen.testing import LoopbackOpenAI

pytestmark = pytest.mark.needs("chromium")
PHONE = {"width": 360, "height": 720}


@pytest.fixture
async def keys(
    gateway: GatewayProgram, configure: Callable[..., None], loopback_openai: LoopbackOpenAI, workspace: Path
) -> dict[str, str]:
    configure(loopback_openai, '[policy]\nrules = [{ tool = "bash", decide = "ask" }]\n')
    await gateway.start()
    return await furnish(gateway, loopback_openai, workspace)


async def open_from_menu(page: Page, name: str) -> None:
    await page.get_by_role("button", name="Open the menu").click()
    await page.get_by_role("link", name=name).first.click()


async def test_a_question_is_refused_with_words(
    visiting: Visiting, keys: dict[str, str], loopback_openai: LoopbackOpenAI
) -> None:
    async with visiting(viewport=PHONE) as seen:
        await open_from_menu(seen.page, "Waiting for you")
        await expect(seen.page.get_by_text("rm -rf build dist").first).to_be_visible()
        await expect(seen.page.get_by_text("“Always” adds the rule")).to_be_visible()
        await seen.page.get_by_role("button", name="No…").click()
        await seen.page.get_by_label("What should it do instead?").fill("Keep dist, please.")
        await seen.page.get_by_role("button", name="Refuse").click()
        await expect(seen.page.get_by_role("heading", name="Nothing is waiting for you")).to_be_visible()
        await open_from_menu(seen.page, "Please sweep the workspace")
        await expect(seen.page.get_by_text("You refused this: Keep dist, please.")).to_be_visible()
        await expect(seen.page.get_by_text("The shop closes at")).to_be_visible()
    assert "Keep dist, please." in str(loopback_openai.requests[-1].json["messages"])


async def test_a_turn_is_undone_in_words_and_files(visiting: Visiting, keys: dict[str, str], workspace: Path) -> None:
    assert (workspace / "opening.py").read_text() == AFTER
    async with visiting(viewport=PHONE) as seen:
        await open_from_menu(seen.page, "Please change the hour")
        await seen.page.get_by_role("button", name="Undo").click()
        dialog = seen.page.get_by_role("dialog", name="Undo the last turn")
        await expect(dialog.get_by_role("group", name="Changes")).to_contain_text("return 18")
        await dialog.get_by_role("button", name="Undo").click()
        await expect(dialog).not_to_be_visible()
        await expect(seen.page.get_by_role("article", name="You")).to_have_count(0)
    assert (workspace / "opening.py").read_text() == BEFORE


async def test_an_earlier_conversation_is_found_by_its_words(visiting: Visiting, keys: dict[str, str]) -> None:
    async with visiting(viewport=PHONE) as seen:
        await open_from_menu(seen.page, "Sessions")
        await seen.page.get_by_role("searchbox", name="Search messages").fill("paint tuesday")
        await seen.page.get_by_role("link", name="What's the plan for the week?").last.click()
        await expect(seen.page.get_by_text("shelves on Monday, paint on Tuesday")).to_be_visible()
