"""Sessions: their keys, their entries in memory and as JSON lines, and the store that keeps them in files."""

from denizen.sessions.codec import encode
from denizen.sessions.jsonl import JsonlStore
from denizen.sessions.key import SessionKey, new_name, session_key, short_name
from denizen.sessions.tree import EntryTree

__all__ = ["EntryTree", "JsonlStore", "SessionKey", "encode", "new_name", "session_key", "short_name"]
