"""The `Transcript` policy: the history as it was said, and how it gets smaller."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen import tool
from denizen.actions import Native, Shell
from denizen.context import Transcript
from denizen.context.transcript import OVERSIZED
from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, SystemEntry, ToolEntry, UserEntry
from denizen.errors import ModelError
from denizen.messages import (
    AssistantMessage,
    AssistantPart,
    Document,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from denizen.ports import Limits, Toolset, Traits, View
from denizen.runtime.clock import SystemClock
from denizen.text.documents import document_text
from denizen.text.not_run import MISSING


class Window:
    """A model of which only the window matters here."""

    name = "test:window"

    def __init__(self, window: int = 200_000, *, local: bool = True) -> None:
        self.local = local
        self.asked = 0
        self._window = window

    def limits(self, session_key: str = "") -> Limits:
        self.asked += 1
        return Limits(self._window)

    def stream(self, request: object) -> object:
        raise AssertionError("a context policy calls no model by itself")

    async def close(self) -> None:
        pass


class NoSession:
    key, head, entries, warnings = "k", "", (), ()


def view(window: int = 200_000, usage: Usage | None = None, *, local: bool = True) -> View:
    return View(NoSession(), Window(window, local=local), 1000, 500, usage, SystemClock())  # pyrefly: ignore


def policy_of(entries: Sequence[AnyEntry], *, keep: int = 10) -> Transcript:
    policy = Transcript(Native(), Toolset(), keep=keep)
    for entry in entries:
        policy.observe(entry)
    return policy


def overfull(policy: Transcript, view: View) -> bool:
    return not view.holds(policy.tokens(view))


def user(n: int, text: str = "") -> UserEntry:
    return UserEntry(id=f"u{n}", message=UserMessage([Text(text or f"question {n}")]))


def answer(n: int, usage: Usage | None = None) -> AssistantEntry:
    return AssistantEntry(id=f"a{n}", message=AssistantMessage([Text(f"answer {n}")], usage=usage or Usage()))


def calls(n: int, count: int = 1) -> list[AnyEntry]:
    asked: list[AssistantPart] = [ToolCall(f"c{n}.{i}", "read", {"path": "x"}) for i in range(count)]
    results = [ToolEntry(id=f"t{n}.{i}", message=ToolResult(f"c{n}.{i}", "read", [Text("x")])) for i in range(count)]
    return [AssistantEntry(id=f"a{n}", message=AssistantMessage(asked, stop_reason="tool_calls")), *results]


def history(turns: int) -> list[AnyEntry]:
    entries: list[AnyEntry] = []
    for n in range(turns):
        entries += [user(n), *calls(n), answer(n)]
    return entries


async def summary_of(messages: Sequence[Message], system: str) -> AssistantMessage:
    return AssistantMessage([Text("they talked")])


async def unreachable(messages: Sequence[Message], system: str) -> AssistantMessage:
    raise ModelError("down", kind="timeout")


def test_shows_the_history_as_it_was_said() -> None:
    messages = policy_of([*history(2), user(9)]).assemble(view())
    assert [type(m).__name__ for m in messages] == [
        *["UserMessage", "AssistantMessage", "ToolResult", "AssistantMessage"] * 2,
        "UserMessage",
    ]


def test_a_user_message_carries_the_time_it_was_said_at() -> None:
    at = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    messages = policy_of([UserEntry(id="1", message=UserMessage([Text("hello")], at=at))]).assemble(view())
    assert messages[0].content == [Text("hello"), Text("\n\n<time>Saturday 2026-11-21 09:30 UTC</time>")]


def test_a_system_message_reaches_the_model_as_one_of_the_user() -> None:
    messages = policy_of([SystemEntry(id="1", text="the subagent is done")]).assemble(view())
    assert messages == [UserMessage([Text("[system] the subagent is done")])]


def test_the_beginning_stays_the_same_object_while_the_history_grows() -> None:
    policy = policy_of(history(3))
    before = list(policy.assemble(view()))
    policy.observe(user(7))
    after = policy.assemble(view())
    assert all(a is b for a, b in zip(before, after, strict=False))
    assert len(after) == len(before) + 1


async def test_level_one_leaves_a_summary_and_the_last_ten_messages() -> None:
    policy = policy_of(history(10))
    old = list(policy.assemble(view()))
    entry = await policy.relieve(view(), 1, summary_of)
    assert entry is not None
    policy.observe(entry)
    new = policy.assemble(view())
    assert new[0] == UserMessage([Text("[Conversation summary]\nthey talked")])
    assert list(new[1:]) == old[-(len(new) - 1) :]
    assert (entry.old_count, entry.new_count) == (40, len(new))
    assert 10 <= len(new) - 1 <= 11


async def test_a_summary_covers_what_it_was_made_of_though_the_context_shrank_meanwhile() -> None:
    policy = policy_of(history(10))
    earlier = await policy.relieve(view(), 1, summary_of)
    assert earlier is not None
    policy.assemble(view())

    async def meanwhile(messages: Sequence[Message], system: str) -> AssistantMessage:
        policy.observe(earlier)
        return AssistantMessage([Text("both")])

    entry = await policy.relieve(view(), 1, meanwhile)
    assert entry is not None
    assert (entry.first, entry.last) == (earlier.first, earlier.last)


async def test_a_second_summary_folds_in_the_first() -> None:
    policy = policy_of(history(10))
    first = await policy.relieve(view(), 1, summary_of)
    assert first is not None
    policy.observe(first)
    for entry in history(5):
        policy.observe(entry)
    seen: list[str] = []

    async def record(messages: Sequence[Message], system: str) -> AssistantMessage:
        seen.append(messages[0].text)
        return AssistantMessage([Text("both")])

    second = await policy.relieve(view(), 1, record)
    assert second is not None
    policy.observe(second)
    assert "they talked" in seen[0]
    texts = [message.text for message in policy.assemble(view())]
    assert texts[0].endswith("both")
    assert not any("they talked" in text for text in texts)


async def test_without_a_summary_the_old_messages_are_cut_and_the_model_sees_that() -> None:
    policy = policy_of(history(10))
    entry = await policy.relieve(view(), 1, unreachable)
    assert entry is not None
    assert entry.summary == ""
    policy.observe(entry)
    assert "cut off" in policy.assemble(view())[0].text


async def test_the_text_of_documents_that_were_read_is_summarised() -> None:
    paper = Document("application/pdf", b"%PDF-", "paper.pdf", "The bridge is open.", 1)
    read = ToolEntry(id="t", message=ToolResult("c0.0", "read", [Text("see"), paper]))
    policy = policy_of([user(0), calls(0)[0], read, answer(0), *history(10)])
    asked: list[Message] = []

    async def ask(messages: Sequence[Message], system: str) -> AssistantMessage:
        asked.extend(messages)
        return await summary_of(messages, system)

    await policy.relieve(view(), 1, ask)
    assert "The bridge is open." in asked[0].text


async def test_what_can_not_be_made_smaller_is_left_alone() -> None:
    policy = policy_of(history(1))
    assert await policy.relieve(view(), 1, summary_of) is None
    assert await policy.relieve(view(), 2, summary_of) is None


async def test_level_two_shortens_long_tool_results_and_says_by_how_much() -> None:
    long = ToolEntry(id="t", message=ToolResult("c0.0", "read", [Text("x" * 25_000), Image("image/png", b"p")]))
    policy = policy_of([user(0), calls(0)[0], long])
    entry = await policy.relieve(view(), 2, summary_of)
    assert entry is not None
    policy.observe(entry)
    result = policy.assemble(view())[-1]
    assert result.content == [Text("x" * 20_000), Image("image/png", b"p"), Text("\n[truncated 5000 chars]")]


async def test_level_two_turns_large_documents_into_their_text() -> None:
    paper = Document("application/pdf", b"%PDF-", "paper.pdf", "word " * 6_000, 8)
    page = Document("application/pdf", b"%PDF-", "page.pdf", "A line.", 1)
    read = ToolEntry(id="t", message=ToolResult("c0.0", "read", [Text("see"), page, paper]))
    policy = policy_of([user(0), calls(0)[0], read])
    before = policy.tokens(view())
    entry = await policy.relieve(view(), 2, summary_of)
    assert entry is not None
    policy.observe(entry)
    seen, kept, text, mark = policy.assemble(view())[-1].content
    assert (seen, kept) == (Text("see"), page)
    assert isinstance(text, Text)
    assert text.text.startswith('\n\n<file path="paper.pdf">\n[the text of paper.pdf, 8 pages;')
    assert isinstance(mark, Text)
    assert mark.text.startswith("\n[truncated ")
    assert policy.tokens(view()) < before / 2
    assert await policy.relieve(view(), 2, summary_of) is None


async def test_level_two_turns_documents_of_many_bytes_into_their_text_however_few_their_pages() -> None:
    scan = Document("application/pdf", b"%PDF-".ljust(30_000), "scan.pdf", "A line.", 1)
    policy = policy_of([user(0), calls(0)[0], ToolEntry(id="t", message=ToolResult("c0.0", "read", [scan]))])
    entry = await policy.relieve(view(), 2, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert policy.assemble(view())[-1].content == [Text(document_text(scan))]


async def test_level_two_shortens_each_long_result_that_was_reported_in_words() -> None:
    look = tool(name="look", traits=Traits.READS)(_look)
    policy = Transcript(Shell(), Toolset([look]))
    reply = AssistantMessage([Text("$(look a) $(look b) $(look c)")])
    asked = Shell().read(reply, Toolset([look])).calls
    given = ["x" * 25_000, "short", "y" * 30_000]
    results = [ToolResult(call.id, "look", [Text(text)]) for call, text in zip(asked, given, strict=True)]
    for entry in (user(0), AssistantEntry(id="a", message=reply), *(ToolEntry(id="t", message=r) for r in results)):
        policy.observe(entry)
    entry = await policy.relieve(view(), 2, summary_of)
    assert entry is not None
    policy.observe(entry)
    told = policy.assemble(view())[-1].text
    for kept, cut, letter in ((20_000, 25_000, "x"), (20_000, 30_000, "y")):
        assert cut > told.count(letter) > kept - 30, "the command above it counts, too"
    assert (told.count("\n[truncated "), "short" in told) == (2, True)
    assert await policy.relieve(view(), 2, summary_of) is None


def _look(path: str) -> str:
    """Look."""
    return path


async def test_level_three_leaves_what_fits_of_the_last_messages() -> None:
    policy = policy_of([user(0), answer(0), user(1, "x" * 100_000), user(2, "Are you there?")])
    assert await policy.relieve(view(10_000), 1, summary_of) is None
    assert await policy.relieve(view(10_000), 2, summary_of) is None
    entry = await policy.relieve(view(10_000), 3, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert [message.text for message in policy.assemble(view(10_000))] == [
        "[Conversation summary]\nthey talked" + OVERSIZED,
        "Are you there?",
    ]


@pytest.mark.parametrize(
    "entries",
    [history(3), [user(0), user(1, "x" * 100_000)], [*calls(0), user(0, "x" * 100_000), *calls(1, 3_000)]],
    ids=["all fits", "the last message is too long", "the last results are too many"],
)
async def test_level_three_leaves_alone_what_it_can_not_help(entries: list[AnyEntry]) -> None:
    assert await policy_of(entries).relieve(view(10_000), 3, summary_of) is None


def test_a_compaction_of_entries_that_are_no_longer_ancestors_of_the_head_is_ignored() -> None:
    policy = policy_of([*history(3), CompactionEntry(id="z", first="x1", last="x9", summary="of another branch")])
    assert len(policy.assemble(view())) == 12


def test_a_compaction_that_ends_between_a_call_and_its_result_takes_the_result_too() -> None:
    policy = policy_of([user(0), *calls(5, 2), answer(6), user(7), CompactionEntry(last="a5", summary="They met.")])
    assert [message.text for message in policy.assemble(view())] == [
        "[Conversation summary]\nThey met.",
        "answer 6",
        "question 7",
    ]


async def talkative(messages: Sequence[Message], system: str) -> AssistantMessage:
    return AssistantMessage([Text("first " + "words " * 10_000 + "last")])


async def test_what_level_three_leaves_fits_next_to_the_longest_summary() -> None:
    policy = policy_of([user(number, "x" * 3_500) for number in range(12)])
    entry = await policy.relieve(view(10_000), 3, talkative)
    assert entry is not None
    policy.observe(entry)
    assert len(policy.assemble(view(10_000))) > 2
    assert not overfull(policy, view(10_000))


async def test_a_summary_takes_a_quarter_of_the_window_at_most() -> None:
    entry = await policy_of(history(5)).relieve(view(10_000), 1, talkative)
    assert entry is not None
    assert len(entry.summary) < 7_600
    assert entry.summary.startswith("first ")
    assert "characters left out" in entry.summary
    assert entry.summary.endswith(" last")


async def test_a_compaction_counts_whatever_action_format_the_session_goes_on_with() -> None:
    tools = Toolset([tool(name="look", traits=Traits.READS)(_look)])
    asked = AssistantEntry(id="a", message=AssistantMessage([Text("$(look a)")]))
    [made] = Shell().read(asked.message, tools).calls
    seen = ToolEntry(id="t", message=ToolResult(made.id, "look", [Text("seen")]))
    before: list[AnyEntry] = [user(0), asked, seen]
    writer, reader = Transcript(Shell(), tools, keep=1), Transcript(Native(), tools)
    for entry in (*before, user(1)):
        writer.observe(entry)
    made_smaller = await writer.relieve(view(), 1, summary_of)
    assert made_smaller is not None
    for entry in (*before, user(1), made_smaller):
        reader.observe(entry)
    texts = [message.text for message in reader.assemble(view())]
    assert texts == ["[Conversation summary]\nthey talked", "question 1"]


async def test_a_compacted_history_reads_the_same_after_a_restart() -> None:
    entries = history(10)
    policy = policy_of(entries)
    entry = await policy.relieve(view(), 1, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert policy_of([*entries, entry]).assemble(view()) == policy.assemble(view())


def test_overfull_counts_the_last_calls_usage_and_what_was_added_since() -> None:
    usage = Usage(input=7_000, cache_read=1_000, output=500)
    policy = policy_of([user(0), answer(0, usage)])
    assert not overfull(policy, view(10_000, usage))
    policy.observe(user(1, "x" * 2_500))
    assert overfull(policy, view(10_000, usage))


async def test_a_relieved_context_is_judged_by_estimate_until_the_next_call() -> None:
    usage = Usage(input=9_900, output=5)
    policy = policy_of([*history(10), user(10), answer(10, usage)])
    assert overfull(policy, view(10_000, usage))
    entry = await policy.relieve(view(10_000, usage), 1, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert not overfull(policy, view(10_000, usage))


def test_a_result_that_is_missing_is_said_to_be_before_anything_else() -> None:
    messages = policy_of([user(0), *calls(0, 2)[:2], user(1)]).assemble(view())
    assert [m.text for m in messages if isinstance(m, ToolResult)] == ["x", MISSING]
    assert isinstance(messages[-1], UserMessage)


def test_a_result_whose_call_is_lost_is_left_out() -> None:
    messages = policy_of([user(0), calls(0)[1], user(1)]).assemble(view())
    assert not any(isinstance(message, ToolResult) for message in messages)


def test_what_the_system_says_does_not_part_a_call_from_its_result() -> None:
    said = SystemEntry(id="s", text="meanwhile")
    asked, result = calls(0)
    messages = policy_of([user(0), asked, said, result, user(1)]).assemble(view())
    kinds = [type(message).__name__ for message in messages]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolResult", "UserMessage", "UserMessage"]


async def test_a_result_is_truncated_once() -> None:
    policy = policy_of(
        [user(0), calls(0)[0], ToolEntry(id="t", message=ToolResult("c0.0", "read", [Text("x" * 25_000)]))]
    )
    entry = await policy.relieve(view(), 2, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert await policy.relieve(view(), 2, summary_of) is None


async def test_a_refusal_is_no_summary() -> None:
    async def refuse(messages: Sequence[Message], system: str) -> AssistantMessage:
        return AssistantMessage([Text("I can't")], stop_reason="refusal")

    entry = await policy_of(history(10)).relieve(view(), 1, refuse)
    assert entry is not None
    assert entry.summary == ""


def test_a_short_context_of_a_hosted_model_is_judged_without_looking_the_model_up() -> None:
    hosted = view(local=False)
    assert not overfull(policy_of(history(2)), hosted)
    assert hosted.model.asked == 0  # pyrefly: ignore


@pytest.mark.parametrize("count", [1, 3, 15])
async def test_a_cut_moves_before_calls_whose_results_would_be_parted(count: int) -> None:
    policy = policy_of([*history(6), user(99), *calls(99, count)])
    entry = await policy.relieve(view(), 1, summary_of)
    assert entry is not None
    policy.observe(entry)
    assert _pairs_hold(policy.assemble(view()))


@given(st.lists(st.one_of(st.just("user"), st.just("answer"), st.integers(1, 6)), max_size=40), st.integers(1, 12))
async def test_a_compaction_never_parts_a_call_from_its_result(shape: list[str | int], keep: int) -> None:
    entries: list[AnyEntry] = []
    for n, kind in enumerate(shape):
        entries += [user(n)] if kind == "user" else [answer(n)] if kind == "answer" else calls(n, int(kind))
    policy = policy_of(entries, keep=keep)
    for level, window in ((1, 200_000), (3, 3_000), (1, 200_000), (3, 2_000)):
        entry = await policy.relieve(view(window), level, summary_of)
        if entry:
            policy.observe(entry)
        assert _pairs_hold(policy.assemble(view()))


def _pairs_hold(messages: Sequence[Message]) -> bool:
    asked: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked |= {call.id for call in message.tool_calls}
        elif isinstance(message, ToolResult) and message.call_id not in asked:
            return False
    answered = {message.call_id for message in messages if isinstance(message, ToolResult)}
    return asked == answered


async def test_what_is_too_much_for_one_call_is_summarised_in_batches_that_are_merged() -> None:
    shown: list[str] = []

    async def count(messages: Sequence[Message], system: str) -> AssistantMessage:
        shown.append(messages[0].text)
        return AssistantMessage([Text(f"summary {len(shown)}")])

    long = [user(n, f"question {n} {'x' * 9_000}") for n in range(3)]
    oversized = user(3, "y" * 15_001)
    entry = await policy_of([*long, oversized, *history(5)]).relieve(view(10_000), 1, count)
    assert entry is not None
    assert [[n for n in range(3) if f"question {n} " in text] for text in shown] == [[0], [1], [2], []]
    assert ["summary 1" in text for text in shown] == [False, True, False, False]
    assert "summary 2" in shown[2], "each batch goes on from the summary of those before it"
    assert not any("yyy" in text for text in shown)
    assert entry.summary.startswith("summary 4")
    assert "too long" in entry.summary
