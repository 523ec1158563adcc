"""Files that servers return: documents, pictures and texts, in place of a note that there is something."""

import sys
from collections.abc import AsyncIterator, Mapping

import pytest
from msgspec.structs import replace
from tests.documents import LINE, PAPER, written
from tests.tools.mcp.conftest import HOSTILE, Scene

from denizen.config.settings import McpServer
from denizen.messages import Document, Image, Text
from denizen.ports import Tool, Traits
from denizen.text.documents import MOST_SHOWN

FILES = {
    "bridge.pdf": PAPER.data,
    "book.pdf": written(pages=60),
    "locked.pdf": written(password="secret"),
    "cut.pdf": PAPER.data[:400],
    "dot.png": b"\x89PNG\r\n\x1a\n",
    "table.csv": b"a,b\n",
    "program": b"\x7fELF\0\xff",
}


@pytest.fixture
async def tools(scene: Scene) -> AsyncIterator[Mapping[str, Tool]]:
    for name, data in FILES.items():
        (scene.workspace / name).write_bytes(data)
    program = HOSTILE.with_name("documents.py")
    server = McpServer(command=sys.executable, args=[str(program), str(scene.workspace)])
    async with scene.met({"files": server}) as found:
        yield found


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("mcp_files_whole", {"name": "bridge.pdf"}),
        ("mcp_files_link", {"name": "bridge.pdf"}),
        ("mcp_resource", {"server": "files", "uri": "files:///bridge.pdf"}),
    ],
    ids=["embedded", "a link", "a resource"],
)
async def test_a_pdf_document_is_shown(
    scene: Scene, tools: Mapping[str, Tool], tool: str, args: Mapping[str, str]
) -> None:
    result = await scene.call(tools[tool], **args)
    assert result.content == [replace(PAPER, name="bridge.pdf"), Text("")]
    assert Traits.UNTRUSTED in tools[tool].traits


async def test_of_a_long_document_the_first_pages_are_shown(scene: Scene, tools: Mapping[str, Tool]) -> None:
    document, note = (await scene.call(tools["mcp_files_whole"], name="book.pdf")).content
    assert isinstance(document, Document)
    assert (document.pages, LINE in document.text) == (MOST_SHOWN, True)
    assert note == Text(f"[files:///book.pdf: only pages 1 to {MOST_SHOWN} of 60 are shown]")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("dot.png", Image("image/png", FILES["dot.png"])),
        ("table.csv", Text("[files:///table.csv]\na,b\n")),
        ("program", Text("[files:///program: data, which isn't text]")),
        ("locked.pdf", Text("[files:///locked.pdf: locked.pdf is encrypted. A copy without a password can be read.]")),
    ],
)
async def test_other_files_are_shown_as_what_they_are(
    scene: Scene, tools: Mapping[str, Tool], name: str, part: Image | Text
) -> None:
    assert (await scene.call(tools["mcp_files_whole"], name=name)).content[0] == part


async def test_a_damaged_document_or_a_broken_link_is_a_note(scene: Scene, tools: Mapping[str, Tool]) -> None:
    damaged = await scene.call(tools["mcp_files_whole"], name="cut.pdf")
    assert "cut.pdf isn't a PDF document that can be read" in damaged.text
    missing = await scene.call(tools["mcp_files_link"], name="nothing.pdf")
    assert missing.text.startswith("[resource nothing.pdf: files:///nothing.pdf] (the MCP server files says: ")
    assert not missing.is_error
