"""Pages about the token of a chain: what they say, which pass of the token they are about, and who sent them.

`Token: Mason go. (1764000000 5f3a…)`: the number is the pass's and only rises, the mark is the group's signature.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from denizen.worlds.moo.quoting import quoted
from denizen.worlds.moo.server_text import ServerLine

Kind = Literal["go", "start", "done", "reconnected", "stall"]
"""The kinds of pages: the first two give the token, `stall` asks for it."""

_TOKEN: Final = re.compile(
    r"\btoken:\s{0,9}(?P<name>[^:()\n]{1,60}?)\s{1,9}(?P<kind>go|start|done|reconnected)\b", re.IGNORECASE
)
_STALL: Final = re.compile(r"\bstall alert:", re.IGNORECASE)
_PASS: Final = re.compile(r"\((?P<number>\d{1,15})(?: (?P<mark>[0-9a-f]{20}))?\)[\s\"'.]*\Z")
_UNSEEN: Final = re.compile(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_ROOM: Final = re.compile(r"#\d+")
_PAGE: Final = re.compile(
    r"\bpage\s+(?:\"(?P<quoted>[^\"]+)\"|(?P<to>\S+))\s+with\s+(?P<text>.+)", re.IGNORECASE | re.DOTALL
)


def avatar(name: str) -> str:
    """The name in the world of a user: without `+site`, and with a capital where it has none."""
    name = name.partition("+")[0].strip()
    return name[:1].upper() + name[1:] if name.islower() else name


class Chain(msgspec.Struct, frozen=True):
    """Who passes the token to whom; names are those in the world.

    `members` are the workers in their order; the foreman is none of them. `secret` signs the pages, for servers that
    don't prove who sent one. After `stall_seconds` whoever holds the token is paged again; 0: nobody is.
    """

    me: str
    members: Sequence[str] = ()
    foreman: str = "Foreman"
    secret: str = ""
    stall_seconds: float = 0.0

    @classmethod
    def of(
        cls, me: str, members: Sequence[str], foreman: str = "Foreman", secret: str = "", stall_seconds: float = 0.0
    ) -> "Chain":
        """A chain of users."""
        return cls(avatar(me), tuple(map(avatar, members)), avatar(foreman), secret, stall_seconds)

    @property
    def is_worker(self) -> bool:
        """Whether this agent is one of the workers."""
        return self.me in self.members

    @property
    def is_orchestrator(self) -> bool:
        """Whether this agent passes the token: a chain is configured, and the agent isn't a member."""
        return bool(self.members) and not self.is_worker


class TokenPage(msgspec.Struct, frozen=True):
    """A page about the token.

    `name` is the worker it names (a `stall` and a `start` name none), `number` the pass (None: it doesn't say), `mark`
    the signature; `rooms` are the numbers of rooms that it mentions.
    """

    kind: Kind
    name: str = ""
    number: int | None = None
    mark: str = ""
    rooms: Sequence[str] = ()


def read_page(text: str) -> TokenPage | None:
    """The token page in a text; None if it isn't one."""
    text = _UNSEEN.sub("", text)
    found = _TOKEN.search(text)
    if found is None and not _STALL.search(text):
        return None
    tail = _PASS.search(text)
    return TokenPage(
        msgspec.convert(found["kind"].lower() if found else "stall", Kind),
        avatar(found["name"]) if found else "",
        int(tail["number"]) if tail else None,
        (tail["mark"] or "") if tail else "",
        _ROOM.findall(text),
    )


def sender_of(page: TokenPage, chain: Chain) -> str:
    """Who must have sent it."""
    return page.name if page.kind in {"done", "reconnected"} else chain.foreman


def is_proven(page: TokenPage, line: ServerLine, chain: Chain) -> bool:
    """Whether the page is that sender's, to us: the server says so, or where it never does, the group's signature."""
    sender = sender_of(page, chain)
    if line.talker or line.is_unproven:
        return line.channel == "page" and line.talker == sender
    expected = _mark(chain, sender, chain.me, page.kind, page.number or 0)
    return bool(chain.secret and page.mark) and hmac.compare_digest(expected, page.mark)


def write_page(chain: Chain, to: str, kind: Kind, number: int, text: str = "") -> str:
    """The command for a page about that pass; `text` in place of the usual one."""
    usual = {
        "go": f"Token: {to} go.",
        "start": f"Token: {chain.me} start.",
        "done": f"Token: {chain.me} done.",
        "reconnected": f"Token: {chain.me} reconnected.",
        "stall": "Stall alert: you hold the token. Resume your work and send done.",
    }
    mark = f" {_mark(chain, chain.me, to, kind, number)}" if chain.secret else ""
    receiver = quoted(to) if " " in to else to.lower()
    return f"page {receiver} with {quoted(f'{text or usual[kind]} ({number}{mark})')}"


def read_command(command: str) -> tuple[str, str] | None:
    """The receiver and the words of a page command, or None. A page inside a longer command has the receiver ""."""
    page = _PAGE.search(command.strip())
    if page is None:
        return None
    words = page["text"].strip()
    if len(words) > 1 and words[0] == words[-1] == '"':
        words = words[1:-1].replace('\\"', '"')
    return "" if page.start() else avatar(page["to"] or page["quoted"]), words


def done_text(words: str, chain: Chain) -> str:
    """A worker's own words with its done page, in the form that is understood."""
    return _TOKEN.sub(f"Token: {chain.me} done", _PASS.sub("", words), count=1).strip()


def _mark(chain: Chain, sender: str, receiver: str, kind: Kind, number: int) -> str:
    signed = "\0".join([sender, receiver, kind, str(number)])
    return hmac.new(chain.secret.encode(), signed.encode(), hashlib.sha256).hexdigest()[:20]
