"""`cron`: the tool that schedules jobs, and the scheduler that runs them."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from denizen.errors import ToolRefused
from denizen.ports import InboundMessage, Tool, ToolContext, Traits
from denizen.runtime.clock import Clock
from denizen.sessions import SessionKey
from denizen.tools.function import tool
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database, wait_for_event_or
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.settings import CronSettings, Missed
from denizen.worlds.chat.timers.wake_script import WakeScript

MISSED_AFTER_S = 60.0
"""A run that hasn't begun after so many seconds is missed."""
MIN_INTERVAL_S = 10.0
"""Minimum seconds between two runs."""
Kind = Literal["at", "every", "cron"]
UNSCHEDULABLE = (ValueError, LookupError, OSError, OverflowError)
"""Raised by `CronJob.next` for an invalid time, interval, expression or time zone."""
_Words = Annotated[str, msgspec.Meta(pattern=r"\S")]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_EVERY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd])[a-z]*\s*", re.IGNORECASE)
_log = logging.getLogger(__name__)


class NewJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job to schedule: what to do, `at` an ISO time, `every` 30m, 2h or 1d, or by a `cron` expression.

    `zone` is the name of a time zone (default: the user's). Replies go to `chat` of `channel`. `wake` is a script that
    decides whether a run begins.
    """

    text: _Words
    kind: Kind
    when: _Words
    channel: _Words
    chat: _Words
    zone: str = ""
    name: str = ""
    missed: Missed | None = None
    wake: str = ""


class CronJob(NewJob, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    """A job in the ledger. Replies go to `chat`, whose session is `home`.

    With `in_chat` the turns run in that session, too, otherwise in the job's own.
    """

    id: str
    missed: Missed | None = "once"
    home: str = ""
    in_chat: bool = False
    since: datetime

    @property
    def session_key(self) -> str:
        """The session of its turns."""
        return self.home if self.in_chat and self.home else str(SessionKey(self.id, channel="cron"))

    def next(self, after: datetime, zone: tzinfo | None) -> datetime | None:
        """The first run after that time, in UTC; None: none. `zone` is the user's (None: the machine's).

        Raises the errors of `UNSCHEDULABLE`.
        """
        zone = ZoneInfo(self.zone) if self.zone else zone
        match self.kind:
            case "at":
                at = datetime.fromisoformat(self.when)
                at = (at.replace(tzinfo=zone) if zone and not at.tzinfo else at).astimezone(UTC)
                return at if at > after else None
            case "every":
                step = timedelta(seconds=_seconds(self.when))
                return self.since + ((after - self.since) // step + 1) * step
            case "cron":
                return _next_match(_ALIASES.get(self.when.lower(), self.when), after, zone)


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to `list` the jobs, to `add` a `job`, or to `remove`, `enable` or `disable` the one with an `id`."""

    type: Literal["list", "add", "remove", "enable", "disable"]
    job: NewJob | None = None
    id: str = ""


class JobStatus(msgspec.Struct, frozen=True):
    """A job, its next run (None: disabled), and its last result in a line (empty: there was none)."""

    job: CronJob
    due: datetime | None
    last: str


