"""The types that the `/v1` routes share: a client's conversation, and the answer to it."""

from collections.abc import AsyncGenerator, Sequence

import msgspec
from aiohttp import web

from denizen.engine.output import OutputType
from denizen.entries import SystemEntry
from denizen.events import Withdrawn
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage, UserPart
from denizen.ports import Schema

SESSION_HEADER, MESSAGE_HEADER = "Denizen-Session", "Idempotency-Key"
"""The headers that name a session, and a message in it."""
RETRY_HEADER = "X-Stainless-Retry-Count"
"""The header in which official SDKs count how often they have repeated a request."""

ConversationItem = UserMessage | AssistantMessage | ToolResult | SystemEntry


class ConversationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to answer, the client's tools, and the session that it belongs to (empty: none).

    `output` is the form of the answer; None: text. Requests with the same `id` bring the same message. One without it
    that `is_repeated` brings the session's last message, if that is the same and isn't over.
    """

    items: Sequence[ConversationItem]
    tools: Sequence[Schema] = ()
    output: OutputType | None = None
    session: str = ""
    id: str = ""
    is_repeated: bool = False

    @classmethod
    def of(
        cls,
        request: web.Request,
        items: Sequence[ConversationItem],
        tools: Sequence[Schema],
        output: OutputType | None = None,
    ) -> "ConversationRequest":
        """The conversation of a request, with the values of its headers."""
        return cls(
            items=items,
            tools=tools,
            output=output,
            session=request.headers.get(SESSION_HEADER, ""),
            id=request.headers.get(MESSAGE_HEADER, ""),
            is_repeated=request.headers.get(RETRY_HEADER, "0") != "0",
        )


class Thought(msgspec.Struct, frozen=True):
    """A piece of the model's thinking."""

    text: str


class FinalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole text, the thoughts by model call, and the calls that the client is to run.

    `is_cut`: the model's limit ended it.
    """

    text: str
    thoughts: Sequence[str] = ()
    calls: Sequence[ToolCall] = ()
    usage: Usage = Usage()
    is_cut: bool = False


AnswerPieces = AsyncGenerator[str | Thought | Withdrawn | FinalAnswer]
"""Thoughts and text as they arrive, retractions of text, and finally the whole answer."""


def joined_parts(messages: Sequence[UserMessage]) -> list[UserPart]:
    """The parts of several messages as one: the text, then the attachments."""
    text = "\n\n".join(each.text for each in messages)
    attached = [part for each in messages for part in each.content if not isinstance(part, Text)]
    words = [Text(text)] if text or not attached else []
    return [*words, *attached]
