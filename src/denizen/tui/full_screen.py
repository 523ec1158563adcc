"""What our full-screen programs have in common."""

import asyncio

from textual.app import App


class FullScreen(App[None]):
    """A program without animations and palette, that leaves the engine's tasks as they are."""

    ENABLE_COMMAND_PALETTE = False

    def on_mount(self) -> None:
        """Begin."""
        self.animation_level = "none"
        asyncio.get_running_loop().set_task_factory(None)  # textual's begin tasks at once; the engine knows asyncio's

    def copy_selected(self) -> bool:
        """Copy the text that the mouse has selected; False: none is."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        return bool(selected)
