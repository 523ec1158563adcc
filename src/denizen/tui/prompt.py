"""The input at the bottom of the screen."""

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

STATUSES = {"ready": "green", "waiting": "cyan", "sleeping": "red", "thinking": "yellow", "away": "white"}
"""What an agent may be doing, each with the colour of its prompt."""

_ACTIONS = {
    key: binding.action
    for binding in TextArea.BINDINGS
    if isinstance(binding, Binding)
    for key in binding.key.split(",")
}


class PromptInput(TextArea):
    """Where a person types: Enter sends, Alt-Enter and Ctrl-J begin another line, ↑ and ↓ go through what was sent."""

    DEFAULT_CSS = """
    PromptInput { height: auto; max-height: 8; padding: 0; background: $background; scrollbar-size-vertical: 1; }
    PromptInput > .text-area--cursor-line { background: $background; }
    """

    class Entered(Message):
        """Something was sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(compact=True, highlight_cursor_line=False)
        self.cursor_blink = False
        self._sent: list[str] = []
        self._place = 0  # in what was sent
        self._draft = ""

    def put(self, text: str) -> None:
        """Replace what is typed."""
        self.text = text
        self.move_cursor(self.document.end)

    def remember(self, text: str) -> None:
        """Let ↑ bring that back."""
        if text.strip() and self._sent[-1:] != [text]:
            self._sent.append(text)
        self._place = len(self._sent)

    async def on_key(self, event: events.Key) -> None:
        """What these keys mean here."""
        match event.key:
            case "enter" if self.text.endswith("\\"):
                self.put(self.text[:-1] + "\n")
            case "enter":
                self.post_message(self.Entered(self.text))
                self.put("")
            case "alt+enter" | "ctrl+j" | "shift+enter":
                self.insert("\n")
            case "up" if self.cursor_at_first_line and self._place > 0:
                self._go(self._place - 1)
            case "down" if self.cursor_at_last_line and self._place < len(self._sent):
                self._go(self._place + 1)
            case key if key in _ACTIONS:  # at once: textual's way round lets letters overtake what edits them
                await self.run_action(_ACTIONS[key])
            case _:
                return
        event.stop()
        event.prevent_default()

    def _go(self, place: int) -> None:
        if self._place == len(self._sent):
            self._draft = self.text
        self._place = place
        self.put([*self._sent, self._draft][place])


class StatusPrompt(Static):
    """The words left of the input: who it is and what they are doing, `(Mason) thinking> `."""

    DEFAULT_CSS = "StatusPrompt { width: auto; }"

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.show("ready")

    def show(self, status: str) -> None:
        """Show what the agent is doing: one of STATUSES."""
        colour = STATUSES.get(status, "white")
        self.update(Content.styled(f"({self._name}) {status}> ", f"ansi_bright_{colour}"))
