"""The model that is always there: rules instead of a language model, with the same protocol."""

import hashlib
import re
from collections.abc import AsyncGenerator

import msgspec

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent, TextDelta, TextEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.models.offline.intents import SELF, plan_for
from denizen.models.offline.plan import advance
from denizen.models.offline.question import last_asked, read_question, words_of
from denizen.ports import Limits, ModelRequest

NO_SCHEMA = f"{SELF}, so I can't answer in the form that is asked for."


class OfflineModel:
    """Answers questions about the workspace by real tool calls, and says plainly what it can't do.

    It is stateless: each call reads the user's last message and the results after it, and goes on from there. So the
    same messages always bring the same answer, with the same call ids.
    """

    name = "offline"
    local = True

    def limits(self, session_key: str = "") -> Limits:
        """It only reads what came after the last question, so no history is too long."""
        return Limits(window=100_000_000)

    async def close(self) -> None:
        """Nothing to release."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """The tool calls that the answer needs next, or the answer; also as deltas if the request asks for them."""
        asked = last_asked(request.messages)
        question = request.messages[asked] if asked >= 0 else UserMessage([])
        said = words_of(question) if isinstance(question, UserMessage) else ""
        if said.startswith("<conversation>"):
            yield Failed(ModelError("the offline model can't summarise a conversation", provider="offline"))
            return
        step = NO_SCHEMA if request.output_schema else _next_step(request, asked, said)
        content, stop = ([Text(step)], "end") if isinstance(step, str) else (step, "tool_calls")
        for part in content if request.stream else ():
            if isinstance(part, Text):
                for word in re.findall(r"\S+\s*|\s+", part.text):
                    yield TextDelta(word)
                yield TextEnd(part.text)
            else:
                yield ToolCallDelta(part.id, part.name, msgspec.json.encode(part.args).decode())
                yield ToolCallEnd(part)
        yield Finished(AssistantMessage([*content], "offline", Usage(cost_usd=0.0), stop))


def _next_step(request: ModelRequest, asked: int, said: str) -> str | list[ToolCall]:
    """The calls needed next, or the answer."""
    plan = plan_for(read_question(said))
    if isinstance(plan, str):
        return plan
    results = {each.call_id: each for each in request.messages[asked + 1 :] if isinstance(each, ToolResult)}
    mark = hashlib.sha256(f"{asked} {said}".encode(errors="replace")).hexdigest()[:8]
    return advance(plan, results, {tool.name for tool in request.tools}, f"offline-{mark}")
