"""Sessions: their keys, their entries in memory and as JSON lines, and the stores that keep them."""

from denizen.sessions.codec import encode
from denizen.sessions.jsonl import JsonlStore
from denizen.sessions.key import SessionKey, new_name, session_key, short_name
from denizen.sessions.memory import MemoryStore
from denizen.sessions.tree import EntryTree

__all__ = ["EntryTree", "JsonlStore", "MemoryStore", "SessionKey", "encode", "new_name", "session_key", "short_name"]
