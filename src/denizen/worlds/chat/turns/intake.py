"""Accepts messages: carries out commands, reads answers to questions, and queues everything else."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec

from denizen.ports import Fetch, InboundMessage, OutboundMessage, Stop
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.worlds.chat.delivery.last_chat import LastChatFile
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.database import LedgerError
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, has_attachments
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.turns import characters, commands
from denizen.worlds.chat.turns.people import sender_of
from denizen.worlds.chat.turns.queue import LedgerQueue
from denizen.worlds.chat.turns.sender_access import SenderAccess
from denizen.worlds.commands import split_command, without_escape
from denizen.worlds.server_prompts import says_prompt
from denizen.worlds.world import AgentHandle

NOTHING_RUNS = "Nothing is running here. `/stop all` also stops subagents in the background."
MAX_KEY_CHARS = 2000
"""Characters of a session's key: an index of PostgreSQL takes no more than 2,704 bytes."""
_log = logging.getLogger(__name__)


class Intake:
    """Accepts the gateway's messages. `last_chat` remembers the chat of the latest."""

    def __init__(
        self,
        agent: AgentHandle,
        outbox: Outbox,
        queue: LedgerQueue,
        last_chat: LastChatFile,
        access: SenderAccess,
    ) -> None:
        self._agent = agent
        self._settings = agent.config.section("gateway", GatewaySettings)
        self._outbox = outbox
        self._database = outbox.database
        self._queue = queue
        self._last_chat = last_chat
        self._access = access
        self._people = access.people

    async def accept(self, message: InboundMessage, fetch: Fetch | None = None) -> bool:
        """Accept a message; False if it was accepted before, or its sender isn't allowed.

        Its files are fetched once it is admitted. Commands that need no turn overtake all messages.
        """
        message = _with_bounded_ids(message)
        if message.channel == ledger.SYSTEM:
            return await self._queue.put(message)
        if not await self._access.admits(message):
            return False
        if fetch:
            message = await fetch(message)
        message = self._people.in_own_session(message)
        if (new := await self._accept_command(message)) is not None:
            return new
        message = msgspec.structs.replace(message, content=without_escape(message.content))
        if self._people.may_hear_heartbeats(message):
            self._last_chat.remember(message)
        waits = has_attachments(message) or says_prompt(self._agent, message.content)
        accepted = await self._queue.accept(message, waits=waits)
        self._outbox.changed(message.session_key)
        if accepted == "waiting" and self._settings.when_busy.get(message.channel) != "interrupt":
            await self._report_question(message)
        return bool(accepted)

    async def _accept_command(self, message: InboundMessage) -> bool | None:
        """Accept a command, or an answer to a question; None: the message is neither."""
        name, words = split_command(message.content)
        if name == "stop":
            reading = questions.Reading(NOTHING_RUNS, message.session_key, Stop())
            return await self._control(message, lambda _: reading, subagents=words.lower() == "all")
        if questions.may_be_answer(message.content):
            may_answer = partial(self._may_answer, message)
            return await self._control(message, partial(questions.read_answer, message=message, may_answer=may_answer))
        if not name:
            return None
        is_owner = self._people.is_owner(message)
        if name == "pair" and is_owner:
            reply = await self._access.pair_command(words)
        else:
            reply = await commands.reply_at_once(self._agent, self._database, message, is_owner=is_owner)
        if reply is not None:
            return await self._control(message, lambda _: questions.Reading(self._agent.record.redact(reply)))
        queued = msgspec.structs.replace(message, metadata={**message.metadata, commands.QUEUED: True})
        if name == "in":
            queued = characters.in_own_session(queued)
        new = bool(await self._queue.accept(queued, waits=True))
        if new and name in commands.ENDS_PARKED:
            stop = partial(ledger.control_parked, session_key=message.session_key, given=[Stop()])
            await self._database.run(stop, message.session_key)
            self._database.ring()
        return new

    async def _control(
        self,
        message: InboundMessage,
        read: Callable[[LedgerConnection], questions.Reading | None],
        *,
        subagents: bool = False,
    ) -> bool | None:
        """Accept a message that controls a turn; None, and nothing is accepted, if `read` finds no meaning in it."""

        def put_command(db: LedgerConnection) -> bool | None:
            reading = read(db)
            if reading is None:
                return None
            key = reading.session_key or message.session_key
            return outbound.put_command(db, message, key, reading.control, reading.reply, subagents=subagents)

        new = await self._database.run(put_command, message.session_key)
        if new is not None:
            self._database.ring()
            self._outbox.added(message)
        return new

    def _may_answer(self, message: InboundMessage, question: OutboundMessage) -> bool:
        answered_by = str(question.metadata.get(questions.ANSWERED_BY, ""))
        is_theirs = self._people.identity(answered_by) == self._people.identity(sender_of(message))
        return is_theirs or self._people.is_owner(message)

    async def _report_question(self, message: InboundMessage) -> None:
        """Tell the chat which question its parked turn waits with; in a group each member once."""
        try:
            may_answer = partial(self._may_answer, message)
            waiting = partial(questions.waiting_text, message=message, may_answer=may_answer)
            text, about = await self._database.read(waiting)
            if text and ReplyOptions.of(message).send_response:
                is_direct = SessionKey.parse(message.session_key).kind == "direct"
                subject = message.id if is_direct else f"{about}:{message.sender}"
                sent = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{subject}:waits")
                await self._outbox.put(sent)
        except LedgerError as error:  # the message itself is accepted
            _log.error("%s", error)


def _with_bounded_ids(message: InboundMessage) -> InboundMessage:
    """The message with an id and a session key that every database takes."""
    key = message.session_key
    if len(key) > MAX_KEY_CHARS:
        key = str(replace(SessionKey.parse(key), peer=hashlib.sha256(key.encode(errors="replace")).hexdigest()))
    return msgspec.structs.replace(message, id=bounded(message.id, questions.MAX_ID_CHARS), session_key=key)
