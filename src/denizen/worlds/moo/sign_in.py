"""Servers' replies to a sign-in: whether they ask for a line, and whether they refuse."""

import re
from collections.abc import Sequence
from typing import Final

from denizen.errors import DenizenError
from denizen.worlds.moo.transport import Server, ServerUnreachable, address_of, refused

MAX_REFUSAL_LINES: Final = 3
"""Lines of a refusal, unless the welcome comes again; where a server lets a player in, it says more."""

_ASKED: Final = r"\b{word}\b.{{0,20}}\b(?:user|name|character|player|account)"
_LATER: Final = re.compile(r"(?i)\b(?:again (?:in|later)|busy|full|too many|maintenance)\b")
_SUBJECT: Final = re.compile(
    r"(?i)passw|passphrase|user|account|player|character|name\b|log-?in|credential|connect|authenti"
)
_NO: Final = re.compile(
    r"(?i)\b(?:incorrect|invalid|illegal|wrong|bad|unknown|denied|refused|fail(?:ed|ure)|unrecogni[sz]ed|no such)\b"
    r"|(?:\bnot|n't) (?:\w+ )?"
    r"(?:exist|found|recogni[sz]ed|valid|registered|match|correct|right|allowed|permitted|known)"
)
_FINAL: Final = re.compile(r"(?i)\baccess denied|\bbanned\b")


def asks_for(login: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether the welcome of a server says to sign in by such a line, as in `connect <name> <password>`."""
    word = login[0].split(maxsplit=1)[0] if login and login[0].strip() else ""
    asked = re.compile(_ASKED.format(word=re.escape(word)), re.IGNORECASE)
    return bool(word) and any(map(asked.search, lines))


def refusal(server: Server, lines: Sequence[str]) -> DenizenError | None:
    """The error that ended the sign-in, read from the server's answers; None if it let us in.

    ServerUnreachable where another try may succeed, else ConfigError.
    """
    words = [line for line in lines if any(map(str.isalnum, line))]
    if len(words) > MAX_REFUSAL_LINES and not asks_for(server.login, words):
        return None
    for line in words:
        if _LATER.search(line) and _SUBJECT.search(line):
            return ServerUnreachable(f"{address_of(server)} didn't let {server.user} in: “{line}”")
        if _FINAL.search(line) or (_NO.search(line) and _SUBJECT.search(line)):
            return refused(server, line)
    return None
