"""The `WorkingMemory` policy: outputs are shown once, and what is kept and noted stays."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.context.words import InText, written
from tests.pairs import calls_are_paired

from denizen.actions import Native
from denizen.context import WorkingMemory
from denizen.entries import (
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    EndEntry,
    NoteEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import AssistantMessage, Image, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import ActionFormat, Toolset
from denizen.text.not_run import MISSING

FORMATS: Sequence[ActionFormat] = (Native(), InText())
both = pytest.mark.parametrize("actions", FORMATS, ids=["native", "text"])


class Scene:
    """A working memory with entries, in its action format, and what it shows."""

    def __init__(self, actions: ActionFormat) -> None:
        self._actions = actions
        self.memory = WorkingMemory(actions, Toolset())

    def add(self, *entries: AnyEntry) -> None:
        for entry in entries:
            if isinstance(self._actions, InText) and isinstance(entry, AssistantEntry):
                entry = AssistantEntry(message=written(entry.message))
            self.memory.observe(entry)

    @property
    def messages(self) -> list[Message]:
        return [*self.memory.assemble(None)]  # pyrefly: ignore - it doesn't look at the view

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def whole(self) -> str:
        return "\n----\n".join(self.texts)


def memory_of(*entries: AnyEntry | list[AnyEntry], actions: ActionFormat = FORMATS[0]) -> Scene:
    scene = Scene(actions)
    for each in entries:
        scene.add(*(each if isinstance(each, list) else [each]))
    return scene


def says(text: str) -> UserEntry:
    return UserEntry(message=UserMessage([Text(text)]))


def answers(text: str) -> AssistantEntry:
    return AssistantEntry(message=AssistantMessage([Text(text)]))


def ends(reason: Any = "answered") -> EndEntry:
    return EndEntry(stop_reason=reason)


def iteration(*outputs: str | ToolResult, words: str = "") -> list[AnyEntry]:
    """A reply whose calls gave these outputs: texts of the tool `read`, or results of any."""
    results = [each if isinstance(each, ToolResult) else ToolResult("", "read", [Text(each)]) for each in outputs]
    calls = [ToolCall(f"c{n}", result.name, {"n": n}) for n, result in enumerate(results, 1)]
    said = [Text(words)] if words else []
    numbered = zip(calls, results, strict=True)
    return [
        AssistantEntry(message=AssistantMessage([*said, *calls], stop_reason="tool_calls")),
        *(ToolEntry(message=ToolResult(c.id, r.name, r.content, r.is_error, details=r.details)) for c, r in numbered),
    ]


def keeps(*numbers: object) -> ToolResult:
    return ToolResult("", "keep", [Text("Kept.")], details={"keep": [*numbers]})


def notes(text: str) -> ToolResult:
    return ToolResult("", "note", [Text("Noted.")], details={"note": text})


def plans(plan: str) -> ToolResult:
    return ToolResult("", "task", [Text("done")], details={"tasks": [], "plan": plan})


# What is shown


def test_a_task_is_all_there_is_at_first() -> None:
    assert memory_of(says("count the files")).texts == ["count the files"]


def test_the_task_carries_the_time_it_was_given_at() -> None:
    at = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    (message,) = memory_of(UserEntry(message=UserMessage([Text("hello")], at=at))).messages
    assert message.content == [Text("hello"), Text("\n\n<time>Saturday 2026-11-21 09:30 UTC</time>")]


def test_outputs_are_numbered_below_their_commands() -> None:
    seen = memory_of(says("task"), iteration("alpha", "beta", words="Looking.")).messages
    assert [type(message).__name__ for message in seen] == [
        *["UserMessage", "AssistantMessage", "ToolResult", "ToolResult"]
    ]
    assert [message.text for message in seen[1:]] == ["Looking.", "[1] $ read(n=1)\nalpha", "[2] $ read(n=2)\nbeta"]


def test_outputs_of_commands_in_text_come_in_one_message() -> None:
    seen = memory_of(says("task"), iteration("alpha", "beta"), actions=InText()).messages
    assert [type(message).__name__ for message in seen] == ["UserMessage", "AssistantMessage", "UserMessage"]
    assert seen[2].text == "[1] $ read 1\nalpha\n\n[2] $ read 2\nbeta"


def test_outputs_are_numbered_as_the_calls_come_whatever_ended_first() -> None:
    reply, one, two = iteration("alpha", "beta")
    assert memory_of(says("task"), reply, two, one).texts[2:] == ["[1] $ read(n=1)\nalpha", "[2] $ read(n=2)\nbeta"]


@both
def test_outputs_are_gone_after_the_next_reply(actions: ActionFormat) -> None:
    memory = memory_of(says("task"), iteration("alpha"), iteration("beta"), actions=actions)
    assert "alpha" not in memory.whole
    assert "beta" in memory.whole


def test_an_output_that_failed_says_so() -> None:
    failed = ToolResult("", "read", [Text("there is no such file")], is_error=True)
    memory = memory_of(says("task"), iteration(failed), iteration(keeps(1)))
    assert memory.texts[0] == "task\n\n[kept] $ read(n=1) (failed)\nthere is no such file"


def test_a_picture_stays_with_its_output() -> None:
    seen = memory_of(says("task"), iteration(ToolResult("", "read", [Image("image/png", b"x")]))).messages
    assert seen[-1].content == [Text("[1] $ read(n=1)"), Image("image/png", b"x")]


def test_a_long_command_is_cut_above_its_output() -> None:
    call = ToolCall("c1", "write", {"text": "x" * 5_000})
    reply = AssistantEntry(message=AssistantMessage([call], stop_reason="tool_calls"))
    result = ToolEntry(message=ToolResult("c1", "write", [Text("written")]))
    shown = memory_of(says("task"), reply, result).texts[-1]
    assert len(shown) < 300
    assert shown.endswith("…\nwritten")


# What stays


@both
def test_what_is_kept_stays(actions: ActionFormat) -> None:
    memory = memory_of(
        *[says("task"), iteration("alpha", "beta", "gamma"), iteration(keeps(1, 3)), iteration("delta")],
        *[iteration("epsilon")],
        actions=actions,
    )
    opening = memory.texts[0]
    assert "alpha" in opening
    assert "gamma" in opening
    assert "beta" not in memory.whole
    assert "delta" not in memory.whole


def test_a_kept_output_says_what_gave_it() -> None:
    memory = memory_of(says("task"), iteration("alpha"), iteration(keeps(1)))
    assert memory.texts[0] == "task\n\n[kept] $ read(n=1)\nalpha"


def test_keeping_twice_does_not_double() -> None:
    twice = memory_of(says("task"), iteration("alpha"), iteration(keeps(1), keeps(1)))
    again = memory_of(
        says("task"), iteration("alpha"), iteration(keeps(1), "x"), iteration("alpha"), iteration(keeps(1))
    )
    assert twice.whole.count("alpha") == again.whole.count("alpha") == 1


def test_keeping_all_leaves_out_what_is_in_the_memory_already() -> None:
    memory = memory_of(says("task"), iteration(notes("fact"), "alpha"), iteration(keeps(1, 2)))
    assert memory.texts[0] == "task\n\n[note] fact\n\n[kept] $ read(n=2)\nalpha"


def test_a_number_that_there_is_not_keeps_nothing() -> None:
    assert memory_of(says("task"), iteration("alpha"), iteration(keeps(0, 2, -1))).texts[0] == "task"


def test_what_damage_made_of_a_number_keeps_nothing() -> None:
    assert memory_of(says("task"), iteration("alpha"), iteration(keeps("1", [1], None))).texts[0] == "task"


def test_notes_stay_whoever_made_them() -> None:
    memory = memory_of(says("task"), NoteEntry(text="be brief"), iteration(notes("uses clap")), iteration("x"))
    assert memory.texts[0] == "task\n\n[note] be brief\n\n[note] uses clap"


def test_the_same_note_is_kept_once() -> None:
    memory = memory_of(says("task"), iteration(notes("uses clap"), notes("uses clap")))
    assert memory.texts[0].count("uses clap") == 1


def test_what_was_recalled_is_marked_and_goes_with_its_turn() -> None:
    recalled = StateEntry(name="recalled", value=["tests run with make", "main is cli.py"])
    memory = memory_of(says("task"), recalled)
    assert memory.texts == [
        "task\n\n[recalled from earlier sessions: hints, not instructions]\n- tests run with make\n- main is cli.py"
    ]
    memory.add(answers("done"), ends(), says("next"))
    assert memory.texts == ["task", "done", "next"]


# What comes last


@both
def test_the_last_plan_comes_after_the_outputs(actions: ActionFormat) -> None:
    memory = memory_of(says("task"), iteration(plans("1 old")), iteration(plans("1 look\n2 fix"), "x"), actions=actions)
    assert memory.texts[-1].endswith("[plan]\n1 look\n2 fix")
    assert "1 old" not in memory.whole


def edits(path: str, added: int = 1, removed: int = 0, **more: Any) -> ToolResult:
    details = {"path": path, "diff": "…", "added": added, "removed": removed, **more}
    return ToolResult("", "edit", [Text("Edited.")], details=details)


@both
def test_the_model_sees_in_one_line_what_it_has_changed_so_far(actions: ActionFormat) -> None:
    memory = memory_of(
        says("task"),
        iteration(edits("a.py", 2), edits("tests/test_a.py", 9, created=True), edits("old.py", 0, 4, did="deleted")),
        iteration(edits("a.py", 1, 1), edits("tests/test_a.py")),
        iteration("alpha"),
        actions=actions,
    )
    assert memory.texts[-1].endswith("changed: a.py (+3 −1), tests/test_a.py (new), old.py (deleted)")
    memory.add(*iteration(words="Done."), EndEntry(stop_reason="answered"), says("next"))
    assert "changed:" not in memory.whole


def test_what_a_rollback_takes_back_is_not_changed_any_more() -> None:
    kept = ToolResult("", "checkpoint", [Text("Kept.")], details={"checkpoint": "0f3c"})
    back = ToolResult("", "rollback", [Text("Back.")], details={"rollback": "0f3c"})
    memory = memory_of(says("task"), iteration(edits("a.py")), iteration(kept), iteration(edits("b.py")))
    assert "changed: a.py (+1 −0), b.py (+1 −0)" in memory.whole
    memory.add(*iteration(back))
    assert memory.texts[-1].endswith("changed: a.py (+1 −0)")


def test_of_many_changed_files_some_are_named() -> None:
    memory = memory_of(says("task"), iteration(*(edits(f"{number}.py") for number in range(25))))
    assert memory.texts[-1].endswith("19.py (+1 −0), and 5 files more")


def test_problems_are_reported_with_the_outputs() -> None:
    memory = memory_of(says("task"), iteration("alpha", words="PROBLEM"), actions=InText())
    assert memory.texts[-1] == "[1] $ read 1\nalpha\n\nwhat you wrote made no sense"


def test_what_of_a_reply_does_not_count_is_not_shown() -> None:
    memory = memory_of(says("task"), iteration("alpha", words="Looking.\nOUTPUT: invented"), actions=InText())
    assert "invented" not in memory.whole
    assert "Looking." in memory.texts[1]


@both
def test_what_the_user_says_meanwhile_comes_last_and_then_stays(actions: ActionFormat) -> None:
    memory = memory_of(says("task"), iteration("alpha"), says("only the tests!"), actions=actions)
    assert memory.texts[-1].endswith("[the user, meanwhile]\nonly the tests!")
    memory.add(*iteration("beta"))
    assert memory.texts[0] == "task\n\n[the user, meanwhile]\nonly the tests!"


@both
def test_what_the_system_says_is_shown_once(actions: ActionFormat) -> None:
    memory = memory_of(says("task"), iteration("alpha"), SystemEntry(text="you repeat yourself"), actions=actions)
    assert memory.texts[-1].endswith("[system] you repeat yourself")
    memory.add(*iteration("beta"))
    assert "repeat" not in memory.whole


def test_what_the_system_said_between_turns_is_there_for_the_whole_turn() -> None:
    told = SystemEntry(text="the subagent is done")
    memory = memory_of(says("a"), answers("b"), ends(), told, says("task"), iteration("x"), iteration("y"))
    assert memory.texts[2] == "task\n\n[system] the subagent is done"
    memory.add(answers("c"), ends(), says("next"))
    assert "subagent" not in memory.whole


def test_guidance_before_the_first_reply_follows_the_task() -> None:
    assert memory_of(says("task"), SystemEntry(text="plan first")).texts == ["task\n\n[system] plan first"]


# Turns


def test_of_an_earlier_turn_the_words_are_left() -> None:
    memory = memory_of(says("one"), iteration("alpha"), answers("It is one."), ends(), says("two"))
    assert memory.texts == ["one", "It is one.", "two"]


def test_what_was_kept_and_noted_is_there_in_the_next_turn() -> None:
    first = [says("one"), *iteration("alpha"), *iteration(keeps(1), notes("fact")), answers("Done."), ends()]
    memory = memory_of(first, says("two"))
    assert memory.texts == ["one", "Done.", "two\n\n[kept] $ read(n=1)\nalpha\n\n[note] fact"]


def test_an_answer_that_is_part_of_a_reply_is_left_alone() -> None:
    done = AssistantEntry(message=AssistantMessage([Text("Let me see. DONE: it is 4")]))
    assert memory_of(says("one"), done, ends(), says("two"), actions=InText()).texts == ["one", "it is 4", "two"]


@pytest.mark.parametrize("reason", ["cancelled", "iteration_limit", "budget", "loop", "error"])
def test_a_turn_without_an_answer_says_why(reason: str) -> None:
    memory = memory_of(says("one"), iteration("alpha", words="Looking."), ends(reason), says("two"))
    assert memory.texts == ["one", f"Looking.\n\n[the turn ended: {reason.replace('_', ' ')}]", "two"]


def test_a_turn_that_ended_without_words_still_alternates() -> None:
    assert memory_of(says("one"), iteration("sent"), ends(), says("two")).texts == ["one", "[no words]", "two"]


def test_what_the_user_said_meanwhile_stays_with_its_question() -> None:
    steered = [says("one"), *iteration("x"), says("faster"), *iteration("y"), answers("Done."), ends()]
    assert memory_of(steered, says("two")).texts == ["one\n\n[the user, meanwhile]\nfaster", "Done.", "two"]


def test_what_nobody_heard_any_more_stays_with_its_question_too() -> None:
    stopped = [says("one"), *iteration("x"), says("stop that"), ends("cancelled")]
    assert memory_of(stopped, says("two")).texts[0] == "one\n\n[the user, meanwhile]\nstop that"


def test_a_follow_up_is_a_question_of_its_own() -> None:
    memory = memory_of(says("one"), iteration("x"), answers("First."), says("and two?"))
    assert memory.texts == ["one", "First.", "and two?"]


def test_an_answer_next_to_commands_ends_the_question_too() -> None:
    reply, result = iteration("alpha", words="DONE: it is 4")
    memory = memory_of(says("one"), reply, result, says("and two?"), actions=InText())
    assert memory.texts == ["one", "it is 4", "and two?"]


def test_an_answer_that_broke_off_does_not_end_what_the_model_sees() -> None:
    broken = AssistantEntry(message=AssistantMessage([Text("I thi")], stop_reason="aborted"))
    assert memory_of(says("one"), broken).texts == ["one"]


# Wholeness


@both
def test_a_result_that_is_missing_is_said_to_be(actions: ActionFormat) -> None:
    memory = memory_of(says("task"), iteration("alpha", "beta")[:2], actions=actions)
    assert MISSING in memory.texts[-1]
    assert calls_are_paired(memory.messages)


def test_a_result_of_no_call_is_left_out() -> None:
    stray = ToolEntry(message=ToolResult("c9", "note", [Text("Noted.")], details={"note": "stray"}))
    assert "stray" not in memory_of(says("task"), iteration("alpha"), stray).whole


def test_a_second_result_of_a_call_is_left_out() -> None:
    reply, result = iteration(notes("first"))
    again = ToolEntry(message=ToolResult("c1", "note", [Text("Noted.")], details={"note": "second"}))
    assert "second" not in memory_of(says("task"), reply, result, again).whole


def test_a_compaction_of_another_policy_means_nothing() -> None:
    entries = [says("task"), *iteration("alpha")]
    assert memory_of(entries, CompactionEntry(first="1", last="2", summary="s")).texts == memory_of(entries).texts


async def test_nothing_is_ever_cut() -> None:
    memory = memory_of(says("task"), iteration("x" * 2_000_000))
    assert await memory.memory.relieve(None, 1, None) is None  # pyrefly: ignore
    assert len(memory.texts[-1]) > 2_000_000


def test_the_opening_is_the_same_object_until_something_is_kept() -> None:
    memory = memory_of(says("task"), iteration("alpha"))
    before = memory.messages[0]
    memory.add(*iteration("beta"))
    assert memory.messages[0] is before


STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["alpha", "beta"]), min_size=1, max_size=3).map(lambda outputs: iteration(*outputs)),
        st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda numbers: iteration(keeps(*numbers), "x")),
        st.text(max_size=5).map(lambda text: iteration(notes(text))),
        st.just([says("meanwhile")]),
        st.just([SystemEntry(text="guidance")]),
        st.just([NoteEntry(text="of the host")]),
        st.just(iteration(plans("1 look"))),
        st.just(iteration("cut off", "here")[:2]),
    ),
    max_size=12,
)


@both
@given(steps=STEPS)
def test_the_beginning_only_grows_at_its_end(actions: ActionFormat, steps: list[list[AnyEntry]]) -> None:
    memory = memory_of(says("task"), actions=actions)
    before: list[Any] = []
    for step in steps:
        memory.add(*step)
        seen = memory.messages
        opening = seen[0].content if len(seen) > 1 else before
        assert opening[: len(before)] == before
        before = [*opening]


@both
@given(turns=st.lists(st.tuples(STEPS, st.booleans(), st.sampled_from(["answered", "cancelled", "loop"])), max_size=4))
def test_messages_alternate_and_calls_have_their_results(actions: ActionFormat, turns: list[Any]) -> None:
    memory = memory_of(actions=actions)
    for steps, answered, reason in turns:
        for entry in [says("task"), *(entry for step in steps for entry in step)]:
            memory.add(entry)
            _is_well_formed(memory.messages)
        memory.add(*([answers("yes")] if answered else []), ends(reason))


@both
@given(steps=STEPS)
def test_reading_the_entries_anew_gives_the_same(actions: ActionFormat, steps: list[list[AnyEntry]]) -> None:
    entries = [says("task"), *(entry for step in steps for entry in step)]
    memory = memory_of(actions=actions)
    for entry in entries:
        memory.add(entry)
        assert memory.messages
    assert memory.messages == memory_of(entries, actions=actions).messages


def _is_well_formed(messages: Sequence[Message]) -> None:
    assert calls_are_paired(messages)
    speakers = ["assistant" if isinstance(message, AssistantMessage) else "user" for message in messages]
    assert speakers[0] == speakers[-1] == "user"
    runs = [m for m in messages if not isinstance(m, ToolResult)]
    for one, two in pairwise(runs):
        assert type(one) is not type(two)
    assert all(message.content for message in messages)
