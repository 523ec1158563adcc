"""The conformance suite of context policies: tests to subclass."""
# ruff: noqa: S101 - tests assert

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, SystemEntry, ToolEntry, UserEntry
from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import ContextPolicy, View, WorldLine
from denizen.testing.silent_session import silent_view

NewContext = Callable[[], ContextPolicy]


def _turn(turn: int) -> Iterator[AnyEntry]:
    """A question, two calls whose results come in the other order, news meanwhile, a call alone, and the answer."""
    yield UserEntry(message=UserMessage([Text(f"question {turn}")]))
    calls = [ToolCall(f"{turn}-{name}", "look", {"at": name}) for name in "ab"]
    yield AssistantEntry(message=AssistantMessage([Text("Let me look."), *calls], stop_reason="tool_calls"))
    for call in reversed(calls):
        yield ToolEntry(message=ToolResult(call.id, "look", [Text(f"result of {call.id}: " + "x" * 9_000)]))
    yield SystemEntry(text=f"news {turn}")
    alone = ToolCall(f"{turn}-c", "look", {})
    yield AssistantEntry(message=AssistantMessage([alone], stop_reason="tool_calls"))
    yield ToolEntry(message=ToolResult(alone.id, "look", [Text("nothing")], is_error=True))
    yield AssistantEntry(message=AssistantMessage([Text(f"answer {turn}")]))


STORY: Sequence[AnyEntry] = [
    msgspec.structs.replace(entry, id=f"{turn}.{number}")
    for turn in range(4)
    for number, entry in enumerate(_turn(turn))
]
"""Turns whose calls are structured (`Native`)."""

ASKED = [at for at, entry in enumerate(STORY) if isinstance(entry, AssistantEntry)]
"""Before these entries of it the model was asked; never while a call is open."""


class ContextPolicyConformance:
    """Subclass it in a test module as `TestMyContext`, with a fixture `new_context`."""

    @pytest.fixture
    def new_context(self) -> NewContext:
        """The factory of a policy for a session whose action format is `Native`."""
        raise NotImplementedError("give the suite a fixture `new_context`")

    @pytest.fixture
    def view(self) -> View:
        """The view of an empty session."""
        return silent_view()

    def test_what_it_shows_follows_from_the_entries_alone(self, new_context: NewContext, view: View) -> None:
        """It may be asked twice, and after a crash another one is shown the entries without being asked."""
        asked = new_context()
        for number, entry in enumerate(STORY):
            if number in ASKED:
                shown, tokens = [*asked.assemble(view)], asked.tokens(view)
                again = self._after(new_context, STORY[:number])
                assert [*again.assemble(view)] == shown == [*asked.assemble(view)], f"before entry {entry.id}"
                assert again.tokens(view) == tokens
            asked.observe(entry)

    def test_last_message_of_the_user_is_shown(self, new_context: NewContext, view: View) -> None:
        context = new_context()
        for entry in STORY:
            context.observe(entry)
            if isinstance(entry, UserEntry):
                assert entry.message.text in _words(context.assemble(view))

    def test_last_results_are_shown(self, new_context: NewContext, view: View) -> None:
        context, last = new_context(), list[str]()
        for number, entry in enumerate(STORY):
            if number in ASKED:
                shown = _words(context.assemble(view))
                assert all(text in shown for text in last)
                last.clear()
            if isinstance(entry, ToolEntry):
                last.append(entry.message.text)
            context.observe(entry)

    def test_each_call_is_followed_by_its_result(self, new_context: NewContext, view: View) -> None:
        """Also by one for a call whose result a crash took away; providers refuse anything else."""
        context = new_context()
        for number, entry in enumerate(STORY):
            if number in ASKED:
                _check_pairs(context.assemble(view))
            context.observe(entry)
        _check_pairs(self._after(new_context, [each for each in STORY if each.id != "3.3"]).assemble(view))

    def test_tokens_count_the_prompt_and_what_is_added(self, new_context: NewContext, view: View) -> None:
        context = self._after(new_context, STORY)
        before = context.tokens(view)
        assert before >= view.prompt
        context.observe(UserEntry(id="long", message=UserMessage([Text("word " * 1_000)])))
        assert context.tokens(view) > before + 500

    def test_line_of_a_world_may_come_at_any_time(self, new_context: NewContext, view: View) -> None:
        context = new_context()
        for entry in STORY:
            context.observe(WorldLine("A door opens.", datetime(2026, 1, 1, tzinfo=UTC)))
            context.observe(entry)
        assert context.assemble(view)

    @pytest.mark.parametrize("level", [1, 2, 3])
    async def test_relief_is_an_entry_that_makes_the_context_smaller(
        self, new_context: NewContext, view: View, level: int
    ) -> None:
        """Nothing changes before the entry is observed: it may come to nothing."""
        context = self._after(new_context, STORY)
        shown, tokens = [*context.assemble(view)], context.tokens(view)
        entry = await context.relieve(view, level, _summary)
        assert [*context.assemble(view)] == shown
        if entry is None:
            return
        entry = msgspec.structs.replace(entry, id="relief")
        context.observe(entry)
        assert context.tokens(view) < tokens
        _check_pairs(context.assemble(view))
        again = self._after(new_context, [*STORY, entry])
        assert [*again.assemble(view)] == [*context.assemble(view)]

    def test_compaction_of_entries_that_are_not_there_is_ignored(self, new_context: NewContext, view: View) -> None:
        context = self._after(new_context, STORY)
        shown = [*context.assemble(view)]
        context.observe(CompactionEntry(id="late", first="elsewhere", last="elsewhere", summary="another branch"))
        assert [*context.assemble(view)] == shown

    def test_sessions_know_nothing_of_each_other(self, new_context: NewContext, view: View) -> None:
        first = [*self._after(new_context, STORY[:1]).assemble(view)]
        self._after(new_context, STORY).assemble(view)
        assert [*self._after(new_context, STORY[:1]).assemble(view)] == first

    @staticmethod
    def _after(new_context: NewContext, entries: Sequence[AnyEntry]) -> ContextPolicy:
        context = new_context()
        for entry in entries:
            context.observe(entry)
        return context


async def _summary(messages: Sequence[Message], system: str) -> AssistantMessage:
    return AssistantMessage([Text("They looked around.")])


def _words(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)


def _check_pairs(messages: Sequence[Message]) -> None:
    """Results come right after the message with their calls, one for each, in order; there are no others."""
    awaited: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            assert awaited, f"the result of {message.call_id} follows no call"
            assert message.call_id == awaited.pop(0)
        else:
            assert not awaited, f"no result of {awaited}"
            awaited = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    assert not awaited, f"no result of {awaited}"
