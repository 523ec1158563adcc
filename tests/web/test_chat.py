"""The chat: what a person sees and does, in a real browser with a real gateway."""

import signal
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.cli.gateway import GatewayProgram, key_of
from tests.web.conftest import Visiting
from tests.web.furnish import call, furnish, said
from tests.web.gateway import words_of

from denizen.messages import AssistantMessage, Text
from denizen.testing import LoopbackOpenAI, Step
from denizen.testing.loopback import LoopbackRequest

pytestmark = pytest.mark.needs("chromium")
PHONE = {"width": 360, "height": 720}


async def test_first_visit_offers_something_to_do_without_a_key(gateway: GatewayProgram, visiting: Visiting) -> None:
    await gateway.start()
    async with visiting() as seen:
        await expect(seen.page.get_by_text("No model is set up")).to_be_visible()
        await seen.page.get_by_role("button", name="What can you do?").click()
        await expect(seen.page.get_by_role("article", name="Agent").first).to_be_visible()
        await expect(seen.page.get_by_role("navigation", name="Recent").get_by_role("link")).to_have_count(1)


async def test_an_answer_streams_while_the_person_writes_on(
    gateway: GatewayProgram,
    visiting: Visiting,
    configure: Callable[..., None],
    loopback_openai: LoopbackOpenAI,
) -> None:
    configure(loopback_openai)
    wire = loopback_openai.wire.streamed(AssistantMessage([Text("The shop "), Text("closes at six.")]))
    half = len(wire) // 2
    loopback_openai.send(*wire[:half], Step.HOLD, *wire[half:])
    loopback_openai.say("At four on Sundays.")
    await gateway.start()
    async with visiting() as seen:
        field = seen.page.get_by_role("textbox", name="Message")
        await field.fill("When do we close?")
        await field.press("Enter")
        await expect(seen.page.get_by_text("The shop")).to_be_visible()
        await field.press_sequentially("And on Sundays?")
        await expect(field).to_have_value("And on Sundays?")
        await field.press("Enter")
        await expect(seen.page.get_by_role("region", name="Queued messages")).to_contain_text("And on Sundays?")
        loopback_openai.release()
        await expect(seen.page.get_by_text("The shop closes at six.", exact=True)).to_be_visible()
        await expect(seen.page.get_by_text("At four on Sundays.", exact=True)).to_be_visible()
        await expect(seen.page.get_by_role("article", name="You")).to_contain_text(
            ["When do we close?", "And on Sundays?"]
        )


async def test_calls_open_to_their_diff_and_thoughts_are_folded(
    gateway: GatewayProgram,
    workspace: Path,
    visiting: Visiting,
    configure: Callable[..., None],
    loopback_openai: LoopbackOpenAI,
) -> None:
    configure(loopback_openai, '[policy]\nrules = [{ tool = "bash", decide = "ask" }]\n')
    await gateway.start()
    keys = await furnish(gateway, loopback_openai, workspace)
    async with visiting() as seen:
        await seen.go(f"/chat/{keys['hours']}")
        await seen.page.get_by_text("edit", exact=True).click()
        await expect(seen.page.get_by_role("group", name="Changes")).to_contain_text('return 16 if day == "Sunday"')
        thoughts = seen.page.get_by_text("They want other hours on Sundays.")
        await expect(thoughts).not_to_be_visible()
        await seen.page.get_by_text("Thoughts").click()
        await expect(thoughts).to_be_visible()


async def test_a_gateway_that_dies_and_comes_back_loses_nothing_of_the_page(
    gateway: GatewayProgram, visiting: Visiting, configure: Callable[..., None]
) -> None:
    await gateway.start()
    async with visiting() as seen:
        port = gateway.url.rpartition(":")[2]
        field = seen.page.get_by_role("textbox", name="Message")
        await field.fill("/status")
        await field.press("Enter")
        await expect(seen.page.get_by_role("article", name="Command result")).to_have_count(1)
        await gateway.end(signal.SIGKILL)
        await expect(seen.page.get_by_text("Lost the connection to the gateway")).to_be_visible()
        await field.fill("Which files are in your workspace?")
        await field.press("Enter")
        await expect(seen.page.get_by_text("Not sent")).to_be_visible()
        gateway.options = (*gateway.options, "--port", port)
        await gateway.start()
        await expect(seen.page.get_by_text("Lost the connection to the gateway")).not_to_be_visible()
        await seen.page.get_by_role("button", name="Send again").click()
        await expect(seen.page.get_by_role("article", name="Agent")).to_have_count(1)
        await expect(seen.page.get_by_role("article", name="You")).to_have_count(1)


async def test_two_browsers_show_the_same(
    gateway: GatewayProgram,
    visiting: Visiting,
    configure: Callable[..., None],
    loopback_openai: LoopbackOpenAI,
) -> None:
    configure(loopback_openai)
    loopback_openai.otherwise = _echo
    await gateway.start()
    async with visiting() as desk, visiting(viewport=PHONE) as phone:
        for each in (desk, phone):
            await each.go(f"/chat/{key_of('both')}")
        for at, each in enumerate((desk, phone, desk)):
            await each.page.get_by_role("textbox", name="Message").fill(f"message {at}")
            await each.page.get_by_role("button", name="Send").click()
            for other in (desk, phone):
                await expect(other.page.get_by_text(f"heard message {at}", exact=True)).to_have_count(1)
        for each in (desk, phone):
            await expect(each.page.get_by_role("article", name="You")).to_have_count(3)


async def test_a_pasted_picture_is_attached_and_seen_by_the_model(
    gateway: GatewayProgram,
    visiting: Visiting,
    configure: Callable[..., None],
    loopback_openai: LoopbackOpenAI,
) -> None:
    configure(loopback_openai)
    loopback_openai.otherwise = lambda request: "a dot" if "image" in str(request.json["messages"][-1]) else "nothing"
    await gateway.start()
    async with visiting() as seen:
        await seen.page.locator("input[type=file]").set_input_files(
            {"name": "dot.png", "mimeType": "image/png", "buffer": _dot()}
        )
        await expect(seen.page.get_by_text("dot.png")).to_be_visible()
        await seen.page.get_by_role("textbox", name="Message").fill("What is this?")
        await seen.page.get_by_role("button", name="Send").click()
        await expect(seen.page.get_by_text("a dot", exact=True)).to_be_visible()
        await expect(seen.page.get_by_role("img", name="Attached")).to_be_visible()


def _echo(request: LoopbackRequest) -> str:
    words = words_of(request.json)
    return f"heard {words[words.index('message') :][:9]}" if "message" in words else "?"


def _dot() -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


async def test_opening_a_call_leaves_it_in_sight(
    gateway: GatewayProgram,
    workspace: Path,
    visiting: Visiting,
    configure: Callable[..., None],
    loopback_openai: LoopbackOpenAI,
) -> None:
    configure(loopback_openai)
    loopback_openai.say(said(*(call("read", path="long.txt") for _ in range(12))), "Read.")
    (workspace / "long.txt").write_text("line\n" * 200)
    await gateway.start()
    await gateway.post("long", "Read it")
    await gateway.replies("long", 1)
    async with visiting(viewport={"width": 1000, "height": 500}) as seen:
        await seen.go(f"/chat/{key_of('long')}")
        await expect(seen.page.get_by_text("Read.", exact=True)).to_be_in_viewport()
        line = seen.page.get_by_text("read", exact=True).last
        await line.click()
        await expect(seen.page.get_by_role("group", name="Result").last).to_be_in_viewport()
        await expect(line).to_be_in_viewport()
