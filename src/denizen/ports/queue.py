"""The queue: what comes in and what goes out, and which turn is next."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import uuid4

import msgspec

from denizen.ports.host import Control, Parked


def _new_id() -> str:
    return uuid4().hex


class InboundMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a person, or the system, wrote to an agent.

    `id` is the same whenever the channel delivers the message again, and unique within the channel. `media` are paths
    or URLs of attachments; `metadata` is further data from the channel, as JSON. `thread` is the id of the thread in a
    room; a thread is a separate chat, so `chat` names both (`ROOM/THREAD`), unless `room` names the room. In a group, a
    message may be `addressed` to the agent or to others. `edit_of` is the id of the message that this one corrects, and
    `sent_at` (aware) when it was written.

    The service vouches for `nothing` if anybody can take the sender's name; for the `sender`; or also for the `chat`:
    that a direct one is the sender's.
    """

    channel: str
    chat: str
    sender: str
    content: str
    session_key: str
    media: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    id: str = msgspec.field(default_factory=_new_id)
    thread: str = ""
    is_group: bool = False
    is_addressed: bool = True
    is_bot: bool = False
    edit_of: str = ""
    sent_at: datetime | None = None
    room: str = ""
    vouched_for: Literal["nothing", "sender", "chat"] = "chat"


class AnswerChoice(msgspec.Struct, frozen=True):
    """An answer to a question: a button's label, and the text that a person can type instead."""

    label: str
    text: str


class OutboundMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something to send to a chat; `id` is its idempotency key, `in_reply_to` the id of the message it answers.

    Without `send` it is only kept for fetching. A question has `choices`; pressing a button arrives as a message with
    the choice's text from that person. `edits` is the native id of the preview that it replaces. `may_be_sent`: the
    outcome of an earlier attempt, not before `tried_at` (aware), is unknown.
    """

    channel: str
    chat: str
    content: str
    session_key: str = ""
    in_reply_to: str = ""
    media: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    id: str = msgspec.field(default_factory=_new_id)
    send: bool = True
    choices: tuple[AnswerChoice, ...] = ()
    edits: str = ""
    may_be_sent: bool = False
    tried_at: datetime | None = None


class ParkedTurn(Parked, frozen=True):
    """A turn that waits for a person: `question` is sent to them, and `until` (aware) is when it goes on without."""

    question: OutboundMessage | None = None
    until: datetime | None = None


class QueuedTurn(Protocol):
    """A message whose turn it is. `attempt` is 1 at first, and more after a crash, a failure or an answer."""

    message: InboundMessage
    attempt: int

    def controls(self) -> Sequence[Control]:
        """The controls that arrived for its session since the last call.

        An `Answer` is handed out again to the next attempt where this one is cancelled or fails.
        """

    async def changed(self) -> None:
        """Return once a control has arrived that `controls` hasn't handed over."""


TurnHandler = Callable[[QueuedTurn], Awaitable[OutboundMessage | InboundMessage | Parked | None]]
"""Runs the turn of a message. `Parked`: the turn waits for a person; else it is over, with a reply, with a message to
another session, or with neither."""


class TurnQueue(Protocol):
    """Messages in order, and the controls that overtake them."""

    async def put(self, message: InboundMessage) -> bool:
        """Accept a message; False: its channel's message of that id was accepted before. On return it is durable."""

    async def control(self, session_key: str, control: Control) -> bool:
        """Hand a control to the session's turn, ahead of all messages: at once to a running or parked turn.

        Where the session has neither a turn nor a message, nothing is left to control, it is dropped, and the answer is
        False.
        """

    async def serve(self, handler: TurnHandler) -> None:
        """Run turns until cancelled: one at a time per session, in the order of its messages; sessions concurrently.

        A reply, a message to another session, and the question of a `ParkedTurn` become durable together with that
        state of the message; one of an id that was there before is the same. After `Parked`, the session's later
        messages wait; an `Answer`, an `Interrupt`, a `Stop` or the time `until` calls the handler again with the same
        message, and `controls` has what was said. So does another `serve` after this one was cancelled or its process
        died: the handler must recognise a turn that has begun. A message whose handler keeps raising is given up after
        some attempts, and the session goes on. Several may serve at once, in one process or in many.
        """
