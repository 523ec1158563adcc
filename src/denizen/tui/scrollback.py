"""The lines above the prompt: a long scrollback that stays quick."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from denizen.text.printable import printable
from denizen.text.wrapping import wrap_line
from denizen.worlds.moo.listener import Kind

KINDS: Sequence[str] = get_args(Kind)
"""What a line can be; any other is shown like `server`."""

MAX_LINE_CHARS = 10_000
"""Characters shown of one line."""

_GUTTER = 6  # cells left of a row, for its time


class Line(NamedTuple):
    """A line as it came; `at` is its time, shown left of it where the line above has another."""

    kind: str
    text: str
    at: str = ""


class _Row(NamedTuple):
    """A row of the screen: `begins` where it is the first of its line."""

    kind: str
    text: str
    at: str
    begins: bool


class Scrollback(ScrollView, can_focus=True):
    """The last `most` lines, broken between words, each in the colour of its kind.

    It follows its end while that is in sight, unless `held`. Text is shown without control characters. Only the rows in
    sight are drawn, so that the number of lines costs nothing but memory.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"scrollback--at", *(f"scrollback--{kind}" for kind in KINDS)}
    DEFAULT_CSS = """
    Scrollback { background: $background; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    Scrollback > .scrollback--at { color: $text-disabled; }
    Scrollback > .scrollback--server { color: $foreground; }
    Scrollback > .scrollback--server_error { color: ansi_bright_red; }
    Scrollback > .scrollback--thought { color: $foreground 55%; text-style: italic; }
    Scrollback > .scrollback--goal { color: ansi_bright_yellow; text-style: bold; }
    Scrollback > .scrollback--action { color: ansi_bright_green; }
    Scrollback > .scrollback--system { color: ansi_bright_cyan; }
    Scrollback > .scrollback--operator { color: ansi_bright_magenta; text-style: bold; }
    Scrollback > .scrollback--patch { color: ansi_bright_blue; }
    """

    def __init__(self, most: int = 100_000) -> None:
        super().__init__()
        self.held = False
        self._most = most
        self._lines: deque[tuple[Line, int]] = deque()  # with the number of its rows
        self._rows: list[_Row] = []
        self._width = 0  # cells that the rows were broken at; 0: not on a screen yet
        self._at_end = True
        self._strips: LRUCache[tuple[_Row, str], Strip] = LRUCache(1000)

    @property
    def lines(self) -> Sequence[Line]:
        """What is kept, the oldest first."""
        return [line for line, _ in self._lines]

    def add(self, *lines: Line) -> None:
        """Put lines below the last one."""
        gone = 0
        for line in lines:
            self._append(line._replace(text=printable(line.text[:MAX_LINE_CHARS]).expandtabs(8)))
            if len(self._lines) > self._most:
                gone += self._lines.popleft()[1]
        if gone:
            del self._rows[:gone]
        if self._width:
            self._show(self.scroll_offset.y - gone)

    def release(self) -> None:
        """Show the end, and follow it."""
        self.held = False
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def on_resize(self, _: events.Resize) -> None:
        """Break the lines anew where the width changed; the line at the top stays there."""
        width, top = self.scrollable_content_region.width, self.scroll_offset.y
        if not width:
            return
        if width != self._width:
            line = sum(row.begins for row in self._rows[: top + 1]) - 1
            self._width = width
            kept = self.lines
            for old in (self._lines, self._rows, self._strips):
                old.clear()
            for number, each in enumerate(kept):
                top = len(self._rows) if number == line else top
                self._append(each)
        self._show(top)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end again once it is in sight."""
        super().watch_scroll_y(old_value, new_value)
        self._at_end = round(new_value) >= self.max_scroll_y

    def render_line(self, y: int) -> Strip:
        """The row at that place of the widget."""
        number = self.scroll_offset.y + y
        base = self.get_component_rich_style("scrollback--server")
        if number >= len(self._rows):
            return Strip.blank(self._width, base)
        row = self._rows[number]
        at = row.at if y == 0 else self._time(number)
        selection = self.text_selection
        strip = None if selection else self._strips.get((row, at))
        if strip is None:
            style = self.get_component_rich_style(f"scrollback--{row.kind if row.kind in KINDS else 'server'}")
            gutter = Segment(f"{at:{_GUTTER}}", self.get_component_rich_style("scrollback--at"))
            span = selection.get_span(number) if selection else None
            strip = Strip([gutter, *self._marked(row.text, style, span)]).crop_extend(0, self._width, base)
            if not selection:
                self._strips[row, at] = strip
        return strip.apply_offsets(0, number)

    def notify_style_update(self) -> None:
        """Draw in other colours."""
        super().notify_style_update()
        self._strips.clear()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that the mouse has selected."""
        return selection.extract(
            "\n".join(f"{self._time(y):{_GUTTER}}{row.text}" for y, row in enumerate(self._rows))
        ), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def _marked(self, text: str, style: Style, span: tuple[int, int] | None) -> Iterable[Segment]:
        """The row's text, with the columns of the span marked as selected."""
        if span is None:
            return [Segment(text, style)]
        start, end = max(span[0] - _GUTTER, 0), len(text) if span[1] == -1 else max(span[1] - _GUTTER, 0)
        marked = style + self.screen.get_component_rich_style("screen--selection")
        return [Segment(text[:start], style), Segment(text[start:end], marked), Segment(text[end:], style)]

    def _time(self, number: int) -> str:
        """The time of a row; empty if the row above is of the same minute."""
        row = self._rows[number]
        same = number > 0 and self._rows[number - 1].at == row.at
        return "" if same or not row.begins else row.at

    def _append(self, line: Line) -> None:
        before = len(self._rows)
        if self._width:
            rows = (row for part in line.text.split("\n") for row in wrap_line(part, max(self._width - _GUTTER, 10)))
            self._rows += [_Row(line.kind, row, line.at, begins=not number) for number, row in enumerate(rows)]
        self._lines.append((line, len(self._rows) - before))

    def _show(self, top: int) -> None:
        """Show the rows from that one on, or the last ones."""
        follows = self._at_end and not self.held
        self.virtual_size = Size(self._width, len(self._rows))
        self.scroll_to(y=self.max_scroll_y if follows else max(top, 0), animate=False)
        self.refresh()
