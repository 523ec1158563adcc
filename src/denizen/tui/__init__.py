"""Full-screen programs for text worlds. All modules here need textual: the extra `denizen[tui]`."""

from importlib.util import find_spec

from denizen.config.extras import how_to_install
from denizen.errors import DenizenError


def require_textual() -> None:
    """Raise DenizenError, with how to install it, where textual is missing."""
    if find_spec("textual") is None:
        raise DenizenError(f"The full screen needs textual, which isn't installed: {how_to_install('tui')}")
