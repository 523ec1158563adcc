"""The screen of agents of a text world, driven by keys."""

import sys
from collections.abc import AsyncIterator
from typing import get_args

import pytest
from tests.tui.picture import matches, picture
from textual.pilot import Pilot

from denizen.errors import DenizenError
from denizen.testing import FakeClock
from denizen.tui import require_textual
from denizen.tui.agent_view import AgentView
from denizen.tui.agents_app import AgentsApp
from denizen.worlds.moo.listener import Facts, Kind, Status, Tally


class Screen:
    """Two agents, Mason in sight, and what their operator told them."""

    def __init__(self, pilot: Pilot[None], mason: AgentView, tinker: AgentView, told: list[str]) -> None:
        self.pilot, self.mason, self.tinker, self.told = pilot, mason, tinker, told

    async def rows(self) -> list[str]:
        await self.pilot.pause()
        return picture(self.pilot.app).splitlines()


@pytest.fixture
async def screen() -> AsyncIterator[Screen]:
    told: list[str] = []
    mason = AgentView("Mason", lambda text: told.append(f"Mason: {text}"), FakeClock())
    tinker = AgentView("shop", lambda text: told.append(f"Tinker: {text}"), FakeClock(), player="Tinker")
    async with AgentsApp([mason, tinker]).run_test(size=(100, 20)) as pilot:
        yield Screen(pilot, mason, tinker, told)


async def test_one_agent_shows_its_lines_what_it_knows_and_its_prompt() -> None:
    clock = FakeClock()
    view = AgentView("Mason", print, clock)
    for kind in get_args(Kind):
        view.line(kind, f"A line of the kind {kind}.")
        await clock.sleep(25)
    plan = ["dig north to the library", "describe it"]
    values = Facts(
        room="The Agency (#12)", exits=["north", "up"], goal="Ten rooms", plan=plan, tally=Tally(cost_usd=0.0123)
    )
    view.facts(values)
    async with AgentsApp([view]).run_test(size=(100, 20)) as pilot:
        await pilot.press(*"say hi")
        matches(pilot.app, "agent")


async def test_a_narrow_terminal_has_no_side_panel(screen: Screen) -> None:
    screen.mason.facts(Facts(room="The Agency (#12)"))
    assert any("The Agency" in row for row in await screen.rows())
    await screen.pilot.resize_terminal(70, 20)
    assert not any("The Agency" in row for row in await screen.rows())


@pytest.mark.parametrize("status", get_args(Status))
async def test_the_prompt_says_what_the_agent_does(screen: Screen, status: Status) -> None:
    screen.mason.status(status)
    assert (await screen.rows())[-1] == f"(Mason) {status}>"


async def test_an_instruction_goes_to_the_agent_in_sight_as_one_line(screen: Screen) -> None:
    await screen.pilot.press(*"dig", "alt+enter", *"north", "enter")
    await screen.pilot.press("ctrl+n", *"rest", "enter", "ctrl+p", "enter", *"look", "enter")
    assert screen.told == ["Mason: dig north", "Tinker: rest", "Mason: look"]


async def test_the_arrows_bring_instructions_back(screen: Screen) -> None:
    await screen.pilot.press(*"one", "enter", *"two", "enter", *"dra", "up", "up", "down", "down", *"ft", "enter")
    await screen.pilot.press("up", "up", "enter")
    assert [told.removeprefix("Mason: ") for told in screen.told] == ["one", "two", "draft", "two"]


async def test_escape_scrolls_and_escape_again_goes_back_to_the_end(screen: Screen) -> None:
    for number in range(100):
        screen.mason.line("server", f"line {number}")
    await screen.pilot.press(*"half a ", "escape", "up", "pageup")
    screen.mason.line("server", "line 100")
    held = await screen.rows()
    assert "line 63" in held[1]
    assert held[-1].startswith("(Mason) ready> scroll mode")
    await screen.pilot.press("escape", *"word")
    back = await screen.rows()
    assert "line 100" in back[-2]
    assert back[-1] == "(Mason) ready> half a word"


async def test_page_up_begins_to_scroll(screen: Screen) -> None:
    for number in range(100):
        screen.mason.line("server", f"line {number}")
    await screen.pilot.press("pageup", "down")
    assert "line 65" in (await screen.rows())[1]


async def test_lines_of_an_agent_out_of_sight_are_there_when_it_is_shown(screen: Screen) -> None:
    screen.tinker.line("server", "You see a lamp.")
    assert not any("lamp" in row for row in await screen.rows())
    await screen.pilot.press("ctrl+n")
    assert any("lamp" in row for row in await screen.rows())


async def test_the_line_above_names_the_agents_marks_the_one_with_the_token_and_has_the_cost(screen: Screen) -> None:
    screen.mason.facts(Facts(token="Tinker", tally=Tally(cost_usd=0.25)))
    screen.tinker.facts(Facts(token="Tinker", tally=Tally(cost_usd=0.5)))
    await screen.pilot.press("ctrl+n")
    assert (await screen.rows())[0] == " Mason  ●shop   $0.7500"


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+d", "ctrl+q"])
async def test_these_keys_end_it_in_scroll_mode_too(key: str) -> None:
    for before in ([], ["escape"]):
        app = AgentsApp([AgentView("Mason", print, FakeClock())])
        async with app.run_test() as pilot:
            await pilot.press(*before, key)
            assert not app.is_running


def test_without_textual_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(DenizenError, match="pip install 'textual"):
        require_textual()
