"""The token chain: a foreman gives the token to one worker after the other, by pages (decisions, "Token chain").

All here is a pure function of what came and when. Each pass of the token has a number that only rises. So a page that
was lost is sent again, and one that comes twice, late, or from somebody else changes nothing: the token is neither lost
nor doubled.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from denizen.errors import ToolRefused
from denizen.worlds.moo import token_pages
from denizen.worlds.moo.listener import STALLED_AFTER_SLOW_CYCLES
from denizen.worlds.moo.server_text import ServerLine

RESEND_AFTER_S: Final = 30.0
"""Seconds until a page that didn't arrive is sent again."""
GOAL: Final = (
    "You hold the token: do your part now. Then page {foreman} with “Token: {me} done.” and what the others need to "
    "know, and call done."
)
SURVEY: Final = "@survey here"
"""The first command of a worker that gets the token: its room and the numbers of the things there."""
CRITICAL: Final = "CRITICAL: page {foreman} with “Token: {me} done.” first. Only then call done."

_MAIL: Final = re.compile(r"\[Mail\] (?:From (?P<sender>[^:]{1,60}): (?P<body>.*)|No new messages)", re.DOTALL)
_READS_MAIL: Final = re.compile(r"@?(?:check_inbox|mail|read)\b")
OFFLINE: Final = re.compile(r".{1,60} is not currently logged in\.")
_PRESENT: Final = re.compile(r"#\d+ \((?P<name>.{1,60})\) has connected\.")