class Cron:
    """The jobs in the ledger. A run is an inbound message, written in one transaction with the time of the next run."""

    def __init__(self, database: Database, *, clock: Clock, zone: tzinfo | None, settings: CronSettings) -> None:
        self.zone = zone
        self.settings = settings
        self._database = database
        self._clock = clock
        self._bell = asyncio.Event()
        self._offset = float("inf")  # of the clock from its stopwatch, at the last look
        database.news["cron"] = lambda _: self._bell.set()

    async def run(self) -> None:
        """Begin due runs until cancelled."""
        while True:
            self._bell.clear()
            due = await self._database.persist(self._begin)
            self._database.ring()
            await wait_for_event_or(self._bell, due, self._clock)

    def plan(self, new: NewJob, seed: str, *, home: str = "", in_chat: bool = False) -> tuple[CronJob, datetime]:
        """The job, with an id derived from `seed`, and its first run. Raises ToolRefused if there is none."""
        if not (new.text.strip() and new.when.strip()):
            raise ToolRefused("a job needs `text` and `when`")
        now = self._clock.now()
        given: dict[str, Any] = {
            **msgspec.structs.asdict(new),
            "name": new.name or new.text.strip().partition("\n")[0][:40],
            "when": new.when.strip(),
            "missed": new.missed or self.settings.missed,
            "wake": new.wake.strip(),
        }
        job_id = hashlib.sha256(f"{seed} {new.text} {new.when}".encode()).hexdigest()[:8]
        job = CronJob(**given, id=job_id, home=home, in_chat=in_chat, since=now)
        try:
            due = job.next(now, self.zone)
        except UNSCHEDULABLE as wrong:
            raise ToolRefused(f"{job.kind} {job.when!r} {job.zone}: {wrong}") from wrong
        if due is None:
            raise ToolRefused(f"{job.when} has passed, or never comes; now it is {shown(now, self.zone)}")
        return job, due

    async def carry_out(self, asked: JobRequest) -> list[JobStatus]:
        """Carry out a request, and return the listed or added jobs. Raises ToolRefused if it can't."""
        if asked.type == "list":
            return await self._database.read(_statuses)
        if asked.type != "add":
            if not await self.change(asked.id, asked.type):
                raise ToolRefused(f"There is no job {asked.id!r}. `denizen cron list` shows the ids.")
            return []
        if asked.job is None:
            raise ToolRefused("`add` needs a `job`.")
        job, due = self.plan(asked.job, self._clock.now().isoformat())
        await self.add(job, due)
        return [JobStatus(job, due, "")]

    async def add(self, job: CronJob, due: datetime) -> None:
        """Add a job, unless its id exists. Raises ToolRefused if there are too many."""

        def add(db: LedgerConnection) -> None:
            if len(ledger.jobs(db)) >= self.settings.jobs:
                raise ToolRefused(
                    f"the limit of {self.settings.jobs} jobs is reached (gateway.cron.jobs); remove some first"
                )
            ledger.add_job(db, job.id, msgspec.json.encode(job).decode(), due.timestamp())

        await self._database.run(add)
        self._bell.set()

    async def jobs(self) -> Sequence[tuple[CronJob, datetime | None]]:
        """The jobs, and the next run of each (None: disabled)."""
        rows = await self._database.read(ledger.jobs)
        return [(_job(text), _time(due)) for text, due in rows]

    async def change(
        self, job_id: str, action: Literal["remove", "enable", "disable"], chat: tuple[str, str] | None = None
    ) -> bool:
        """Change a job, with `chat` (channel and name) only one of that chat; False: it doesn't exist."""

        def change(db: LedgerConnection) -> bool:
            job = next((found for text, _ in ledger.jobs(db) if (found := _job(text)).id == job_id), None)
            if job is None or (chat and chat != (job.channel, job.chat)):
                return False
            due = job.next(self._clock.now(), self.zone) if action == "enable" else None
            if action == "remove" or (action == "enable" and due is None):
                ledger.remove_job(db, job_id)
            else:
                ledger.set_due(db, job_id, due.timestamp() if due else None)
            return True

        found = await self._database.run(change)
        self._bell.set()
        return found

    def _begin(self, db: LedgerConnection) -> float | None:
        """Begin the due runs; the time of the next one."""
        now = self._clock.now()
        before, self._offset = self._offset, now.timestamp() - self._clock.monotonic()
        if before - self._offset > MISSED_AFTER_S:  # it was set back, or may have been before the first look
            self._bring_forward(db, now)
        for text, due in ledger.jobs(db):
            if due is None or due > now.timestamp():
                continue
            job = _job(text)
            if why := self._why_not(db, job, now.timestamp() - due):
                _log.warning("Cron job %s (%s) is skipped: %s.", job.id, job.name, why)
            else:
                ledger.put_run(db, _message(job, due), _run_id(job))
            try:
                following = job.next(now, self.zone)
            except UNSCHEDULABLE as wrong:  # it could be scheduled once, with a zone that this machine hasn't
                _log.error(
                    "Cron job %s (%s) is disabled: %s. Fix that, then `denizen cron enable` or `remove` it.",
                    job.id,
                    job.name,
                    wrong,
                )
                ledger.set_due(db, job.id, None)
                continue
            if following:
                ledger.set_due(db, job.id, following.timestamp())
            else:
                ledger.remove_job(db, job.id)
        return ledger.next_job(db)

    def _bring_forward(self, db: LedgerConnection, now: datetime) -> None:
        """Let no job wait longer than until its next time."""
        for text, due in ledger.jobs(db):
            job, following = _job(text), None
            with suppress(*UNSCHEDULABLE):  # which is logged when it is due
                following = job.next(now, self.zone)
            if due and following and following.timestamp() < due:
                ledger.set_due(db, job.id, following.timestamp())

    def _why_not(self, db: LedgerConnection, job: CronJob, late: float) -> str:
        """The reason to skip a run; empty: none."""
        if late > MISSED_AFTER_S and job.missed == "skip":
            return f"it was due {late:.0f} s ago"
        runs = [(job.session_key, _run_id(job)), (_script_session(job), _run_id(job))]
        runs.append((job.session_key, outbound.continuation_id(_run_id(job))))
        if any(ledger.is_busy(db, key, prefix) for key, prefix in runs):
            return "its last run hasn't ended"
        return ""


