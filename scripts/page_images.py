"""Takes the pictures of the page in docs/images: every view, wide and narrow, in light and dark."""

import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Page
from tests.web.furnish import furnish
from tests.web.gateway import chromium, gateway_at, settings, visit

from denizen.testing import LoopbackOpenAI

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZES = {"wide": {"width": 1200, "height": 760}, "narrow": {"width": 360, "height": 720}}
ASKS = '[policy]\nrules = [{ tool = "bash", decide = "ask" }]\n[budget]\nday_usd = 1.0\n'
SETTLE_MS = 1500


async def main() -> None:
    """Furnish a home, and look at it."""
    with tempfile.TemporaryDirectory() as folder, LoopbackOpenAI() as server:
        home, workspace = Path(folder) / "home", Path(folder) / "shop"
        home.mkdir(mode=0o700)
        workspace.mkdir()
        (home / "denizen.toml").write_text(settings(server, ASKS))
        (home / "denizen.toml").chmod(0o600)
        gateway = gateway_at(home, workspace)
        await gateway.start()
        try:
            keys = await furnish(gateway, server, workspace)
            views = {
                "first": "/chat",
                "chat": f"/chat/{keys['hours']}",
                "waiting": "/waiting",
                "sessions": "/sessions",
                "story": f"/story/{keys['hours']}",
                "charts": "/charts?show=tokens&days=7&by=session",
                "more": "/more",
            }
            async with chromium() as browser:
                for size, viewport in SIZES.items():
                    for scheme in ("light", "dark"):
                        async with visit(browser, gateway, viewport=viewport, color_scheme=scheme) as seen:
                            for view, path in views.items():
                                await seen.go(path)
                                await _open_edit(seen.page, view)
                                await seen.page.screenshot(path=IMAGES / f"page-{view}-{size}-{scheme}.png")
        finally:
            await gateway.end()


async def _open_edit(page: Page, view: str) -> None:
    """Wait until the view is drawn; in the chat, open the call that edits."""
    await page.locator("h1").first.wait_for()
    await page.wait_for_timeout(SETTLE_MS)
    if view == "chat":
        await page.get_by_text("edit", exact=True).click()
        await page.wait_for_timeout(SETTLE_MS)


asyncio.run(main())
