"""Text that others wrote runs nothing, loads nothing, and draws nothing but text."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.gateway import GatewayProgram
from tests.web.conftest import Visiting

from denizen.entries import AnyEntry, AssistantEntry, ParkedEntry, ToolEntry, UserEntry
from denizen.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore, SessionKey

pytestmark = pytest.mark.needs("chromium")
TEXTS: list[str] = json.loads((Path(__file__).parents[1] / "data" / "web" / "hostile.json").read_text())
ALLOWED = [
    *(
        "a",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "button",
        "caption",
        "code",
        "dd",
        "details",
        "dialog",
        "div",
    ),
    *("dl", "dt", "em", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header"),
    *("hr", "html", "img", "input", "kbd", "label", "li", "link", "main", "mark", "meta", "meter", "nav", "noscript"),
    *("ol", "option", "output", "p", "path", "pre", "s", "script", "section", "select", "small", "span", "strong"),
    *("summary", "svg", "table", "tbody", "td", "textarea", "th", "thead", "time", "title", "tr", "ul"),
]
SETTLE = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
FIND_FOREIGN = """(allowed) => [...document.querySelectorAll("*")].flatMap((element) => {
    const wrong = [];
    if (!allowed.includes(element.localName)) wrong.push(element.outerHTML.slice(0, 200));
    for (const {name, value} of element.attributes)
        if (name.startsWith("on") || name === "srcdoc" || (name === "style" && /url/.test(value))) wrong.push(name);
    const protocols = ["http:", "https:", "mailto:"];
    if (element.localName === "a" && !protocols.includes(element.protocol)) wrong.push(element.href);
    if (element.localName === "img" && !element.src.startsWith("data:image/")) wrong.push(element.src);
    if (element.localName === "script" && !element.src.startsWith(location.origin + "/assets/")) wrong.push("script");
    return wrong;
})"""


async def write_session(home: Path, chat: str, entries: list[AnyEntry]) -> None:
    store = JsonlStore(home / "sessions", clock=SystemClock(), sync=False)
    session = await store.open(chat, profile="assistant")
    for entry in entries:
        await session.append(entry)
    await session.close()


def everywhere(number: int, text: str) -> list[AnyEntry]:
    """The text as a message, a thought, an answer, a tool's name, arguments, result, file name, diff and a question."""
    call = ToolCall(f"c{number}", text[:60] or "x", {text[:40]: text, "command": text})
    diff = f"--- {text}\n+++ {text}\n-{text}\n+{text}!"
    details = {"path": text, "diff": diff, "added": 1, "removed": 1}
    return [
        UserEntry(message=UserMessage([Text(text), Text(f'\n\n<file path="{text}">\nx\n</file>')])),
        AssistantEntry(message=AssistantMessage([Thinking(text), Text(text), call], text)),
        ToolEntry(message=ToolResult(call.id, call.name, [Text(text)], details=details)),
        ParkedEntry(call_id=f"p{number}", question=text, name=text, args={"command": text}),
    ]


async def scan(visiting: Visiting, path: str) -> set[str]:
    """Everything foreign on a view, scrolled from its end to its beginning, with all that folds open."""
    found = set[str]()
    async with visiting(viewport={"width": 1000, "height": 3000}) as seen:
        dialogs: list[str] = []
        requests: list[str] = []
        seen.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        seen.page.on("request", lambda request: requests.append(request.url))
        await seen.go(path)
        scroller = seen.page.locator(".scroller, .view.page").first
        await scroller.wait_for()
        at = -1.0
        while at != (at := await scroller.evaluate("(element) => element.scrollTop")):
            await seen.page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
            await seen.page.evaluate(SETTLE)
            found |= {*await seen.page.evaluate(FIND_FOREIGN, ALLOWED)}
            await scroller.evaluate("(element) => { element.scrollTop -= 2500; }")
            await seen.page.evaluate(SETTLE)
        assert dialogs == []
        assert [url for url in requests if not url.startswith((seen.gateway.url, "data:"))] == []
    return found


async def test_hostile_texts_stay_text_in_chat_and_story(
    home: Path, gateway: GatewayProgram, visiting: Visiting, configure: Callable[..., None]
) -> None:
    assert len(TEXTS) == 200
    await write_session(
        home, "texts", [entry for number, text in enumerate(TEXTS) for entry in everywhere(number, text)]
    )
    for number, text in enumerate(TEXTS[:40]):
        await write_session(home, f"title-{number}", [UserEntry(message=UserMessage([Text(text)]))])
    await gateway.start()
    key = SessionKey.of_chat("texts", "cli")
    for path in (f"/chat/{key}", f"/story/{key}", "/sessions", "/waiting", "/more/status"):
        assert await scan(visiting, path) == set(), path