def cron_tool(cron: Cron) -> Tool:
    """The tool; its jobs go there."""

    @tool(name="cron", traits=Traits.WRITES | Traits.REPEATABLE)
    async def schedule(
        turn: ToolContext,
        *,
        action: Literal["add", "list", "remove", "enable", "disable"] = "list",
        text: str = "",
        kind: Kind = "at",
        when: str = "",
        zone: str = "",
        name: str = "",
        missed: Missed | None = None,
        session: Literal["own", "chat"] = "own",
        job: str = "",
    ) -> str:
        """Schedule jobs: once, again and again, or by a cron expression. You do the job when it is due, in a turn of
        its own, and its reply is sent to this chat.

        Args:
            text: What to do then, in words that suffice without this chat
            when: For `at` an ISO time (2026-03-01T09:00), for `every` 30m, 2h, 1d, for `cron` five fields (0 9 * * 1-5)
                or @daily
            zone: Time zone, such as Europe/Berlin; default: the user's
            missed: What becomes of runs that were missed
            session: `chat`: its turns run in this chat's session, with its history
            job: The id, to remove, enable or disable it
        """
        own = (turn.channel, turn.chat)
        if action == "list":
            return _listed([each for each in await cron.jobs() if (each[0].channel, each[0].chat) == own], cron.zone)
        if action != "add":
            if not await cron.change(job, action, own):
                raise ToolRefused(f"this chat has no job {job!r}; `list` shows its ids")
            return f"Job {job}: {action}d."
        if not (turn.channel and turn.chat):
            raise ToolRefused("this turn has no chat that the job's replies could go to")
        new = NewJob(
            text=text,
            kind=kind,
            when=when,
            channel=turn.channel,
            chat=turn.chat,
            zone=zone,
            name=name,
            missed=missed,
        )
        home = "" if SessionKey.parse(turn.session_key).channel in {"cron", "heartbeat"} else turn.session_key
        planned, due = cron.plan(new, f"{turn.session_key} {turn.call_id}", home=home, in_chat=session == "chat")
        if Traits.UNTRUSTED in turn.in_sight:  # which would speak for the user in the job's turns
            answer = await turn.ask(f"Text from others is in sight. Schedule {kind} {when}: {text}?")
            if not answer.allow:
                raise ToolRefused(f"not scheduled: {answer.text or 'the user said no'}")
        await cron.add(planned, due)
        when_due = shown(due, cron.zone)
        return f"Job {planned.id} runs at {when_due}." if kind == "at" else f"Job {planned.id} runs next at {when_due}."

    return schedule


def _statuses(db: LedgerConnection) -> list[JobStatus]:
    jobs = [(_job(text), due) for text, due in ledger.jobs(db)]
    return [JobStatus(job, _time(due), outbound.last_result(db, job.channel, _run_id(job))) for job, due in jobs]


def _message(job: CronJob, due: float) -> InboundMessage:
    """The message that begins a run of the job: one for each time."""
    at = datetime.fromtimestamp(due, UTC)
    own = str(SessionKey(job.id, channel="cron"))
    metadata = {ledger.ORIGIN: ledger.origin_of(own, job.channel, job.chat)}
    if job.home:
        metadata[ledger.KEPT_IN] = job.home
    message = InboundMessage(
        job.channel,
        job.chat,
        "cron",
        f"[cron job {job.name}] {job.text}",
        job.session_key,
        metadata=metadata,
        id=f"{_run_id(job)}{at:%Y-%m-%dT%H:%M:%SZ}",
    )
    return WakeScript(job.wake, job.session_key).put_before(message, _script_session(job)) if job.wake else message


def _script_session(job: CronJob) -> str:
    """The session of the job's wake script."""
    return str(SessionKey(f"{job.id}.wake", channel="cron"))


def _run_id(job: CronJob) -> str:
    """The prefix of its runs' ids."""
    return f"cron:{job.id}:"


def _seconds(interval: str) -> float:
    match = _EVERY.fullmatch(interval)
    seconds = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if seconds < MIN_INTERVAL_S:
        raise ValueError(f"not an interval of {MIN_INTERVAL_S:.0f} s or more, such as 30m, 2h or 1d")
    return seconds


def _next_match(expression: str, after: datetime, zone: tzinfo | None) -> datetime | None:
    from cronsim import CronSim, CronSimError

    local = after.astimezone(zone)
    try:  # the machine's zone has its rules in `astimezone` alone, which takes naive times for local ones
        for match in CronSim(expression, local if zone else local.replace(tzinfo=None)):
            if (found := match.astimezone(UTC)) > after:
                return found
    except CronSimError as wrong:
        raise ValueError(str(wrong)) from wrong
    return None


def _time(due: float | None) -> datetime | None:
    return None if due is None else datetime.fromtimestamp(due, UTC)


def _job(text: str) -> CronJob:
    return msgspec.json.decode(text, type=CronJob)


def shown(at: datetime, zone: tzinfo | None) -> str:
    """The time as people read it."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"


def _listed(jobs: Sequence[tuple[CronJob, datetime | None]], zone: tzinfo | None) -> str:
    lines = [
        f"{job.id}  {job.kind} {job.when}{job.zone and f' ({job.zone})'}  "
        f"{f'next {shown(due, zone)}' if due else 'disabled'}  for {job.channel}:{job.chat}  {job.name}"
        for job, due in jobs
    ]
    return "\n".join(lines) or "This chat has no jobs."
