"""Session keys: which conversation a message belongs to, and which file keeps it."""

import functools
import hashlib
import re
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import quote, unquote

from denizen.config.pattern import pattern
from denizen.errors import SessionError
from denizen.runtime.clock import Clock

PeerKind = Literal["direct", "group", "channel"]

_FORM = "agent:ID:channel:NAME:account:ID:peer:direct|group|channel:ID"
_KEY = pattern(r"agent:([^:]+):channel:([^:]+):account:([^:]+):peer:(direct|group|channel):(.+)", re.DOTALL)
_ESCAPE_OR_CAPITAL = pattern("%..|[A-Z]")
_MAX_NAME_CHARS = 160  # of a file's name: file systems allow 255 bytes, and lock and temporary files add a suffix


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Who talks with which agent, and where. Ids that differ in anything are different keys.

    As text, `agent:<id>:channel:<name>:account:<id>:peer:<direct|group|channel>:<id>`, what isn't a small letter, a
    digit or one of `_.-~@` is percent-escaped. Raises SessionError for an empty part.
    """

    peer: str
    kind: PeerKind = "direct"
    channel: str = "cli"
    account: str = "default"
    agent: str = "main"

    def __post_init__(self) -> None:
        for name in ("peer", "channel", "account", "agent"):
            sound = getattr(self, name).encode(errors="replace").decode()
            if not sound.strip():
                raise SessionError(f"A session key needs a {name} that isn't empty. Its form is {_FORM}.")
            object.__setattr__(self, name, sound)

    @classmethod
    def typed(cls, peer: str, *, channel: str = "cli", account: str = "default", agent: str = "main") -> "SessionKey":
        """The key of names that people type: case and surrounding space make no difference."""
        return cls(_folded(peer), channel=_folded(channel), account=_folded(account), agent=_folded(agent))

    @classmethod
    def of_chat(cls, chat: str, channel: str) -> "SessionKey":
        """The key of a direct chat, by its id as the channel brings it; those of the terminal are typed."""
        return cls.typed(chat) if channel == "cli" else cls(chat, channel=channel)

    @classmethod
    def parse(cls, text: str) -> "SessionKey":
        """The key that `text` spells; only what is escaped in it keeps its case. Raises SessionError for no key."""
        if not (key := _KEY.fullmatch(_folded(text))):
            raise SessionError(f"{text!r} is not a session key. Give a short name, or the form {_FORM}.")
        agent, channel, account, kind, peer = map(unquote, key.groups())
        return cls(peer, cast(PeerKind, kind), channel, account, agent)

    def __str__(self) -> str:
        agent, channel, account, peer = map(_quoted, (self.agent, self.channel, self.account, self.peer))
        return f"agent:{agent}:channel:{channel}:account:{account}:peer:{self.kind}:{peer}"


@functools.lru_cache(1024)
def session_key(name: str, *, agent: str = "main") -> str:
    """The normal spelling of a whole key, or the key of the terminal's session called `name`.

    Normal spellings stay as they are. Raises SessionError for an empty name and a malformed key.
    """
    whole = name.strip().lower().startswith("agent:")
    return str(SessionKey.parse(name) if whole else SessionKey.typed(name, agent=agent))


def new_name(clock: Clock) -> str:
    """A short name that no session has yet, in the order of time."""
    return f"{clock.now():%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


@functools.lru_cache(1024)
def transcript_path(root: Path, key: str) -> Path:
    """The file of a session: a folder per agent, and a name that no other key has, whatever the file system.

    Raises SessionError when `key` spells none.
    """
    whole = SessionKey.parse(session_key(key))
    name = "+".join(map(_quoted, (whole.channel, whole.account, whole.kind, whole.peer)))
    return root / bounded(_quoted(whole.agent)) / f"{bounded(name)}.jsonl"


def key_of(path: Path) -> str:
    """The key of a session's file; empty if its name was too long to hold the key."""
    agent, parts = path.parent.name, path.stem.split("+")
    if len(parts) != 4 or "=" in agent + path.stem:
        return ""
    channel, account, kind, peer = parts
    try:
        return session_key(f"agent:{agent}:channel:{channel}:account:{account}:peer:{kind}:{peer}")
    except SessionError:
        return ""  # somebody else's file


def _quoted(part: str) -> str:
    quoted = _ESCAPE_OR_CAPITAL.sub(_in_small_letters, quote(part, safe="@"))
    return "%2e" + quoted[1:] if quoted.startswith(".") else quoted  # never "..", never a hidden file


def _in_small_letters(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02x}" if len(found[0]) == 1 else found[0].lower()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.lower()).strip()


def bounded(name: str, max_chars: int = _MAX_NAME_CHARS) -> str:
    """The name; a long one is cut, with a digest that keeps it unique."""
    if len(name) <= max_chars:
        return name
    return f"{name[:80]}={hashlib.sha256(name.encode(errors='replace')).hexdigest()}"


def short_name(key: str) -> str:
    """The session's name at the terminal: the short one if it began there, otherwise the whole key."""
    parsed = SessionKey.parse(session_key(key))
    is_typed = parsed == SessionKey.typed(parsed.peer) and not parsed.peer.startswith("agent:")
    return parsed.peer if is_typed else key
