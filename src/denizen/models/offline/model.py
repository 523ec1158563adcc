"""The model that is always there: rules instead of a language model, with the same protocol.

Which answer a question asks for is in `rules.toml`, by key words and objects.
"""

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, AssistantPart, StopReason, Text, ToolCall, ToolResult, Usage
from denizen.models.answer_parts import events_of
from denizen.models.offline import code, files, project
from denizen.models.offline.plan import Plan, advance, run
from denizen.models.offline.question import Question, last_said, read_question
from denizen.models.offline.rules import rules
from denizen.ports import Limits, ModelRequest

Answer = Callable[[Question, re.Match[str]], Plan | str]

MAX_CHARS: Final = 400
"""Characters of a question; only what is to be remembered may have more."""
MAX_QUOTED_CHARS: Final = 80
"""Characters of a question that are repeated when it is declined."""
SELF: Final = "I'm Denizen's offline model: rules, not a language model"
NO_SCHEMA: Final = f"{SELF}, so I can't answer in the form that is asked for."


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
        asked, said = last_said(request.messages)
        if said.startswith("<conversation>"):
            yield Failed(ModelError("the offline model can't summarise a conversation", provider="offline"))
            return
        step: str | list[ToolCall]
        plan = NO_SCHEMA if request.output_schema else plan_for(read_question(said))
        if isinstance(plan, str):
            step = plan
        else:  # as far as the results go
            results = {each.sent_id: each for each in request.messages[asked + 1 :] if isinstance(each, ToolResult)}
            mark = hashlib.sha256(f"{asked} {said}".encode(errors="replace")).hexdigest()[:8]
            step = advance(plan, results, {tool.name for tool in request.tools}, f"offline-{mark}")
        content: list[AssistantPart] = [Text(step)] if isinstance(step, str) else [*step]
        stop: StopReason = "end" if isinstance(step, str) else "tool_calls"
        message = AssistantMessage(content, "offline", Usage(cost_usd=0.0), stop)
        for event in events_of(message) if request.stream else ():
            yield event
        yield Finished(message)


def greeting(asked: Question, found: re.Match[str]) -> str:
    """A greeting, and what can be asked."""
    return f"Hello! {SELF}. {rules().help}"


def introduction(asked: Question, found: re.Match[str]) -> str:
    """What can be asked."""
    return f"{SELF}. {rules().help}"


def declined(asked: Question, found: re.Match[str] | None = None) -> str:
    """Decline in the user's own words, and list what can be asked."""
    text = asked.plain(asked.text)
    text = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS].rstrip()} …"
    if not re.search(r"\w", text):
        return f"{SELF}, and there is nothing in that for me to look up. {rules().help}"
    what = f"{text[0].lower()}{text[1:]}" if found else f"answer “{text}”"
    return f"I can't {what}: I'm rules, not a language model. {rules().help}"


def remembered(asked: Question, found: re.Match[str]) -> Plan:
    """Keep what was said, in the user's words."""
    before = r".*?\b(?:remember|memori[sz]e|forget|keep in mind|a note|note)\b(?:\s+(?:down|this|that|of)\b)*[\s:,]*"
    fact = re.sub(before, "", asked.said, count=1, flags=re.IGNORECASE | re.DOTALL)
    result = yield from run("remember", text=fact)
    return f"I'll remember: {fact}\n\n{result}"


def recalled(asked: Question, found: re.Match[str]) -> Plan:
    """What is remembered about something, or the latest."""
    name = asked.name(found["name"])
    about = f" about {name}" if name else ""
    facts = yield from run("recall", query=name)
    return f"What I remember{about}:\n{facts}" if facts.startswith("- ") else f"I remember nothing{about}."


_ANSWERS: Final[Mapping[str, Answer]] = {
    answer.__name__: answer
    for answer in (
        *(greeting, introduction, declined, remembered, recalled),
        *(code.text, code.definition, code.callers, code.callees, code.ranked),
        *(files.listing, files.tests, files.largest, files.located, files.content, files.languages),
        *(project.purpose, project.licence, project.authors, project.dependencies, project.changes, project.status),
        *(project.test_command, project.not_run),
    )
}


def plan_for(asked: Question) -> Plan | str:
    """The plan that produces the answer, or the answer."""
    short = len(asked.text) <= MAX_CHARS
    for name, pattern in rules().answers:
        if (short or name == "remembered") and (found := re.search(pattern, asked.text, re.IGNORECASE)):
            return _ANSWERS[name](asked, found)
    return declined(asked)
