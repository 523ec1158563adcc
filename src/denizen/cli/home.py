"""Where the commands find what lasts, and the short names of sessions."""

import os
from pathlib import Path

from denizen.clock import SystemClock
from denizen.config.home import find_home
from denizen.sessions import JsonlStore, SessionKey, session_key

KEY_BEFORE_NAME = str(SessionKey("-")).removesuffix("-")
"""What stands before the name in the key of a session that began at the terminal."""


def home() -> Path:
    """The home: `$DENIZEN_HOME`, or `~/.denizen`."""
    return find_home(os.environ, Path.cwd())


def store() -> JsonlStore:
    """The sessions of the home."""
    return JsonlStore(home() / "sessions", clock=SystemClock())


def short_name(key: str) -> str:
    """What to call a session at the terminal: its name where it began here, else its whole key."""
    parsed = SessionKey.parse(session_key(key))
    return parsed.peer if parsed == SessionKey(parsed.peer) and not parsed.peer.startswith("agent:") else key


def is_ours(key: str) -> bool:
    """Whether a session belongs to the terminal."""
    return SessionKey.parse(key).channel == SessionKey("any").channel
