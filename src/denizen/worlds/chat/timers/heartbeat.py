"""The heartbeat: at intervals the agent gets HEARTBEAT.md, and reports if there is something to report."""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from functools import partial
from pathlib import Path

from denizen.engine.turn import Cycle, Resume
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, SystemEntry, ToolEntry
from denizen.events import RunResult
from denizen.ports import InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock
from denizen.sessions import SessionKey
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database, sleep_until
from denizen.worlds.chat.ledger.reply_options import ReplyOptions
from denizen.worlds.chat.settings import HeartbeatSettings

BEAT = "denizen.heartbeat"
"""The metadata key of a beat."""
CHANNEL = "heartbeat"
"""The channel of its session, and of beats without a chat to report to."""
OK = "HEARTBEAT_OK"
"""The reply that isn't sent."""
MISSED_AFTER_S = 60.0
"""A beat is skipped if it is late by more seconds than this."""
MAX_FILE_CHARS = 50_000
"""Characters of the file that the agent gets."""
_KEY = str(SessionKey("main", channel=CHANNEL))
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Beats at the multiples of its interval, whenever it was started; reports go to `last_chat`."""

    settings: HeartbeatSettings
    database: Database
    file: Path
    last_chat: Callable[[], tuple[str, str]]
    session_files: SessionFiles
    clock: Clock
    zone: tzinfo | None

    async def run(self) -> None:
        """Beat until cancelled."""
        step = self.settings.minutes * 60.0
        while self.settings.enabled:
            now = self.clock.now().timestamp()
            beat = (now // step + 1) * step
            await sleep_until(beat, self.clock)
            if 0 <= self.clock.now().timestamp() - beat <= MISSED_AFTER_S:
                await self._beat(datetime.fromtimestamp(beat, UTC))

    async def _beat(self, at: datetime) -> None:
        local = at.astimezone(self.zone)
        if not is_active(self.settings.active, local.time()):
            return
        tasks = (await asyncio.to_thread(self.session_files.text, self.file))[:MAX_FILE_CHARS]
        if is_blank(tasks):
            return
        channel, chat = self.last_chat()
        text = (
            f"It is {local:%A, %Y-%m-%d %H:%M %Z}. This is HEARTBEAT.md, your list of recurring tasks:\n\n{tasks}\n\n"
            f"Do what is due. If your user doesn't need to hear of anything, answer {OK} and nothing else: any other "
            "words are sent to them."
        )
        metadata = {BEAT: True, ledger.ORIGIN: ledger.origin_of(_KEY, channel, chat)}
        options = ReplyOptions(history=self.settings.history, enable_summary=False)
        where = (channel, chat) if channel and chat else (CHANNEL, "log")
        message = InboundMessage(*where, CHANNEL, text, _KEY, metadata=metadata, id=f"{CHANNEL}:{at:%Y-%m-%dT%H:%MZ}")
        if await self.database.persist(partial(_put, message=options.put_in(message))):
            self.database.ring()


def start_of(message: InboundMessage, entries: Sequence[AnyEntry]) -> Cycle | Resume:
    """The start of a beat's turn, which may have begun before, as its session's entries show."""
    replied = False
    for entry in reversed(entries):
        if isinstance(entry, SystemEntry) and entry.message_id == message.id:
            return Resume() if replied else Cycle()
        replied = replied or isinstance(entry, AssistantEntry | ToolEntry | EndEntry)
    return Cycle(message.content, message.id)


def reply_of(message: InboundMessage, result: RunResult) -> OutboundMessage | None:
    """The report of a beat's turn; None if all is well, or no chat is known."""
    text = result.reply.strip() or result.error
    if text.strip("*_`.! ") in {"", OK}:
        return None
    if message.channel == CHANNEL:
        _log.info("The heartbeat has no chat to report to. It says: %s", text)
        return None
    return outbound.reply_to(message, text)


def is_blank(text: str) -> bool:
    """Whether a file has headings and comments only."""
    lines = (line.strip() for line in _COMMENT.sub("", text).splitlines())
    return all(not line or line.startswith("#") for line in lines)


def is_active(hours: str, now: time) -> bool:
    """Whether `now` is within hours such as 08:00-22:00, or 22:00-06:00 over midnight; empty: always."""
    if not hours:
        return True
    begin, end = map(time.fromisoformat, hours.split("-"))
    return begin <= now < end if begin < end else now >= begin or now < end


def _put(db: ledger.LedgerConnection, message: InboundMessage) -> bool:
    if ledger.is_busy(db, message.session_key):
        _log.warning("Skipped a heartbeat: the last one hasn't ended.")
        return False
    return ledger.put_run(db, message, f"{CHANNEL}:")
