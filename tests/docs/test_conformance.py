"""What `extending.md` shows passes the suites that we ship."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from docs.examples.action_format import Fenced
from docs.examples.channel import KIND, FilesSettings
from docs.examples.driver import Careful
from docs.examples.tool import order, stock

from denizen.messages import AssistantMessage, Text
from denizen.ports import ActionFormat, Channel, Driver, Tool
from denizen.ports.channel import ChannelHome
from denizen.testing import (
    ActionFormatConformance,
    ChannelConformance,
    DriverConformance,
    FakeClock,
    FarEnd,
    ToolConformance,
)


class TestStock(ToolConformance):
    @pytest.fixture
    def tool(self) -> Tool:
        return stock

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"article": "lamp"}


class TestOrder(TestStock):
    @pytest.fixture
    def tool(self) -> Tool:
        return order


class TestCareful(DriverConformance):
    @pytest.fixture
    def new_driver(self) -> Callable[[], Driver]:
        return Careful


class TestFenced(ActionFormatConformance):
    @pytest.fixture
    def actions(self) -> ActionFormat:
        return Fenced()

    @pytest.fixture
    def acting(self) -> AssistantMessage:
        calls = [f'~~~call stock\n{{"article": "{article}"}}\n~~~' for article in ("lamp", "sofa")]
        return AssistantMessage([Text("\n".join(["I look.", *calls]))])


class Folder(FarEnd):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    async def write(self, content: str, *, chat: str = "home") -> None:
        self._count += 1
        (self._path / "in" / f"{chat}.{self._count}").write_text(content)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        files = sorted((self._path / "out").glob(f"{chat}.*"), key=lambda file: file.stat().st_mtime_ns)
        return [file.read_text() for file in files]


class TestFilesChannel(ChannelConformance):
    @pytest.fixture
    def channel(self, tmp_path: Path) -> Channel:
        return KIND.connect(FilesSettings(folder=str(tmp_path)), ChannelHome("files", tmp_path, FakeClock()))

    @pytest.fixture
    def far_end(self, tmp_path: Path) -> FarEnd:
        for name in ("in", "out"):
            (tmp_path / name).mkdir()
        return Folder(tmp_path)
