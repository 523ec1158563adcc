"""A conversation on the whole screen: what was said and done, questions, a prompt, and a line with model and cost."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Protocol

from markdown_it import MarkdownIt
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Collapsible, Markdown, OptionList, Static
from textual.widgets.markdown import MarkdownStream
from textual.widgets.option_list import Option

from denizen.tui.full_screen import FullScreen
from denizen.tui.prompt import PromptInput

MAX_BLOCKS = 400
"""Blocks kept on the screen; the session has all."""


class Person(Protocol):
    """Whoever acts on what the person at the screen does."""

    def enter(self, text: str) -> None:
        """They sent a message or a command."""

    def answer(self, text: str | None) -> None:
        """They answered the question; None: they leave it open."""

    def type(self) -> None:
        """They are typing."""

    def take_back(self) -> str:
        """They want the last message back that waits; empty: there is none."""

    def interrupt(self) -> bool:
        """They want what is going on stopped; False: nothing is."""

    def leave(self) -> None:
        """They want to leave."""

    async def sessions(self) -> Sequence[tuple[str, str]]:
        """The names and titles of what they can go on with."""


class ToolCallBlock(Collapsible):
    """A finished call in one line, which opens to show its output."""

    DEFAULT_CSS = """
    ToolCallBlock { background: $background; border: none; padding: 0; }
    ToolCallBlock CollapsibleTitle { padding: 0 1; color: ansi_bright_green; text-style: none; }
    ToolCallBlock.-failed CollapsibleTitle { color: ansi_bright_red; }
    ToolCallBlock Contents { padding: 0 0 0 5; }
    """

    def __init__(self, title: str, output: Sequence[tuple[str, str]], *, failed: bool, opened: bool) -> None:
        shown = Content.assemble(*((f"{line}\n", f"ansi_{colour}") for line, colour in output)).rstrip()
        label = Content(title)  # as a string, what stands in brackets would be markup
        classes = "-failed" if failed else ""
        super().__init__(Static(shown), title=label, collapsed=not opened, classes=classes)  # pyrefly: ignore[bad-argument-type]


class SessionChoice(ModalScreen[str]):
    """A list of sessions to go on with."""

    DEFAULT_CSS = "SessionChoice { align: center middle; } SessionChoice OptionList { width: 80%; height: 70%; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Back")]

    def __init__(self, sessions: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._sessions = sessions

    def compose(self) -> ComposeResult:
        """The list."""
        yield OptionList(*(Option(Content(f"{name:24} {title}")) for name, title in self._sessions))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go on with that one."""
        self.dismiss(self._sessions[event.option_index][0])


