"""What our full-screen programs have in common."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from textual.app import App


class FullScreen(App[None]):
    """A program without animations and palette, that leaves the engine's tasks as they are."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        self.ready = asyncio.Event()

    @asynccontextmanager
    async def shown(self, ended: Callable[[], None]) -> AsyncGenerator[None]:
        """It is on the screen meanwhile; `ended` is called when it ends before."""
        running = asyncio.create_task(self.run_async())
        ready = asyncio.create_task(self.ready.wait())
        try:
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
            running.add_done_callback(lambda _: ended())
            yield
        finally:
            ready.cancel()
            self.exit()
            await asyncio.wait([running])
        running.result()

    def on_mount(self) -> None:
        """Begin."""
        self.ready.set()
        self.animation_level = "none"
        asyncio.get_running_loop().set_task_factory(None)  # textual's begin tasks at once; the engine knows asyncio's

    def copy_selected(self) -> bool:
        """Copy the text that the mouse has selected; False: none is."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        return bool(selected)
