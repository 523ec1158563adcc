"""The turn queue on the ledger."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from msgspec.structs import replace

from denizen.config.redact import whole_characters
from denizen.errors import DenizenError, ModelError, SessionUnavailable
from denizen.ports.host import Control, FollowUp, Interrupt, Parked, Steer
from denizen.ports.queue import InboundMessage, OutboundMessage, ParkedTurn, TurnHandler
from denizen.runtime.cancellation import run_to_completion
from denizen.runtime.clock import BackOff, Clock
from denizen.worlds.chat.ledger import edits, ledger, outbound
from denizen.worlds.chat.ledger.database import Database, LedgerError, LedgerRefused, TurnClaimer, wait_for_event_or
from denizen.worlds.chat.ledger.ledger import Accepted, ArrivedControl, Claim, LedgerConnection
from denizen.worlds.chat.ledger.outbound import OutboxState
from denizen.worlds.chat.ledger.reply_options import ReplyOptions
from denizen.worlds.chat.settings import WhenBusy
from denizen.worlds.chat.turns import spawn

Sent = OutboundMessage | InboundMessage | None
"""A turn's outcome: a message to a chat, one to another session, or nothing."""
MAX_DEATHS = 25
"""How often the process may die over a message before it is given up."""
MAX_RETRY_WAIT_S = 3600.0
HELD_RETRY_S = 5.0
"""Seconds before a retry if the session is open elsewhere, or can't be written now."""
_log = logging.getLogger(__name__)


