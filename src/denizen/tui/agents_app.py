"""The program on the screen for agents of a text world: one, or several to switch between."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from denizen.tui.agent_view import AgentView
from denizen.tui.prompt import STATUSES


class AgentsApp(App[None]):
    """Shows one agent at a time; with several, a line above names them and Ctrl-N and Ctrl-P go through them.

    The line marks who holds the token with ●, and ends with what all have cost.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = "#agents { height: 1; background: $panel; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "copy_or_quit", "Quit", priority=True, show=False),
        Binding("ctrl+d,ctrl+q", "quit", "Quit", priority=True, show=False),
        Binding("ctrl+n", "switch(1)", "Next", priority=True, show=False),
        Binding("ctrl+p", "switch(-1)", "Previous", priority=True, show=False),
    ]

    def __init__(self, agents: Sequence[AgentView]) -> None:
        super().__init__()
        self._begun = asyncio.Event()
        self._agents = agents
        self._names = Static(id="agents")
        self._shown = 0

    @asynccontextmanager
    async def shown(self, ended: Callable[[], None]) -> AsyncGenerator[None]:
        """Stay on the screen until the context ends; `ended` is called if the program ends before that."""
        running = asyncio.create_task(self.run_async())
        ready = asyncio.create_task(self._begun.wait())
        try:
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
            running.add_done_callback(lambda _: ended())
            yield
        finally:
            ready.cancel()
            self.exit()
            await asyncio.wait([running])
        running.result()

    def compose(self) -> ComposeResult:
        """The line of names, and the agent in sight."""
        self._names.display = len(self._agents) > 1
        yield self._names
        yield from self._agents

    def on_mount(self) -> None:
        """Begin with the first."""
        self._begun.set()
        self.animation_level = "none"
        asyncio.get_running_loop().set_task_factory(None)  # textual's begin tasks at once; the engine knows asyncio's
        self.action_switch(0)
        if len(self._agents) > 1:
            self.set_interval(1, self._name_agents)

    def action_switch(self, by: int) -> None:
        """Show the agent that many places on."""
        self._shown = (self._shown + by) % len(self._agents)
        for number, agent in enumerate(self._agents):
            agent.display = number == self._shown
        self._agents[self._shown].focus_input()
        self._name_agents()

    def action_copy_or_quit(self) -> None:
        """Copy the text that the mouse has selected; without a selection, end."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        else:
            self.exit()

    def _name_agents(self) -> None:
        parts: list[tuple[str, str]] = []
        holder = next((agent.known.token for agent in self._agents if agent.known.token), "")
        for number, agent in enumerate(self._agents):
            style = f"ansi_bright_{STATUSES.get(agent.doing, 'white')}"
            mark = "●" if agent.player == holder else ""
            parts.append((f" {mark}{agent.agent_name} ", f"{style} reverse" if number == self._shown else style))
        cost = sum(agent.known.tally.cost_usd for agent in self._agents)
        parts.append((f"  ${cost:.4f}" if cost else "", "dim"))
        self._names.update(Content.assemble(*parts))
