"""`$(help)`."""

from pathlib import Path

import pytest
from tests.actions.shell.offer import TOOLS

from denizen.actions.shell.commands import Help
from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext
from denizen.runtime.clock import SystemClock
from denizen.testing import ToolConformance


class TestConformance(ToolConformance):
    @pytest.fixture
    def tool(self) -> Help:
        return Help(TOOLS)

    @pytest.fixture
    def args(self) -> dict[str, object]:
        return {"command": "view"}


async def about(command: str = "") -> str:
    async def ask(question: str) -> Answer:
        return Answer("1", allow=True)

    turn = ToolContext("s", "1", Path(), SystemClock(), lambda line: None, ask)
    return (await Help(TOOLS).run({"command": command} if command else {}, turn)).text


async def test_a_command_is_shown_with_all_that_it_takes() -> None:
    assert (await about("view")).splitlines() == [
        "usage: $(view PATH [--types-only] [--depth N] [--lines TEXT])",
        "Show a file. Or a folder.",
        "  PATH  A file, or FILE/Symbol",
        "  --depth  default: 1",
        "  --lines  As 3-7",
    ]


async def test_other_names_of_it_are_said() -> None:
    assert (await about("store")).splitlines()[-1] == "Also: $(memorize), $(remember)"
    assert "usage: $(web-fetch URL" in await about("web_fetch")


async def test_done_is_explained_too() -> None:
    assert "$(done ANSWER)" in await about("done")


async def test_without_a_name_all_are_listed() -> None:
    names = [line.split()[0] for line in (await about()).splitlines()]
    assert names[:4] == ["done", "help", "view", "text-search"]


async def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(ToolRefused, match=r"unknown command 'veiw'; did you mean \$\(view\)\?"):
        await about("veiw")
