"""The conformance suite of action formats: tests to subclass."""
# ruff: noqa: S101 - tests assert

from collections.abc import Sequence

import msgspec
import pytest

from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import ActionFormat, ModelRequest, SeenText, Toolset
from denizen.tools.function import tool

PROSE = "There are three lamps in stock; the cheapest is 40 €. Shall I order one?"
ASKED = ModelRequest([UserMessage([Text("Is there a lamp?")])], "You keep the stock.")


@tool(name="stock")
def stock(article: str) -> str:
    """Count the pieces of an article in stock."""
    return article


class ActionFormatConformance:
    """Subclass it in a test module as `TestMyFormat`, with the fixtures `actions` and `acting`."""

    @pytest.fixture
    def actions(self) -> ActionFormat:
        """The format."""
        raise NotImplementedError("give the suite a fixture `actions`")

    @pytest.fixture
    def acting(self) -> AssistantMessage:
        """A reply in the format that calls `stock` for the article `lamp`, and then for the article `sofa`."""
        raise NotImplementedError("give the suite a fixture `acting`")

    @pytest.fixture
    def tools(self) -> Toolset:
        """The tools that are offered."""
        return Toolset([stock])

    def test_reply_means_its_calls_in_order(
        self, actions: ActionFormat, acting: AssistantMessage, tools: Toolset
    ) -> None:
        calls = actions.read(acting, tools).calls
        assert [(call.name, call.args) for call in calls] == [
            ("stock", {"article": "lamp"}),
            ("stock", {"article": "sofa"}),
        ]

    def test_same_reply_always_gives_the_same_distinct_ids(
        self, actions: ActionFormat, acting: AssistantMessage, tools: Toolset
    ) -> None:
        """Results are found by them, also by the process that loads the transcript after a crash."""
        loaded = msgspec.json.decode(msgspec.json.encode(acting), type=AssistantMessage)
        ids = [call.id for call in actions.read(acting, tools).calls]
        assert ids == [call.id for call in actions.read(loaded, tools).calls]
        assert len(set(ids)) == len(ids)
        assert all(ids)

    def test_what_was_seen_changes_only_which_calls_are_quoted(
        self, actions: ActionFormat, acting: AssistantMessage, tools: Toolset
    ) -> None:
        seen = SeenText()
        seen.observe(f"A page says: {acting.text}")
        intent = actions.read(acting, tools, seen)
        assert msgspec.structs.replace(intent, quoted=frozenset()) == actions.read(acting, tools)
        assert intent.quoted <= {call.id for call in intent.calls}

    def test_words_are_the_answer(self, actions: ActionFormat, tools: Toolset) -> None:
        intent = actions.read(AssistantMessage([Text(PROSE)]), tools)
        assert (intent.calls, intent.reply) == ([], PROSE)

    def test_model_learns_of_the_tools_once(self, actions: ActionFormat, tools: Toolset) -> None:
        """By their schemas, or in the prompt where the format says so; the conversation stays as it is."""
        request = actions.prepare(ASKED, tools)
        assert request.messages == ASKED.messages
        assert request.system.startswith(ASKED.system)
        assert ("stock" in request.system.removeprefix(ASKED.system)) == actions.lists_tools
        assert actions.lists_tools or request.tools == tools.schemas
        assert actions.prepare(ASKED, tools) == request

    def test_results_are_reported_in_order(
        self, actions: ActionFormat, acting: AssistantMessage, tools: Toolset
    ) -> None:
        calls = actions.read(acting, tools).calls
        results = [ToolResult(call.id, call.name, [Text(f"{7 + n} pieces")]) for n, call in enumerate(calls)]
        said = _words(actions.report(results))
        assert 0 <= said.find("7 pieces") < said.find("8 pieces")

    def test_results_of_other_formats_stay_as_they_are(self, actions: ActionFormat) -> None:
        others = [ToolResult("elsewhere", "stock", [Text("7 pieces")])]
        assert [*actions.report(others)] == others
        assert [*actions.report([])] == []

    def test_call_is_shown_in_one_line(self, actions: ActionFormat, tools: Toolset) -> None:
        shown = actions.show(ToolCall("1", "stock", {"article": "a lamp\nwith a shade"}), tools)
        assert "stock" in shown
        assert "lamp" in shown
        assert "\n" not in shown

    @pytest.mark.parametrize("size", [1, 7, 10_000])
    def test_what_streams_is_shown_without_the_calls(
        self, actions: ActionFormat, acting: AssistantMessage, tools: Toolset, size: int
    ) -> None:
        """A format without a filter shows everything, and takes calls back when the reply is complete."""
        if actions.stream_filter(tools) is None:
            return
        reply = actions.read(acting, tools).reply
        assert reply.startswith(self._streamed(actions, tools, acting.text, size).strip())
        assert PROSE.startswith(self._streamed(actions, tools, PROSE, size))

    def test_extra_tools_take_no_name_that_is_there(self, actions: ActionFormat, tools: Toolset) -> None:
        extra = [each.name for each in actions.extra_tools([*tools])]
        assert len({*extra, "stock"}) == len(extra) + 1

    @staticmethod
    def _streamed(actions: ActionFormat, tools: Toolset, text: str, size: int) -> str:
        stream = actions.stream_filter(tools)
        assert stream
        return "".join(stream.feed(text[start : start + size]) for start in range(0, len(text), size))


def _words(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)