class LedgerTurn:
    """A turn of the ledger while it runs."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.message = claim.message
        self.attempt = claim.attempt
        self.heard: list[ArrivedControl] = []
        self._arrived: list[ArrivedControl] = []
        self._latest = 0
        self._has_arrived = asyncio.Event()

    def controls(self) -> Sequence[Control]:
        """The controls that arrived since the last call."""
        new = self._arrived
        self._arrived = []
        self._has_arrived.clear()
        self.heard += new
        return [each.control for each in new]

    async def changed(self) -> None:
        """Return once something arrived since the last call of `controls`."""
        await self._has_arrived.wait()

    def heard_before(self, message_ids: Collection[str]) -> None:
        """Count these messages as read: an earlier attempt read them, and died before that was recorded."""
        self.heard += [each for each in self._arrived if each.message and _message_id(each.control) in message_ids]

    def arrive(self, control: ArrivedControl) -> None:
        """Deliver a control, once."""
        if control.seq > self._latest:
            self._latest = control.seq
            self._arrived.append(control)
            self._has_arrived.set()


@dataclass(eq=False)
class LedgerQueue:
    """A `TurnQueue` in a database, which several of them may share.

    A message is given up with an apology after `attempts` failures; the delay before each attempt doubles from
    `retry_after` seconds. One whose session or ledger isn't available now waits, and hasn't failed. At most `turns` run
    at once. `when_busy` says by channel what a message does if its session is busy. `explain` words a failure;
    `on_reply` gets each message whose turn ended or parked here, and what it sent, `on_over` the state of each message
    whose turn ended here.
    """

    database: Database
    _: KW_ONLY
    clock: Clock
    attempts: int = 3
    retry_after: float = 1.0
    turns: int = 64
    when_busy: Mapping[str, WhenBusy] = field(default_factory=dict)
    explain: Callable[[Exception], str] = str
    on_reply: Callable[[OutboundMessage | InboundMessage], None] = lambda _: None
    on_over: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self._retries = BackOff(self.retry_after, MAX_RETRY_WAIT_S, jitter=0.2)
        self._worker: TurnClaimer | None = None
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def put(self, message: InboundMessage) -> bool:
        """Accept a message; False: its channel's message of that id was accepted before."""
        return bool(await self.accept(message))

    async def accept(self, message: InboundMessage, *, waits: bool = False) -> Accepted:
        """Accept a message; whether its turn is next or it waits.

        With `waits` it gets its own turn, even if its channel's messages go to a running turn.
        """
        how = "queue" if waits else self.when_busy.get(message.channel, "queue")
        self.database.ring()  # a worker claims it next, in the same transaction if possible
        accepted = await self.database.run(partial(edits.put, message=message, when_busy=how), message.session_key)
        if how != "queue":
            self.database.ring()  # a running turn may read it: a full queue has looked too early
        return accepted

    async def say(self, message: InboundMessage, control: Steer | FollowUp | Interrupt) -> bool:
        """Accept a message for the session's open turn; False, and nothing is accepted, if there is none."""
        accepted = await self.database.run(partial(ledger.say, message=message, control=control), message.session_key)
        self.database.ring()
        return accepted

    async def control(self, session_key: str, control: Control) -> bool:
        """Pass a control to the session's turn; False if there is none."""
        found = await self.database.run(partial(ledger.control, session_key=session_key, given=control), session_key)
        self.database.ring()
        return found

    async def drain(self) -> None:
        """Begin no more turns, and wait for the end of those that run."""
        self._draining = True
        if self._worker:
            with suppress(LedgerError):  # the worker that takes over rings again, too
                await self._worker.stop_claiming()
        await self._idle.wait()

    async def serve(self, handler: TurnHandler) -> None:
        """Run turns until cancelled."""
        bell = asyncio.Event()
        running: dict[str, LedgerTurn] = {}
        self.database.bells.add(bell)
        async with self.database.worker(bell, self.turns) as worker:
            self._worker = worker

            looked_at = float("inf")

            def claim(db: LedgerConnection) -> tuple[list[Claim], list[ArrivedControl], float | None]:
                nonlocal looked_at
                now, before = self.clock.now().timestamp(), looked_at
                looked_at = now
                if now < before:  # the clock was set back, or may have been before the first look
                    ledger.bring_forward(db, now + max(HELD_RETRY_S, self._retries.after(self.attempts)))
                claims = worker.claim(db, running.keys(), now, self._room(running))
                return claims, *look(db, claims)

            def look(db: LedgerConnection, claims: Sequence[Claim] = ()) -> tuple[list[ArrivedControl], float | None]:
                controls = ledger.controls_for(db, worker.id) if worker.expects_controls(claims) else []
                return controls, worker.next_due(db)

            async def run(turn: LedgerTurn) -> None:
                await self._run(turn, handler)
                del running[turn.message.session_key]
                worker.ended(turn.message.session_key)
                if not running:
                    self._idle.set()
                self.database.ring()

            try:
                async with asyncio.TaskGroup() as turns:
                    while True:
                        bell.clear()
                        claims = list[Claim]()
                        if worker.may_claim(running.keys(), self._room(running)):
                            claims, controls, due = await self.database.persist(claim)
                            if claims:
                                self._idle.clear()
                        elif worker.expects_controls(()):
                            controls, due = await self.database.find(look)
                        else:
                            controls, due = list[ArrivedControl](), None
                        worker.began(claims)
                        for begun in claims:
                            turn = running[begun.message.session_key] = LedgerTurn(begun)
                            turns.create_task(run(turn))
                        for each in controls:
                            if turn := running.get(each.session_key):
                                turn.arrive(each)
                        await wait_for_event_or(bell, due if len(running) < self.turns else None, self.clock)
            finally:
                self.database.bells.discard(bell)
                heard = [each for turn in running.values() for each in turn.heard]
                await run_to_completion(self._give_back(worker, heard))
                self._idle.set()

    def _room(self, running: Mapping[str, LedgerTurn]) -> int:
        """The number of turns that may begin."""
        return 0 if self._draining else self.turns - len(running)

    async def _give_back(self, worker: TurnClaimer, heard: Sequence[ArrivedControl]) -> None:
        try:
            await worker.stop_claiming()
            await self.database.run(partial(ledger.release, worker=worker.id, heard=heard))
        except LedgerError as error:
            _log.error("%s The turns that ran here continue once this worker counts as dead.", error)

    async def _run(self, turn: LedgerTurn, handler: TurnHandler) -> None:
        claim, message, heard = turn.claim, turn.message, turn.heard
        try:
            if claim.deaths >= MAX_DEATHS:
                raise DenizenError(f"Denizen died {claim.deaths} times while working on this message.")
            outcome = await handler(turn)
            if isinstance(outcome, OutboundMessage):
                turn.heard_before(outcome.metadata.get(outbound.ALSO, ()))
        except LedgerRefused as error:
            await self._fail(turn, error)
        except (SessionUnavailable, LedgerError) as error:
            _log.info("Message %s waits: %s", message.id, error)
            due = self.clock.now().timestamp() + HELD_RETRY_S
            await self._settle(message, lambda db: ledger.retry(db, claim, heard, due, failed=False))
        except Exception as error:  # noqa: BLE001 (the worker's boundary: it is this turn's failure, and the others go on)
            await self._fail(turn, error)
        else:
            try:
                await self._end(turn, outcome)
            except LedgerRefused as error:  # the database refuses its reply
                await self._fail(turn, error)

    async def _end(self, turn: LedgerTurn, outcome: OutboundMessage | InboundMessage | Parked | None) -> None:
        """Write the outcome of a turn."""
        claim, message, heard = turn.claim, turn.message, turn.heard
        if isinstance(outcome, Parked):
            parked = outcome if isinstance(outcome, ParkedTurn) else ParkedTurn()
            until = parked.until.timestamp() if parked.until else float("inf")
            await self._settle(message, lambda db: ledger.park(db, claim, heard, until), parked.question)
            return
        end = partial(ledger.finish, turn=claim, heard=heard, state="done")
        await self._settle(message, end, _also(outcome, heard), over="done")

    async def _fail(self, turn: LedgerTurn, error: Exception) -> None:
        """Retry a message later, or give it up."""
        claim, message, heard = turn.claim, turn.message, turn.heard
        why, failures = whole_characters(self.explain(error)), claim.failures + 1
        is_final = isinstance(error, ModelError) and error.refuses_content
        if failures < self.attempts and claim.deaths < MAX_DEATHS and not is_final:
            _log.warning("Message %s of %s failed, and is tried again: %s", message.id, message.session_key, why)
            due = self.clock.now().timestamp() + self._retries.after(failures)
            await self._settle(message, lambda db: ledger.retry(db, claim, heard, due))
            return
        _log.error("Message %s of %s is given up: %s", message.id, message.session_key, why)
        apology = _also(spawn.apology(message, why), heard)
        is_fetched = message.channel in outbound.POLLED and ReplyOptions.of(message).send_response
        give_up = partial(ledger.finish, turn=claim, heard=heard, state="failed", reason=why)
        await self._settle(message, give_up, apology, "failed" if is_fetched else None, over="failed")

    async def _settle(
        self,
        message: InboundMessage,
        leave: Callable[[LedgerConnection], bool],
        sent: Sent = None,
        state: OutboxState | None = None,
        over: str = "",
    ) -> None:
        """Write the turn's end and what it sends in one transaction, unless the worker has lost the turn.

        Listeners hear of it, with the state in which its message is `over`, even if the worker stops.
        """

        def settle(db: LedgerConnection) -> bool:
            if not leave(db):
                return False
            if isinstance(sent, InboundMessage):
                ledger.put(db, sent)
            elif sent:
                outbound.add_outbound(db, sent, state)
            return True

        def report(settled: bool) -> None:
            if not settled:
                return
            self.on_reply(message)  # its question may go to another chat than the one that waits for the reply
            if isinstance(sent, OutboundMessage):
                self.on_reply(sent)
            if over:
                self.on_over(over)

        await self.database.persist(settle, report, session_key=message.session_key)


def _also(reply: Sent, heard: Sequence[ArrivedControl]) -> Sent:
    """A reply, marked as the answer to the messages that its turn read, too."""
    if not isinstance(reply, OutboundMessage):
        return reply
    also = [_message_id(said.control) for said in heard if said.message]
    return replace(reply, metadata={**reply.metadata, outbound.ALSO: also}) if also else reply


def _message_id(control: Control) -> str:
    """The id of the message that became a control; empty if none did."""
    return control.id if isinstance(control, Steer | FollowUp | Interrupt) else ""
