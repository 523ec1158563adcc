"""The settings of the gateway: `[gateway]`."""

from typing import Annotated, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]

WhenBusy = Literal["queue", "steer", "interrupt"]
"""What a message does whose session is busy: wait, be said to the running turn, or cut it short."""

Missed = Literal["skip", "once"]
"""What becomes of a run whose time passed while the gateway wasn't running: nothing, or one run when it starts."""


class CronSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scheduled jobs."""

    jobs: _Count = 100
    """How many there may be."""
    missed: Missed = "once"
    """What becomes of missed runs, where a job doesn't say: `skip`, or `once` for all of them together."""


class HeartbeatSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent looks after by itself: HEARTBEAT.md in its own workspace, which it is given every so often."""

    enabled: bool = True
    """While the file is missing, or has headings alone, no model is called."""
    minutes: Annotated[float, msgspec.Meta(ge=5)] = 30.0
    """Minutes between two beats."""
    active: Annotated[str, msgspec.Meta(pattern=r"^((([01]\d|2[0-3]):[0-5]\d)-(([01]\d|2[0-3]):[0-5]\d))?$")] = ""
    """The hours in which it beats, such as `08:00-22:00`, in the user's time zone (`agent.timezone`); empty: all."""
    history: bool = False
    """The agent sees its earlier beats."""


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the gateway is reached, and how it works through what comes in."""

    host: str = "127.0.0.1"
    """The address it listens at."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8642
    """The port; 0: a free one."""
    hosts: list[str] = []
    """Further names under which clients may reach it, as a proxy in front of it has them."""
    connections: _Count = 1000
    """Requests that may be open at once, those that wait included."""
    rate: Annotated[float, msgspec.Meta(gt=0)] = 2000.0
    """Requests a second, on average; for a while, ten times as many."""
    owner: Annotated[str, msgspec.Meta(pattern="^([^:]+:.+)?$", examples=["http:ann"])] = ""
    """Where questions go that a turn must ask, `"channel:chat"`; empty: to the chat that the turn is for."""
    database: Annotated[str, msgspec.Meta(pattern="^(postgres(ql)?://.+)?$", examples=["postgresql://host/name"])] = ""
    """The PostgreSQL database that the gateway shares with any number of `denizen worker`; empty: files of the home."""
    pooler: Annotated[
        str, msgspec.Meta(pattern="^(postgres(ql)?://.+)?$", examples=["postgresql://host:6432/name"])
    ] = ""
    """The same database through a pooler, such as PgBouncer, for all connections of a process but one; empty: none."""
    turns: _Count = 64
    """Turns at once, each in a session of its own, in each process."""
    attempts: _Count = 3
    """How often a message is tried before it is given up."""
    grace: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Seconds that running turns have to end when the gateway is stopped; the others go on at the next start."""
    keep_days: Annotated[float, msgspec.Meta(ge=1)] = 30.0
    """Days that messages which are over, and their replies, stay in the ledger: so long their ids are known."""
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    """What the agent looks after by itself."""
    cron: CronSettings = CronSettings()
    """Scheduled jobs."""
    hardware: bool = False
    """Without effect: the plug-in `denizen-hardware` brings the tools `i2c` and `spi`. Goes in the next release."""
    when_busy: dict[str, WhenBusy] = {}
    """What a message does whose session is busy, by channel: `queue`, `steer` or `interrupt`; otherwise `queue`."""