class ChatApp(FullScreen):
    """Shows a conversation, and tells the `person` what is typed and pressed.

    What is to be shown is shown in the order of the calls, soon after each. `parser` reads replies as Markdown, `words`
    are completed by Tab at the beginning of a message, `history` is what ↑ finds.
    """

    CSS = """
    #blocks { padding: 0 1; scrollbar-size-vertical: 1; }
    #blocks .said { margin: 1 0; padding: 0 1; background: $boost; text-style: bold; }
    #blocks .withdrawn { text-style: strike; opacity: 50%; }
    #blocks Markdown { padding: 0 1; background: $background; }
    #activity, #status { height: auto; max-height: 8; padding: 0 1; color: $text-muted; }
    #status { background: $panel; height: 1; }
    #entry { height: auto; padding: 0 1; }
    #sign { width: 2; color: ansi_bright_green; }
    #sign.-asking { color: ansi_bright_yellow; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Stop", priority=True, show=False),
        Binding("ctrl+d", "end_of_input", "Leave", priority=True, show=False),
        Binding("ctrl+q", "leave", "Leave", priority=True, show=False),
        Binding("ctrl+o", "choose_session", "Sessions", priority=True, show=False),
        Binding("escape", "toggle_scrolling", "Scroll", show=False),
        Binding("pageup", "scroll_page_up", "Page up", priority=True, show=False),
    ]

    def __init__(self, person: Person, parser: MarkdownIt, *, words: Sequence[str], history: Sequence[str]) -> None:
        super().__init__()
        self.prompt = PromptInput(words, person.take_back)
        for text in history:
            self.prompt.remember(text)
        self._person = person
        self._parser = parser
        self._blocks = VerticalScroll(id="blocks")
        self._activity = Static(id="activity", markup=False)
        self._sign = Static("> ", id="sign", markup=False)
        self._status = Static(id="status", markup=False)
        self._reply: Markdown | None = None
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        """What was said above, the prompt below."""
        yield self._blocks
        yield self._activity
        with Horizontal(id="entry"):
            yield self._sign
            yield self.prompt
        yield self._status

    def on_mount(self) -> None:
        """Begin."""
        super().on_mount()
        self._blocks.anchor()
        self.prompt.focus()

    def print(self, text: str) -> None:
        """Show lines, in the colours that their escape sequences say."""
        self._put(Static(Text.from_ansi(text)))

    def say(self, text: str) -> None:
        """Show what the person said."""
        self._put(Static(text, classes="said", markup=False))

    def stream(self, delta: str) -> None:
        """Show some more of a reply, which is Markdown."""
        self.call_later(self._write, delta)

    def end_reply(self) -> None:
        """What streams next is another reply."""
        self.call_later(self._end_reply)

    def withdraw_reply(self) -> None:
        """Show that what was streamed last doesn't count."""
        self.call_later(self._withdraw)

    def add_tool(self, title: str, output: Sequence[tuple[str, str]], *, failed: bool, opened: bool) -> None:
        """Show a finished call, and in it the lines of its output, each with its colour."""
        self._put(ToolCallBlock(title, output, failed=failed, opened=opened))

    def show_activity(self, text: str) -> None:
        """Show what is going on, in place of what did."""
        self._activity.update(text)
        self._activity.display = bool(text)

    def show_status(self, text: str) -> None:
        """Show the bottom line."""
        self._status.update(text)

    async def begin_question(self) -> None:
        """Take answers, once everything is on the screen: no key pressed before is an answer."""
        drawn = asyncio.Event()
        self.call_later(self.call_after_refresh, drawn.set)
        await drawn.wait()
        self.prompt.begin_answer()
        self._show_sign()

    def end_question(self) -> None:
        """Take messages again; what was typed before comes back."""
        self.prompt.end_answer()
        self._show_sign()

    def on_prompt_input_entered(self, event: PromptInput.Entered) -> None:
        """Tell the person's side."""
        if event.is_answer:
            self._person.answer(event.text)
        elif event.text.strip():
            self.prompt.remember(event.text)
            self._person.enter(event.text)

    def on_text_area_changed(self) -> None:
        """Tell the person's side that something is typed."""
        self._person.type()

    def action_interrupt(self) -> None:
        """Copy what is selected; else stop what is going on; else clear the prompt."""
        if self.copy_selected() or self._person.interrupt():
            return
        if self.prompt.text:
            self.prompt.remember(self.prompt.text)
            self.prompt.put("")
        else:
            self.show_activity("Ctrl-D leaves.")

    def action_end_of_input(self) -> None:
        """Leave a question open; else leave, where nothing is typed."""
        if self.prompt.is_answering:
            self._person.answer(None)
        elif not self.prompt.text:
            self._person.leave()

    def action_leave(self) -> None:
        self._person.leave()

    async def action_choose_session(self) -> None:
        """Let the person go on with another session."""
        if not self.prompt.is_answering and not isinstance(self.screen, ModalScreen):
            self.push_screen(SessionChoice(await self._person.sessions()), self._choose)

    def action_toggle_scrolling(self) -> None:
        """Scroll, and open calls (Tab, Enter); or go back to the end and the prompt."""
        if self.prompt.has_focus:
            self._blocks.focus()
        else:
            self._blocks.anchor()
            self.prompt.focus()

    def action_scroll_page_up(self) -> None:
        self._blocks.focus()
        self._blocks.scroll_page_up(animate=False)

    def _choose(self, name: str | None) -> None:
        if name:
            self._person.enter(f"/sessions {name}")

    def _show_sign(self) -> None:
        self._sign.update("? " if self.prompt.is_answering else "> ")
        self._sign.set_class(self.prompt.is_answering, "-asking")

    def _put(self, widget: Widget) -> None:
        self.call_later(self._mount, widget)

    async def _mount(self, widget: Widget) -> None:
        await self._end_reply()
        await self._blocks.mount(widget)
        if len(self._blocks.children) > MAX_BLOCKS:
            await self._blocks.remove_children(self._blocks.children[: MAX_BLOCKS // 4])

    async def _write(self, delta: str) -> None:
        if not delta.strip() and self._stream is None:
            return
        if self._stream is None:
            self._reply = Markdown(parser_factory=lambda: self._parser, open_links=False)
            await self._mount(self._reply)
            self._stream = Markdown.get_stream(self._reply)
        if delta:  # a stream that was given nothing can't be ended
            await self._stream.write(delta)

    async def _end_reply(self) -> None:
        if self._stream:
            await self._stream.stop()
            self._stream = None

    async def _withdraw(self) -> None:
        await self._end_reply()
        if self._reply:
            self._reply.add_class("withdrawn")
            self._reply = None
