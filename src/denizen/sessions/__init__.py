"""What was said: session keys, and the transcripts that last."""

from denizen.sessions.jsonl import JsonlStore
from denizen.sessions.key import SessionKey, new_name, session_key

__all__ = ["JsonlStore", "SessionKey", "new_name", "session_key"]
