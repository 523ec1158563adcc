"""The scrollback: long, exact, and safe to look at."""

from collections.abc import AsyncIterator

import pytest
from tests.tui.picture import picture
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from denizen.tui.scrollback import Line, Scrollback


class Shown(App[None]):
    """A scrollback of 30 cells and 4 rows, of which it keeps 1,000."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Scrollback(1000)

    def on_mount(self) -> None:
        self.animation_level = "none"  # as on the screen of text worlds

    def compose(self) -> ComposeResult:
        yield self.lines


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[None]]:
    app = Shown()
    async with app.run_test(size=(30, 4)) as pilot:
        yield pilot


def lines(pilot: Pilot[None]) -> Scrollback:
    return pilot.app.query_one(Scrollback)


async def shown(pilot: Pilot[None]) -> list[str]:
    """The rows in sight, without their times and the scrollbar."""
    await pilot.pause()
    return [row[6:].rstrip("▁▂▃▄▅▆▇█ ") for row in picture(pilot.app).splitlines()]


def numbered(*numbers: int) -> list[Line]:
    return [Line("server", f"line {number}") for number in numbers]


async def test_the_end_is_shown_and_followed(pilot: Pilot[None]) -> None:
    lines(pilot).add(*numbered(*range(10)))
    assert await shown(pilot) == ["line 6", "line 7", "line 8", "line 9"]
    lines(pilot).add(*numbered(10))
    assert await shown(pilot) == ["line 7", "line 8", "line 9", "line 10"]


async def test_lines_that_came_before_there_was_a_screen_are_shown() -> None:
    app = Shown()
    app.lines.add(*numbered(*range(10)))
    async with app.run_test(size=(30, 4)) as pilot:
        assert await shown(pilot) == ["line 6", "line 7", "line 8", "line 9"]


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        (["up"], 95),
        (["up", "up", "down"], 95),
        (["pageup"], 92),
        (["pageup", "pageup", "pagedown", "up"], 91),
        (["home"], 0),
        (["home", "up"], 0),
        (["home", "end", "down"], 96),
    ],
)
async def test_keys_move_by_exact_rows_and_pages(pilot: Pilot[None], keys: list[str], first: int) -> None:
    lines(pilot).add(*numbered(*range(100)))
    lines(pilot).focus()
    await pilot.press(*keys)
    assert (await shown(pilot))[0] == f"line {first}"


async def test_what_is_in_sight_stays_while_lines_come_and_the_oldest_go(pilot: Pilot[None]) -> None:
    lines(pilot).add(*numbered(*range(1000)))
    lines(pilot).focus()
    await pilot.press("pageup")
    before = await shown(pilot)
    lines(pilot).add(*numbered(*range(1000, 1500)))
    assert await shown(pilot) == before
    lines(pilot).action_scroll_home()
    assert (await shown(pilot))[0] == "line 500"


async def test_a_held_scrollback_stays_at_the_end_it_had(pilot: Pilot[None]) -> None:
    lines(pilot).add(*numbered(*range(10)))
    lines(pilot).held = True
    lines(pilot).add(*numbered(10))
    assert (await shown(pilot))[0] == "line 6"
    lines(pilot).release()
    assert (await shown(pilot))[0] == "line 7"


async def test_another_width_breaks_lines_anew_and_keeps_the_top(pilot: Pilot[None]) -> None:
    lines(pilot).add(*(Line("server", f"{number} is a number of many words") for number in range(50)))
    lines(pilot).focus()
    await pilot.press("home", "down", "down", "down", "down")
    assert (await shown(pilot))[:2] == ["2 is a number of many", "words"]
    await pilot.resize_terminal(60, 4)
    assert (await shown(pilot))[0] == "2 is a number of many words"
    await pilot.resize_terminal(60, 8)
    await pilot.press("end")
    await pilot.resize_terminal(60, 4)
    assert (await shown(pilot))[-1] == "49 is a number of many words"


async def test_markup_control_characters_and_wide_letters_harm_nothing(pilot: Pilot[None]) -> None:
    lines(pilot).add(Line("server", "[red]\x1b[31mA\x1b]0;title\x07\tB\x00[/]"), Line("odd", "漢字" * 8))
    assert await shown(pilot) == ["[red]A  B[/]", "漢字漢字漢字漢字漢字漢", "字漢字漢字"]


async def test_times_are_shown_where_they_change_and_at_the_top(pilot: Pilot[None]) -> None:
    lines(pilot).add(Line("server", "a", "10:00"), Line("server", "b", "10:00"), Line("server", "c", "10:01"))
    await pilot.pause()
    assert picture(pilot.app).splitlines()[:3] == ["10:00 a", "      b", "10:01 c"]
