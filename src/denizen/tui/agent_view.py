"""One agent of a text world on the screen: its scrollback, what it knows, and its prompt."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from denizen.runtime.clock import Clock
from denizen.text.printable import printable
from denizen.tui.prompt import PromptInput, StatusPrompt
from denizen.tui.scrollback import Line, Scrollback
from denizen.worlds.moo.listener import Facts, Kind, Status

MIN_PANEL_COLUMNS = 90
"""Columns below which there is no side panel."""

SCROLL_HINT = "scroll mode: ↑ ↓ PgUp PgDn Home End, Esc goes back"


class SidePanel(Static):
    """Room, exits, goal, plan, token holder and cost."""

    DEFAULT_CSS = "SidePanel { dock: right; width: 30; height: 100%; padding: 0 1; background: $panel; }"

    def show(self, facts: Facts) -> None:
        """Show them in place of those before; what is empty is left out."""
        rows = {
            "Room": [facts.room],
            "Exits": [", ".join(facts.exits)],
            "Goal": [facts.goal],
            "Plan": [f"{number}. {step}" for number, step in enumerate(facts.plan, 1)],
            "Token": [facts.token],
            "Cost": [f"${cost:.4f}" if (cost := facts.tally.cost_usd) else ""],
        }
        parts: list[str | tuple[str, str]] = []
        for title, lines in rows.items():
            if any(lines):
                parts += [(f"{title}\n", "bold $text-accent"), *(f"{printable(line)}\n" for line in lines), "\n"]
        self.update(Content.assemble(*parts))


class AgentView(Vertical):
    """One agent: what it sees and does above, the operator's input below, what it knows at the side.

    It is the listener of an agent's brain, in the event loop of the program; `instruct` takes what the operator enters,
    and `player` is its name in the world.
    """

    DEFAULT_CSS = """
    AgentView { height: 1fr; }
    AgentView .entry { height: auto; }
    AgentView .hint { display: none; color: $text-muted; }
    AgentView.-holding .hint { display: block; }
    AgentView.-holding PromptInput { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "toggle_scrolling", "Scroll", priority=True, show=False),
        Binding("pageup", "scroll_page_up", "Page up", priority=True, show=False),
    ]

    def __init__(self, name: str, instruct: Callable[[str], None], clock: Clock, *, player: str = "") -> None:
        super().__init__(id=f"agent-{name.encode().hex()}")
        self.agent_name = name
        self.player = player or name
        self.doing: Status = "ready"
        self.known = Facts()
        self._instruct = instruct
        self._clock = clock
        self._lines = Scrollback()
        self._panel = SidePanel()
        self._status = StatusPrompt(name)
        self._prompt = PromptInput()

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield self._panel
        yield self._lines
        with Horizontal(classes="entry"):
            yield self._status
            yield self._prompt
            yield Static(SCROLL_HINT, classes="hint", markup=False)

    def line(self, kind: Kind, text: str) -> None:
        """Show a line."""
        self._lines.add(Line(kind, text, f"{self._clock.now().astimezone():%H:%M}"))

    def status(self, status: Status) -> None:
        """Show what the agent is doing."""
        self.doing = status
        self._status.show(status)

    def facts(self, facts: Facts) -> None:
        """Show what the agent knows."""
        self.known = facts
        self._panel.show(facts)

    def focus_input(self) -> None:
        """Let the operator type, or scroll where they did before."""
        (self._lines if self._lines.held else self._prompt).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Leave the panel out where it would take too much."""
        self._panel.display = event.size.width >= MIN_PANEL_COLUMNS

    def on_prompt_input_entered(self, event: PromptInput.Entered) -> None:
        """Hand an instruction over."""
        event.stop()
        if text := " ".join(event.text.split()):
            self._prompt.remember(text)
            self._instruct(text)

    def action_toggle_scrolling(self) -> None:
        """Begin to scroll, or go back to the end and the input."""
        self._lines.held = not self._lines.held
        self.set_class(self._lines.held, "-holding")
        if not self._lines.held:
            self._lines.release()
        self.focus_input()

    def action_scroll_page_up(self) -> None:
        """A page up, in scroll mode."""
        if not self._lines.held:
            self.action_toggle_scrolling()
        self._lines.action_page_up()
