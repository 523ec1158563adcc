"""The answer to a conversation, made from the events of its turn."""

from contextlib import aclosing

from denizen.events import Done, LlmEnd, LlmStream, RunResult, TextDelta, ThinkingDelta, Withdrawn
from denizen.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.conversation import AnswerPieces, ConversationRequest, FinalAnswer, Thought
from denizen.worlds.chat.http.follow import Replayed
from denizen.worlds.chat.http.requests import Refused
from denizen.worlds.chat.http.session_turn import session_events
from denizen.worlds.chat.http.stateless_turn import stateless_events
from denizen.worlds.chat.ledger.reply_options import reply_text


async def answer(gateway: Gateway, request: ConversationRequest) -> AnswerPieces:
    """Answer the end of a conversation. Raises HTTPException for one that can't be answered, or wasn't."""
    callable_tools = {tool.name for tool in request.tools}
    if taken := callable_tools.intersection(tool.name for tool in gateway.agent.record.tools):
        raise Refused(400, f"The agent has its own tools of these names: {', '.join(sorted(taken))}. Rename yours.")
    if not request.items or not isinstance(request.items[-1], UserMessage | ToolResult):
        raise Refused(400, "The last message must be the user's, or the result of a tool.")
    events = session_events(gateway, request) if request.session else stateless_events(gateway, request)
    text, thoughts, is_cut = _StreamedText(), [""], False
    async with aclosing(events):
        async for event in events:
            match event:
                case LlmStream(TextDelta(delta)):
                    if piece := text.add(delta):
                        yield piece
                case LlmStream(ThinkingDelta(delta)):
                    thoughts[-1] += delta
                    yield Thought(delta)
                case LlmEnd(message):
                    thoughts.append("")
                    is_cut = message.stop_reason == "length"
                    text.gap = "\n\n" if text and not is_cut else ""
                case Withdrawn(words):
                    thoughts[-1] = ""
                    text.withdraw(words)
                case Replayed():
                    text.withdraw()
                case Done(result):
                    calls = _calls_to_run(result, callable_tools)
                    closing = "" if calls else _closing_words(result, str(text))
                    if closing and (piece := text.add(closing)):
                        yield piece
                    if surplus := text.take_surplus():
                        yield Withdrawn(surplus)
                    yield FinalAnswer(
                        text=str(text),
                        thoughts=[each for each in thoughts if each],
                        calls=calls,
                        usage=result.usage,
                        is_cut=is_cut,
                    )


class _StreamedText:
    """The text of a turn, for a client that has read some of it and can't forget: text told again must continue it."""

    def __init__(self) -> None:
        self.gap = ""  # goes before the next words
        self._pieces = [""]
        self._surplus = ""  # what the client has read beyond them

    def __str__(self) -> str:
        return "".join(self._pieces)

    def __bool__(self) -> bool:
        return any(self._pieces)

    def add(self, words: str) -> str | Withdrawn:
        """Add words: those that the client hasn't read yet, or a retraction if they differ from what it has read."""
        words, self.gap = self.gap + words, ""
        self._pieces.append(words)
        if not self._surplus:
            return words
        if self._surplus.startswith(words):
            self._surplus = self._surplus.removeprefix(words)
            return ""
        if words.startswith(self._surplus):
            words, self._surplus = words.removeprefix(self._surplus), ""
            return words
        return Withdrawn(self.take_surplus())

    def take_surplus(self) -> str:
        """Text that the client has read and that was withdrawn since; it is returned once."""
        surplus, self._surplus = self._surplus, ""
        return surplus

    def withdraw(self, words: str | None = None) -> None:
        """Remove these last words; None: all."""
        text = str(self)
        kept = "" if words is None else text.removesuffix(words)
        self._pieces, self._surplus, self.gap = [kept], text[len(kept) :] + self._surplus, ""


def _closing_words(result: RunResult, text: str) -> str:
    """Text to add at the end of a turn."""
    if result.stop_reason == "parked":
        return result.error
    words = reply_text(result)
    is_shown = bool(text) if result.stop_reason == "answered" else text.endswith(words)
    return "" if is_shown else words


def _calls_to_run(result: RunResult, callable_tools: set[str]) -> list[ToolCall]:
    """The calls that a parked turn leaves to the client."""
    if result.stop_reason != "parked":
        return []
    done = {message.call_id for message in result.messages if isinstance(message, ToolResult)}
    replies = (message for message in reversed(result.messages) if isinstance(message, AssistantMessage))
    calls = next(replies, AssistantMessage([])).tool_calls
    return [call for call in calls if call.name in callable_tools and call.id not in done]
