"""`message`: the tool that sends to a chat while the turn goes on."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from denizen.engine.session_state import InSight
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, UserEntry
from denizen.errors import ToolRefused
from denizen.events import RunResult
from denizen.messages import ToolResult, UserMessage
from denizen.ports import OutboundMessage, Tool, ToolContext, Traits
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import ledger, outbound

NAME, ANSWERS = "message", "answers"
_TRAITS = Traits.SENDS | Traits.REPEATABLE  # a call that runs again after a crash has the same id


def message_tool(outbox: Outbox) -> Tool:
    """The tool; its messages go to this outbox."""

    def is_to_own_chat(args: dict[str, Any], own: tuple[str, str]) -> bool:
        return (args.get("channel") or own[0], args.get("chat") or own[1]) == own

    @tool(name=NAME, traits=_TRAITS, replies=is_to_own_chat)
    async def message(
        turn: ToolContext, text: str, channel: str = "", chat: str = "", media: list[str] | None = None
    ) -> ToolResult:
        """Send a message to the chat that you answer, or to another one. Sent to your own, it is your reply: your last
        words are then not sent.

        Args:
            channel: Default: your own
            chat: Default: your own
            media: Files of the workspace
        """
        channel, chat = channel or turn.channel, chat or turn.chat
        if not (channel and chat):
            raise ToolRefused("this turn has no chat; name `channel` and `chat`")
        _check_channel(outbox, channel, has_media=bool(media))
        is_own = (channel, chat) == (turn.channel, turn.chat)
        heard, reply = _place(turn.entries)
        sent = OutboundMessage(
            channel,
            chat,
            text,
            turn.session_key,
            heard[0] if is_own and heard else "",
            media=tuple(_path(turn, path) for path in media or ()),
            metadata={
                ledger.ORIGIN: ledger.origin_of(turn.session_key, turn.channel, turn.chat),
                ledger.IN_SIGHT: msgspec.to_builtins(InSight.of(turn.in_sight)),
                **({outbound.ALSO: heard[1:]} if is_own and heard[1:] else {}),
            },
            id=f"{turn.session_key}:{reply}:{turn.call_id}",
        )
        await outbox.put(sent)
        return result(f"Queued for {channel}:{chat}.", **{ANSWERS: is_own})

    return message


def has_answered(turn: RunResult) -> bool:
    """Whether the turn was answered, and its last words to its chat were sent by the tool."""
    since = takewhile(lambda each: not isinstance(each, UserMessage), reversed(turn.messages))
    sent = (each for each in since if isinstance(each, ToolResult) and each.name == NAME and not each.is_error)
    return turn.stop_reason == "answered" and any((each.details or {}).get(ANSWERS) is True for each in sent)


def _check_channel(outbox: Outbox, name: str, *, has_media: bool) -> None:
    """Raises ToolRefused for a channel that isn't connected, or doesn't take media."""
    channel = outbox.channels.get(name)
    if channel is None and name not in outbound.POLLED:
        raise ToolRefused(
            f"no channel {name!r} is connected; available: {', '.join([*outbox.channels, *outbound.POLLED])}"
        )
    if has_media and not (channel and channel.limits.media_out):
        raise ToolRefused(f"{name} takes text only; send it without media, and say where the files are")


def _path(turn: ToolContext, path: str) -> str:
    """The absolute path of a file that may be sent. Raises ToolRefused."""
    with Workspace.of(turn).at(path) as place, place.open():
        return f"/{'/'.join(place.names)}"


def _place(entries: Sequence[AnyEntry]) -> tuple[list[str], str]:
    """The ids of the messages that the turn has heard, and of the entry of the reply that makes the call."""
    heard, reply = list[str](), ""
    for entry in reversed(entries):
        match entry:
            case EndEntry():
                break
            case AssistantEntry() if not reply:
                reply = entry.id
            case UserEntry():
                heard.insert(0, entry.message.id)
    return heard, reply
