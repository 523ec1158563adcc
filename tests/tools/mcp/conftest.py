"""Servers of other people, and one that does harm; a turn that calls their tools."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from denizen.config.settings import McpServer
from denizen.messages import ToolResult
from denizen.ports import Answer, Tool, ToolContext
from denizen.testing.fake_clock import FakeClock
from denizen.tools.mcp import McpServers
from denizen.trusted.session_files import SessionFiles

HOSTILE = Path(__file__).parents[2] / "data" / "mcp" / "hostile.py"
BIN = Path(sys.executable).parent


def hostile(harm: str = "", **settings: object) -> McpServer:
    """The server that does harm, with the time-outs of a test that waits for them."""
    return McpServer(command=sys.executable, args=[str(HOSTILE), harm], **settings)  # pyrefly: ignore[bad-argument-type]


@dataclass
class Scene:
    """Servers in a home and a workspace, and what a turn shows and asks."""

    home: Path
    workspace: Path
    clock: FakeClock = field(default_factory=FakeClock)
    shown: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    session_files: SessionFiles | None = None

    @asynccontextmanager
    async def servers(
        self, servers: Mapping[str, McpServer], *, most: int = 40, environ: Mapping[str, str] | None = None
    ) -> AsyncGenerator[McpServers]:
        made = McpServers(
            servers,
            self.session_files or SessionFiles(self.home),
            workspace=self.workspace,
            environ={} if environ is None else environ,
            clock=self.clock,
            most_tools=most,
        )
        try:
            yield made
        finally:
            await made.close()

    @asynccontextmanager
    async def met(self, servers: Mapping[str, McpServer], *, most: int = 40) -> AsyncGenerator[dict[str, Tool]]:
        """Their tools by name."""
        async with self.servers(servers, most=most) as made:
            assert await made.meet() == []
            yield {tool.name: tool for tool in made.tools()}

    def turn(self, session: str = "session") -> ToolContext:
        async def ask(question: str) -> Answer:
            self.asked.append(question)
            text = self.answers.pop(0) if self.answers else ""
            return Answer("call-1", allow=bool(text), text=text)

        return ToolContext(session, "call-1", self.workspace, self.clock, self.shown.append, ask)

    async def call(self, tool: Tool, **args: object) -> ToolResult:
        return await tool.run(args, self.turn())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    return Scene(tmp_path / "home", tmp_path / "work")
