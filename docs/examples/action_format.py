"""An action format: calls as JSON between fences, for models that know nothing of tools."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from denizen import Agent, run_agent_sync, tool
from denizen.context import Transcript
from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import MISUSED, NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset
from denizen.testing import ScriptedModel
from denizen.worlds.world import Profile

CALL = re.compile(r"^~~~call (\w+)\n(.*?)\n~~~$", re.MULTILINE | re.DOTALL)
OWN = "fenced-"
"""What the ids of its calls begin with."""


class Fenced:
    """The model writes `~~~call NAME`, the arguments as JSON, and `~~~`; results come back as text."""

    name = "fenced"
    lists_tools = True

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """None."""
        return ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools in its prompt."""
        listed = "\n".join(f"{s.name}: {s.description} {json.dumps(s.parameters)}" for s in tools.schemas)
        grammar = f"To use a tool write\n~~~call NAME\n{{JSON arguments}}\n~~~\nThe tools:\n{listed}"
        return msgspec.structs.replace(request, system=f"{request.system}\n\n{grammar}")

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """The calls in the text, and the text without them; always with the same ids, as it is read more than once."""
        found = [*CALL.finditer(message.text)]
        calls = [ToolCall(f"{OWN}{number}", call[1], arguments(call[2])) for number, call in enumerate(found, 1)]
        quoted = {call.id for call, written in zip(calls, found, strict=True) if seen.quotes(written[0])}
        return Intent(calls, CALL.sub("", message.text).strip(), quoted=quoted)

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        """All that streams is shown; what turns out to be a call is taken back."""
        return None

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results of its own calls as a message of the user; those of another format as they are."""
        own: list[UserPart] = [Text(f"{each.name}: {each.text}") for each in results if each.call_id.startswith(OWN)]
        others = [each for each in results if not each.call_id.startswith(OWN)]
        return [*others, UserMessage(own)] if own else others

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call in a line."""
        return f"{call.name} {json.dumps(call.args)}"


def arguments(text: str) -> dict[str, Any]:
    """What a call says; the model reads why one can't be read."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as wrong:
        return {MISUSED: f"the arguments must be a JSON object: {wrong}"}


FENCED = Profile("fenced", Fenced(), Transcript)


@tool
def price(article: str) -> str:
    """What an article costs."""
    return {"lamp": "40 €"}.get(article, "not known")


if __name__ == "__main__":
    model = ScriptedModel(['Let me see.\n~~~call price\n{"article": "lamp"}\n~~~', "A lamp costs 40 €."])
    agent = Agent(profile=FENCED, tools=[price], model=model)
    print(run_agent_sync("What does a lamp cost?", agent=agent).reply)
    print(model.requests[1].messages[-1].text)
