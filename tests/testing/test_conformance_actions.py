"""Our action formats pass the suite, which fails for each format that breaks a rule."""

import itertools
from collections.abc import Callable, Sequence

import msgspec
import pytest

from denizen.actions import Composed, Directives, Native, Shell
from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import NOTHING_SEEN, ActionFormat, Intent, ModelRequest, SeenText, Tool, Toolset
from denizen.testing import ActionFormatConformance
from denizen.testing.conformance_actions import stock

SUITE = ActionFormatConformance

CALLS = AssistantMessage([Text("Let me see."), *(ToolCall(f"c{n}", "stock", {"article": n}) for n in ("lamp", "sofa"))])
COMMANDS = AssistantMessage([Text("Let me see.\n$(stock lamp)\n$(stock sofa)")])
RECOVERED = AssistantMessage(
    [
        Text(
            "".join(
                f'<tool_call>{{"name": "stock", "arguments": {{"article": "{n}"}}}}</tool_call>'
                for n in ("lamp", "sofa")
            )
        )
    ]
)


class TestNative(SUITE):
    @pytest.fixture
    def actions(self) -> ActionFormat:
        return Native()

    @pytest.fixture(params=[CALLS, RECOVERED], ids=["structured", "text"])
    def acting(self, request: pytest.FixtureRequest) -> AssistantMessage:
        return request.param


class TestShell(SUITE):
    @pytest.fixture
    def actions(self) -> ActionFormat:
        return Shell()

    @pytest.fixture(params=[COMMANDS, CALLS], ids=["commands", "structured"])
    def acting(self, request: pytest.FixtureRequest) -> AssistantMessage:
        return request.param


class TestComposed(SUITE):
    @pytest.fixture(params=[(Native, Shell), (Shell, Native)], ids=["native first", "shell first"])
    def actions(self, request: pytest.FixtureRequest) -> ActionFormat:
        return Composed(*(each() for each in request.param))

    @pytest.fixture(params=[COMMANDS, CALLS], ids=["commands", "structured"])
    def acting(self, request: pytest.FixtureRequest) -> AssistantMessage:
        return request.param


class TestDirectives(SUITE):
    @pytest.fixture(params=["alone", "composed"])
    def actions(self, request: pytest.FixtureRequest) -> ActionFormat:
        directives = Directives("stock", "article")
        return directives if request.param == "alone" else Composed(Native(), directives)

    @pytest.fixture
    def acting(self) -> AssistantMessage:
        return AssistantMessage([Text("Let me see.\nSCRIPT: lamp | sofa")])


def change(intent: Intent, *, ids: Callable[[ToolCall], str]) -> Intent:
    calls = [msgspec.structs.replace(call, id=ids(call)) for call in intent.calls]
    return msgspec.structs.replace(intent, calls=calls)


class ReversesCalls(Shell):
    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        intent = super().read(message, tools, seen)
        return msgspec.structs.replace(intent, calls=[*reversed(intent.calls)])


class CountsIds(Shell):
    numbers = itertools.count()

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        return change(super().read(message, tools, seen), ids=lambda call: str(next(self.numbers)))


class GivesOneId(Shell):
    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        return change(super().read(message, tools, seen), ids=lambda call: "call")


class DropsQuotations(Shell):
    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        intent = super().read(message, tools, seen)
        return msgspec.structs.replace(intent, calls=[each for each in intent.calls if each.id not in intent.quoted])


class Shouts(Shell):
    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        intent = super().read(message, tools, seen)
        return msgspec.structs.replace(intent, reply=intent.reply.upper())


class HidesTheTools(Shell):
    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        return request


class AddsToTheConversation(Shell):
    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        said = [*request.messages, UserMessage([Text("Use the tools.")])]
        return super().prepare(msgspec.structs.replace(request, messages=said), tools)


class ReportsTheFirst(Shell):
    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        return super().report(results[:1])


class TakesAllResults(Shell):
    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        return [UserMessage([Text(result.text) for result in results])]


class ShowsJson(Shell):
    def show(self, call: ToolCall, tools: Toolset) -> str:
        return msgspec.json.format(msgspec.json.encode(call)).decode()


class ShowsCalls(Shell):
    def stream_filter(self, tools: Toolset) -> "ShowsCalls":
        return self

    def feed(self, piece: str) -> str:
        return piece


class BringsTwice(Shell):
    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [stock]


@pytest.mark.parametrize(
    ("wrong", "test", "given"),
    [
        (ReversesCalls, SUITE.test_reply_means_its_calls_in_order, "acting tools"),
        (CountsIds, SUITE.test_same_reply_always_gives_the_same_distinct_ids, "acting tools"),
        (GivesOneId, SUITE.test_same_reply_always_gives_the_same_distinct_ids, "acting tools"),
        (DropsQuotations, SUITE.test_what_was_seen_changes_only_which_calls_are_quoted, "acting tools"),
        (Shouts, SUITE.test_words_are_the_answer, "tools"),
        (HidesTheTools, SUITE.test_model_learns_of_the_tools_once, "tools"),
        (AddsToTheConversation, SUITE.test_model_learns_of_the_tools_once, "tools"),
        (ReportsTheFirst, SUITE.test_results_are_reported_in_order, "acting tools"),
        (TakesAllResults, SUITE.test_results_of_other_formats_stay_as_they_are, ""),
        (ShowsJson, SUITE.test_call_is_shown_in_one_line, "tools"),
        (ShowsCalls, SUITE.test_what_streams_is_shown_without_the_calls, "acting tools size"),
        (BringsTwice, SUITE.test_extra_tools_take_no_name_that_is_there, "tools"),
    ],
)
def test_suite_fails_for_a_format_that_breaks_the_rule(
    wrong: Callable[[], ActionFormat], test: Callable[..., None], given: str
) -> None:
    fixtures = {"acting": COMMANDS, "tools": Toolset([stock]), "size": 7}
    with pytest.raises(AssertionError):
        test(SUITE(), wrong(), *(fixtures[name] for name in given.split()))
