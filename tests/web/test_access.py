"""The page for people who can't use a mouse or see well: axe-core finds nothing, and keys reach everything."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.cli.gateway import GatewayProgram
from tests.conftest import give_up
from tests.web.conftest import Visiting
from tests.web.furnish import furnish

from denizen.testing import LoopbackOpenAI

pytestmark = pytest.mark.needs("chromium")
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core."""
    if not AXE.is_file():
        give_up("axe-core (`cd web && npm ci` installs it)")
    return AXE.read_text()


@pytest.fixture
async def furnished(
    gateway: GatewayProgram, configure: Callable[..., None], loopback_openai: LoopbackOpenAI, workspace: Path
) -> dict[str, str]:
    """A running gateway with some conversations: their keys, by name."""
    configure(loopback_openai, '[policy]\nrules = [{ tool = "bash", decide = "ask" }]\n')
    await gateway.start()
    return await furnish(gateway, loopback_openai, workspace)


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1280, "dark")])
async def test_axe_finds_nothing_in_any_view(
    visiting: Visiting, furnished: dict[str, str], axe: str, width: int, scheme: str
) -> None:
    keys = furnished
    chats = [f"/chat/{key}" for key in keys.values()]
    views = [
        "/chat",
        *chats,
        f"/story/{keys['hours']}",
        "/waiting",
        "/sessions",
        "/sessions?q=plan",
        "/charts",
        "/more",
    ]
    found = list[str]()
    async with visiting(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce") as seen:
        for path in [*views, "/more/status", "/more/people", "/more/help", "/more/device"]:
            await seen.go(path)
            await seen.page.locator("h1").first.wait_for()
            await seen.page.wait_for_load_state("networkidle")
            await seen.page.evaluate("document.querySelectorAll('main details').forEach((each) => each.open = true)")
            assert await seen.violations() == []
            await seen.page.evaluate(axe)
            report = await seen.page.evaluate("axe.run()")
            for each in report["violations"]:
                found += [
                    f"{path}: {each['id']}: {node['html'][:200]} {node['failureSummary']}" for node in each["nodes"]
                ]
            wide = await seen.page.evaluate("document.documentElement.scrollWidth > innerWidth")
            found += [f"{path} is wider than the screen"] if wide else []
            await seen.page.evaluate("window.violations = []")  # axe's own
    assert found == []


async def test_keys_reach_a_view_and_a_conversation(
    gateway: GatewayProgram, visiting: Visiting, configure: Callable[..., None], loopback_openai: LoopbackOpenAI
) -> None:
    configure(loopback_openai)
    loopback_openai.otherwise = lambda _: "At six."
    await gateway.start()
    async with visiting() as seen:
        await seen.page.keyboard.type("When do we close?")  # the field has the focus
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.get_by_role("article", name="Agent")).to_have_text("At six.")
        await expect(seen.page.get_by_role("status").filter(has_text="Answered: At six.")).to_have_count(1)
        await seen.page.keyboard.press("Control+k")
        await expect(seen.page.get_by_role("combobox", name="Go to")).to_be_focused()
        await seen.page.keyboard.type("charts")
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.get_by_role("heading", name="Charts", level=1)).to_be_visible()
        recent = seen.page.get_by_role("navigation", name="Recent")
        await expect(recent.get_by_text("When do we close?")).to_be_visible()
        await seen.page.keyboard.press("Control+k")
        await expect(seen.page.get_by_role("combobox", name="Go to")).to_be_focused()
        await seen.page.keyboard.type("when do")
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.get_by_role("article", name="Agent")).to_have_text("At six.")
