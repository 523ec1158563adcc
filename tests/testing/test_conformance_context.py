"""Our context policies pass the suite, which fails for each policy that breaks a rule."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from denizen.actions import Native
from denizen.context import RollingWindow, Transcript, WorkingMemory
from denizen.entries import AnyEntry, CompactionEntry, UserEntry
from denizen.messages import Message, Text, ToolResult, UserMessage
from denizen.ports import AskModel, ContextPolicy, Toolset, View, WorldLine
from denizen.testing import ContextPolicyConformance
from denizen.testing.conformance_context import NewContext
from denizen.testing.silent_session import silent_view

SUITE = ContextPolicyConformance


class TestTranscript(SUITE):
    @pytest.fixture
    def new_context(self) -> NewContext:
        return lambda: Transcript(Native(), Toolset())


class TestWorkingMemory(SUITE):
    @pytest.fixture
    def new_context(self) -> NewContext:
        return lambda: WorkingMemory(Native(), Toolset())


class TestRollingWindow(SUITE):
    @pytest.fixture
    def new_context(self) -> NewContext:
        return lambda: RollingWindow(Native(), Toolset())


class Wrong(Transcript):
    def __init__(self) -> None:
        super().__init__(Native(), Toolset())
        self.asked = 0


class CountsQuestions(Wrong):
    def assemble(self, view: View) -> Sequence[Message]:
        self.asked += 1
        return [*super().assemble(view), UserMessage([Text(f"look {self.asked}")])]


class ForgetsTheUser(Wrong):
    def observe(self, item: AnyEntry | WorldLine) -> None:
        if not isinstance(item, UserEntry):
            super().observe(item)


class HidesResults(Wrong):
    def assemble(self, view: View) -> Sequence[Message]:
        return [each for each in super().assemble(view) if not isinstance(each, ToolResult)]


class ReversesResults(Wrong):
    def assemble(self, view: View) -> Sequence[Message]:
        return sorted(super().assemble(view), key=lambda each: isinstance(each, ToolResult))


class ForgetsThePrompt(Wrong):
    def tokens(self, view: View) -> int:
        return 1


class KnowsNoWorlds(Wrong):
    def observe(self, item: AnyEntry | WorldLine) -> None:
        assert not isinstance(item, WorldLine)
        super().observe(item)


class ShrinksAtOnce(Wrong):
    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        entry = await super().relieve(view, level, ask)
        if entry:
            self.observe(entry)
        return entry


class ShrinksNothing(Wrong):
    def observe(self, item: AnyEntry | WorldLine) -> None:
        if not isinstance(item, CompactionEntry):
            super().observe(item)


class CompactsAnything(Wrong):
    def _shrink(self, entry: CompactionEntry) -> None:
        super()._shrink(entry if entry.last in self._ids else CompactionEntry(last=self._ids[-1], summary="gone"))


class SharesResults(Wrong):
    shared: list[Message] = []  # noqa: RUF012 - that is what is wrong

    def assemble(self, view: View) -> Sequence[Message]:
        self.shared.append(UserMessage([Text("another look")]))
        return [*super().assemble(view), *self.shared]


async def relieves(suite: SUITE, new_context: NewContext, view: View) -> None:
    await suite.test_relief_is_an_entry_that_makes_the_context_smaller(new_context, view, 1)


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (CountsQuestions, SUITE.test_what_it_shows_follows_from_the_entries_alone),
        (ForgetsTheUser, SUITE.test_last_message_of_the_user_is_shown),
        (HidesResults, SUITE.test_last_results_are_shown),
        (HidesResults, SUITE.test_each_call_is_followed_by_its_result),
        (ReversesResults, SUITE.test_each_call_is_followed_by_its_result),
        (ForgetsThePrompt, SUITE.test_tokens_count_the_prompt_and_what_is_added),
        (KnowsNoWorlds, SUITE.test_line_of_a_world_may_come_at_any_time),
        (ShrinksAtOnce, relieves),
        (ShrinksNothing, relieves),
        (CompactsAnything, SUITE.test_compaction_of_entries_that_are_not_there_is_ignored),
        (SharesResults, SUITE.test_sessions_know_nothing_of_each_other),
    ],
)
async def test_suite_fails_for_a_policy_that_breaks_the_rule(
    wrong: Callable[[], ContextPolicy], test: Callable[..., Any]
) -> None:
    async def run() -> None:
        if done := test(SUITE(), wrong, silent_view()):
            await done

    with pytest.raises(AssertionError):
        await run()