class TokenState(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's knowledge of the token, kept over restarts; workers and the foreman use different fields.

    `number` is that of the last pass; `is_away`: a page about it didn't arrive, or may not have. The foreman: `holder`
    is the worker who has the token, paged or heard of last at `paged_at` (POSIX seconds). A worker: it `holds` the
    token, or `has_reported`, by its done page, that it doesn't any more.
    """

    number: int = 0
    holder: str = ""
    paged_at: float = 0.0
    is_away: bool = False
    holds: bool = False
    has_reported: bool = False


class ChainState(msgspec.Struct, frozen=True):
    """A chain, and what is known of its token."""

    chain: token_pages.Chain
    token: TokenState = TokenState()


class LineOrigin(msgspec.Struct, frozen=True):
    """The origin of a line: its time (POSIX seconds), and the own `command` whose output it is, if any."""

    at: float
    command: str = ""


class ChainActions(msgspec.Struct, frozen=True):
    """Actions that follow from a line or a clock tick.

    `commands` are sent in order, once the new state is kept. `goal` and `plan` are what they are now (None: as before).
    `wakes`: think about it, whatever was done before. `hides`: the model doesn't see the line. `remembers` belongs into
    its summary, `thought` into the log, `forged` on the screen: somebody tried to deceive.
    """

    commands: Sequence[str] = ()
    goal: str | None = None
    plan: Sequence[str] | None = None
    wakes: bool = False
    hides: bool = False
    remembers: str = ""
    thought: str = ""
    forged: str = ""


NOTHING: Final = ChainActions()
Step = tuple[ChainState, ChainActions]


def process_server_text(state: ChainState, line: ServerLine, origin: LineOrigin) -> Step:
    """The step that a line causes. Called with every line, also of own commands' output, before the model sees it."""
    if mail := _MAIL.match(line.text):
        return state, _mail(mail, line, origin)
    if not state.chain.members:
        return state, NOTHING
    if origin.command:
        return process_unsent(state, origin.command) if OFFLINE.fullmatch(line.text) else state, NOTHING
    page = token_pages.read_page(line.text)
    if page is None:
        return _other_line(state, line, origin.at)
    sender = token_pages.sender_of(page, state.chain)
    if not token_pages.is_proven(page, line, state.chain):
        who = line.talker or "Somebody"
        return state, ChainActions(hides=True, forged=f"{who} wrote as if {sender} had paged: {line.text}")
    if not state.chain.is_worker:
        return _foreman_hears(state, page, sender, origin.at)
    return _worker_hears(state, page) if sender == state.chain.foreman else (state, NOTHING)


def process_sign_in(state: ChainState, at: float) -> Step:
    """The foreman begins, or asks again; a worker in the middle of a pass says that it is back."""
    chain, token = state.chain, state.token
    if chain.is_orchestrator:
        return (
            _page_again(state, at) if token.holder in chain.members else _dispatch(state, chain.members[0], "start", at)
        )
    return _page_again(state, at) if token.holds or token.has_reported else (state, NOTHING)


def process_command(state: ChainState, command: str) -> tuple[ChainState, str]:
    """The model's command as it is to be sent: a worker's done page gets the number of its pass, which is then over.

    Raises ToolRefused for a page that would pass the token: the chain does that by itself.
    """
    chain, paged = state.chain, token_pages.read_command(command)
    page = token_pages.read_page(paged[1]) if paged and chain.members else None
    if paged is None or page is None:
        return state, command
    to, words = paged
    if not (chain.is_worker and page.kind == "done" and to.lower() == chain.foreman.lower()):
        raise ToolRefused(
            "the chain passes the token: page only the foreman, that your own part is done, in a separate command"
        )
    return _reported(state), _page(state, chain.foreman, "done", token_pages.done_text(words, chain))


def process_unsent(state: ChainState, command: str) -> ChainState:
    """A command wasn't answered, or its receiver isn't there: a page about the token is to be sent again."""
    chain, paged = state.chain, token_pages.read_command(command)
    other = chain.foreman if chain.is_worker else state.token.holder
    is_theirs = paged and paged[0].lower() == other.lower() and token_pages.read_page(paged[1])
    return _with(state, is_away=True) if is_theirs else state


def check_stall(state: ChainState, at: float, *, since_written: float | None = None, slow_cycle: float = 0.0) -> Step:
    """The step of every 30 s: resend a page that didn't arrive; the foreman pages a worker that went silent.

    `since_written`: seconds since that worker wrote its log (None: nobody knows), `slow_cycle`: how long one of its
    slow cycles takes (p95). While it may still be in one, it isn't paged.
    """
    chain, token = state.chain, state.token
    if token.is_away:
        return _page_again(state, at)
    if not (chain.is_orchestrator and token.holder and chain.stall_seconds):
        return state, NOTHING
    is_in_cycle = since_written is not None and since_written < max(
        chain.stall_seconds, STALLED_AFTER_SLOW_CYCLES * slow_cycle
    )
    if at - token.paged_at < chain.stall_seconds or is_in_cycle:
        return state, NOTHING
    alert = _page(state, token.holder, "stall")
    return _with(state, paged_at=at), ChainActions([alert], thought=f"{token.holder} is asked for the token.")


def pass_on(state: ChainState) -> Step:
    """Give a token that is held back to the foreman, as when a cycle has used up its calls."""
    if not state.token.holds:
        return state, NOTHING
    done = _page(state, state.chain.foreman, "done")
    return _reported(state), ChainActions([done], goal="", thought="The token is passed on.")


def done_refusal(state: ChainState) -> str:
    """The goal that names what is missing before a worker may be done; empty if nothing is."""
    chain = state.chain
    return CRITICAL.format(foreman=chain.foreman, me=chain.me) if chain.is_worker and state.token.holds else ""


def _worker_hears(state: ChainState, page: token_pages.TokenPage) -> Step:
    chain, token = state.chain, state.token
    if page.kind == "go" and page.name != chain.me:
        return state, NOTHING
    if page.number is not None and page.number < token.number:
        return state, ChainActions(hides=True, thought="A late page about an earlier pass is ignored.")
    state = _with(state, is_away=False)
    is_again = page.number == token.number if page.number is not None else token.holds or page.kind == "stall"
    if is_again and token.has_reported:
        done = _page(state, chain.foreman, "done")
        return state, ChainActions([done], hides=True, thought="Asked again: the done page is repeated, not the work.")
    goal = GOAL.format(foreman=chain.foreman, me=chain.me)
    if is_again and token.holds:
        return state, ChainActions(goal=goal, wakes=True)
    state = _with(state, number=page.number or token.number, holds=True, has_reported=False)
    return state, ChainActions([SURVEY], goal=goal, plan=page.rooms or None, wakes=True, thought="The token came.")


def _reported(state: ChainState) -> ChainState:
    return _with(state, holds=False, has_reported=True) if state.token.holds else state


def _foreman_hears(state: ChainState, page: token_pages.TokenPage, sender: str, at: float) -> Step:
    members, token = state.chain.members, state.token
    if page.kind == "reconnected" and sender in members and token.holder not in members:
        return _dispatch(state, sender, "go", at)
    if sender != token.holder or sender not in members or page.kind not in {"done", "reconnected"}:
        return state, NOTHING
    if page.kind == "reconnected":
        return _page_again(state, at)
    if page.number is not None and page.number != token.number:
        return state, ChainActions(thought=f"A late page of {sender} about an earlier pass is ignored.")
    return _dispatch(state, members[(members.index(sender) + 1) % len(members)], "go", at)


def _other_line(state: ChainState, line: ServerLine, at: float) -> Step:
    """The foreman notes pages of the holder; when it is seen to connect, which nobody proves, it is paged again."""
    token, chain = state.token, state.chain
    if not chain.is_orchestrator or not token.holder:
        return state, NOTHING
    if line.channel == "page" and line.talker == token.holder:
        return _with(state, paged_at=at), NOTHING
    present = _PRESENT.fullmatch(line.text)
    if not present or present["name"] != token.holder:
        return state, NOTHING
    is_back = token.is_away and at - token.paged_at >= RESEND_AFTER_S
    return _page_again(state, at) if is_back else (_with(state, is_away=True), NOTHING)


def _dispatch(state: ChainState, to: str, kind: Literal["go", "start"], at: float) -> Step:
    """A new pass. Its number is higher also where the foreman has lost all memory of the last one."""
    state = _with(state, number=max(state.token.number + 1, int(at)), holder=to, paged_at=at, is_away=False)
    return state, ChainActions([_page(state, to, kind)], thought=f"{to} gets the token.")


def _page_again(state: ChainState, at: float) -> Step:
    """The foreman tells the holder that it has the token, a worker the foreman that it is there."""
    state = _with(state, paged_at=at, is_away=False)
    holder = state.token.holder
    if state.chain.is_worker:
        return state, ChainActions([_page(state, state.chain.foreman, "reconnected")])
    return state, ChainActions([_page(state, holder, "go")], thought=f"{holder} is told again that it has the token.")


def _mail(mail: re.Match[str], line: ServerLine, origin: LineOrigin) -> ChainActions:
    """Mail is never shown as a line: what `check_inbox` gives is remembered, what anybody may have written is not."""
    if not _READS_MAIL.match(origin.command):
        return ChainActions(hides=True, forged=f"{line.talker or 'Somebody'} wrote as if mail had come: {line.text}")
    return ChainActions(hides=True, remembers=f"Mail from {mail['sender']}: {mail['body']}" if mail["sender"] else "")


def _page(state: ChainState, to: str, kind: token_pages.Kind, text: str = "") -> str:
    return token_pages.write_page(state.chain, to, kind, state.token.number, text)


def _with(state: ChainState, **changes: object) -> ChainState:
    return msgspec.structs.replace(state, token=msgspec.structs.replace(state.token, **changes))
