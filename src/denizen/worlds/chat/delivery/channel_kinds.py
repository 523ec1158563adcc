"""Finds kinds of channels by their entry points, and opens the configured channels."""

import hashlib
import logging
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from denizen.config.extras import how_to_install
from denizen.config.home import private_folder
from denizen.config.lock_file import lock
from denizen.config.plugins import channel_entries, load_entry_point
from denizen.config.settings import Config
from denizen.errors import ConfigError
from denizen.ports.channel import Accept, Channel, ChannelHome, ChannelKind, ChannelLimits, ChannelRefused, Sent
from denizen.ports.queue import OutboundMessage
from denizen.runtime.clock import Clock
from denizen.worlds.chat.ledger import ledger, outbound

RESERVED_NAMES = outbound.POLLED | {ledger.SYSTEM, "cron", "heartbeat", "people"}
"""Channel names that are used internally."""
_CLOSED_RETRY_S = 60.0
_log = logging.getLogger(__name__)


class ClosedChannel:
    """A configured channel that this process can't use, with the reason. Its messages wait in the outbox."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.limits = ChannelLimits()
        self._why = why

    async def receive(self, accept: Accept) -> None:
        raise ChannelRefused(self._why)

    async def send(self, message: OutboundMessage) -> Sent:
        return Sent("later", self._why, retry_after=_CLOSED_RETRY_S)


def load_kind(name: str) -> ChannelKind:
    """Load a kind by name. Raises ConfigError."""
    entries = channel_entries()
    if name not in entries:
        raise ConfigError(f"unknown kind of channel {name!r}; available: {', '.join(entries) or 'none'}.")
    kind = load_entry_point(entries[name], "channel")
    if not isinstance(kind, ChannelKind):
        raise ConfigError(f"{name!r} of {_package(entries[name])} isn't a kind of channel. Update or remove it.")
    return kind


@contextmanager
def reporting_missing_packages(kind: str) -> Generator[None]:
    """If a package of a kind is missing, raise ConfigError with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        entry = channel_entries()[kind]
        how = how_to_install(kind) if _package(entry) == "denizen" else f"reinstall {_package(entry)}"
        raise ConfigError(f"{kind} needs packages that aren't installed ({missing}): {how}") from missing


@contextmanager
def open_channels(config: Config, home: Path, locks: Path | None, clock: Clock) -> Generator[dict[str, Channel]]:
    """Open the configured channels, by name. If one fails, it is a `ClosedChannel`, and the others still work.

    Until the block ends, files in the user's folder `locks` keep other gateways from using the same accounts.
    Workers pass None, because only the gateway opens channels.
    """
    if locks is None:
        yield {name: ClosedChannel(name, "Only the gateway sends.") for name in config.channels}
        return
    with ExitStack() as held:
        channels = dict[str, Channel]()
        for name, settings in config.channels.items():
            try:
                channels[name] = _open_channel(
                    settings, ChannelHome(name, home / "channels" / name, clock), locks, held
                )
            except Exception as error:  # noqa: BLE001 (the boundary to a channel: the others still work)
                why = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
                channels[name] = ClosedChannel(name, why)
        yield channels


def _open_channel(settings: Any, home: ChannelHome, locks: Path, held: ExitStack) -> Channel:
    if home.name in RESERVED_NAMES:
        raise ConfigError(f"A channel can't have the name {home.name}. Choose another, and set `type`.")
    kind_name = kind_of(home.name, settings)
    kind = load_kind(kind_name)
    with reporting_missing_packages(kind_name):
        if account := kind.account(settings):
            private_folder(locks)
            digest = hashlib.sha256(f"{kind_name}:{account}".encode(errors="replace")).hexdigest()[:32]
            busy = f"{kind_name} account {account} is in use by another gateway (process {{holder}}). Stop that first."
            held.callback(os.close, lock(locks / f"{digest}.lock", busy))
        private_folder(home.folder)
        return kind.connect(settings, home)


def kind_of(name: str, settings: Any) -> str:
    """The kind of a configured channel; its settings are a plain table if the kind couldn't be loaded."""
    given = settings.get("type") if isinstance(settings, dict) else settings.type
    return given or name


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
