"""The settings of the gateway: `[gateway]`."""

from typing import Annotated, Literal

import msgspec

from denizen.errors import ConfigError

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]

WhenBusy = Literal["queue", "steer", "interrupt"]
"""How a message reaches a busy session: it waits, steers the running turn, or interrupts it."""

Missed = Literal["skip", "once"]
"""Runs that were due while the gateway wasn't running: skipped, or made up by one run when it starts."""


class CronSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scheduled jobs."""

    jobs: _Count = 100
    """Maximum number of jobs."""
    missed: Missed = "once"
    """Missed runs, unless a job says otherwise: `skip` them, or run `once` for all of them."""


class HeartbeatSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Recurring tasks: at intervals the agent gets HEARTBEAT.md from its own workspace."""

    enabled: bool = True
    """No model is called while the file is missing or has only headings."""
    minutes: Annotated[float, msgspec.Meta(ge=5)] = 30.0
    """Minutes between two beats."""
    active: Annotated[str, msgspec.Meta(pattern=r"^((([01]\d|2[0-3]):[0-5]\d)-(([01]\d|2[0-3]):[0-5]\d))?$")] = ""
    """Active hours, such as `08:00-22:00`, in the user's time zone (`agent.timezone`); empty: always."""
    history: bool = False
    """The agent sees its earlier beats."""


class TranscriptionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The endpoint that turns voice messages into text."""

    base_url: str = ""
    """The endpoint of OpenAI's form, such as `https://api.openai.com/v1`; empty: none."""
    model: str = "whisper-1"
    """The endpoint's model."""
    api_key: str = ""
    """The key, best as a reference: `"${OPENAI_API_KEY}"`; empty: none is sent."""
    usd_per_minute: float = 0.0
    """The price of a minute, in US dollars; it counts against budgets and spending limits."""


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The gateway's address, limits, queue and timers."""

    host: str = "127.0.0.1"
    """The address it listens on."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 29481
    """The port; 0: a free one."""
    hosts: list[str] = []
    """More host names that clients may use, such as that of a reverse proxy."""
    connections: _Count = 1000
    """Maximum number of open requests, including those that wait."""
    rate: Annotated[float, msgspec.Meta(gt=0)] = 2000.0
    """Average requests a second; bursts may have ten times as many."""
    owner: list[str] | str = ""  # without a pattern: msgspec 0.22 crashes on one in a union with a list
    """The chat that gets questions, `"channel:chat"`, or a list: a turn's own chat if it is in the list, otherwise the
    first; empty: always the turn's own chat. People who write in these chats are owners."""
    sender_day_usd: _Amount | None = None
    """US dollars a day (UTC) for each sender's turns; a person's channels count together; not set: no limit. Owners
    aren't limited."""
    group_day_usd: _Amount | None = None
    """US dollars a day (UTC) for each group's turns; not set: no limit."""
    alarms: list[str] = []
    """Who else is notified when a channel stays down: chats such as `"apprise:phone"`, and
    [Apprise](https://github.com/caronc/apprise) URLs such as `"ntfy://topic"`, preferably as references:
    `"${ALARM_URL}"`."""
    database: Annotated[str, msgspec.Meta(pattern="^(postgres(ql)?://.+)?$", examples=["postgresql://host/name"])] = ""
    """The PostgreSQL database that the gateway shares with any number of `denizen worker`; empty: files in the home."""
    pooler: Annotated[
        str, msgspec.Meta(pattern="^(postgres(ql)?://.+)?$", examples=["postgresql://host:6432/name"])
    ] = ""
    """The same database through a pooler, such as PgBouncer, for all connections of a process but one; empty: none."""
    turns: _Count = 64
    """Concurrent turns in each process, each in its own session."""
    attempts: _Count = 3
    """Attempts before a message is given up."""
    grace: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Seconds for running turns to end when the gateway stops; the others continue at the next start."""
    keep_days: Annotated[float, msgspec.Meta(ge=1)] = 30.0
    """Days that finished messages and their replies stay in the ledger; until then a repeated id is recognised."""
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    """Recurring tasks."""
    cron: CronSettings = CronSettings()
    """Scheduled jobs."""
    transcription: TranscriptionSettings = TranscriptionSettings()
    """Voice messages."""
    hardware: bool = False
    """Without effect: the plug-in `denizen-hardware` has the tools `i2c` and `spi`. Removed in the next release."""
    when_busy: dict[str, WhenBusy] = {}
    """How a message reaches a busy session, by channel: `queue` (the default), `steer` or `interrupt`."""

    @property
    def owners(self) -> tuple[str, ...]:
        """The chats of `owner`. Raises ConfigError."""
        chats = [self.owner] if isinstance(self.owner, str) else self.owner
        if wrong := [each for each in chats if each and not all(each.partition(":"))]:
            raise ConfigError(f'gateway.owner is "channel:chat", such as "http:ann", not {wrong[0]!r}.')
        return tuple(filter(None, chats))
