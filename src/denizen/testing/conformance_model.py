"""The conformance suite of models: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
import pytest

from denizen.errors import ErrorKind, ModelError
from denizen.events import Failed, Finished, StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallEnd
from denizen.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from denizen.ports import KnownModel, ModelRequest, Schema

Line = AssistantMessage | ModelError | None
"""One act of the provider: an answer, a failure with that status and those words, or (None) silence."""


class Play(Protocol):
    """Makes a model whose provider does these things, one per request."""

    def __call__(self, *lines: Line) -> KnownModel: ...


ASKED = ModelRequest([UserMessage([Text("What is in a.py?")], "m1")], "Be brief.", session_key="work")
PLAIN = AssistantMessage([Text("A class and two functions.")], usage=Usage(12, 7))
CALLS = AssistantMessage(
    [
        Thinking("Two files, then.", "c2ln"),
        Text("I will look: ✓"),
        ToolCall("call_1", "read", {"path": "a.py", "lines": [1, 20], "strict": True, "depth": None}),
        ToolCall("call_2", "grep", {}),
    ],
    usage=Usage(100, 20, 30, 40),
    stop_reason="tool_calls",
)
PAPER = Document("application/pdf", b"%PDF-1.7", "paper.pdf", "The bridge is open.", 1)
HISTORY: Sequence[Message] = (
    UserMessage([Text("Look at this"), Image("image/png", b"\x89PNG"), PAPER], "m1"),
    msgspec.structs.replace(CALLS, model="elsewhere:model"),
    ToolResult("call_1", "read", [Text("class A: ..."), Image("image/png", b"\x89PNG"), PAPER]),
    ToolResult("call_2", "grep", [Text("no match")], is_error=True),
    UserMessage([Text("And quickly, please")], "m2"),
    AssistantMessage([Opaque("elsewhere", {"secret": [1, None]}), Text("Yes.")], "elsewhere:model"),
    AssistantMessage([], "elsewhere:model", stop_reason="aborted"),
    UserMessage([Text("Go on")], "m3"),
)
READ = Schema("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
FAILURES: Sequence[tuple[int, str, ErrorKind]] = (
    (401, "The key is wrong", "auth"),
    (402, "Pay first", "billing"),
    (429, "Slow down", "rate_limit"),
    (503, "Try later", "timeout"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", "context_overflow"),
    (400, "There is no such field", "unknown"),
)


@asynccontextmanager
async def opened(model: KnownModel) -> AsyncGenerator[KnownModel]:
    """The model; closed at the end of the block."""
    try:
        yield model
    finally:
        await model.close()


async def events_of(model: KnownModel, request: ModelRequest = ASKED, *, stream: bool = True) -> list[StreamEvent]:
    """All that a call brings."""
    return [event async for event in model.stream(msgspec.structs.replace(request, stream=stream))]


async def answer_of(model: KnownModel, request: ModelRequest = ASKED, *, stream: bool = True) -> AssistantMessage:
    """The message of a call that goes well."""
    *_, last = await events_of(model, request, stream=stream)
    assert isinstance(last, Finished), last
    return last.message


class ModelConformance:
    """Subclass it as `Test…` and fill in the fixture `play`; tests are `async`, for pytest-asyncio's auto mode."""

    @pytest.fixture
    def play(self) -> Play:
        """The factory of the model."""
        raise NotImplementedError

    @pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
    def stream(self, request: pytest.FixtureRequest) -> bool:
        """Whether deltas are asked for."""
        return request.param

    async def test_says_who_it_is(self, play: Play) -> None:
        async with opened(play()) as model:
            assert ":" in model.name
            assert model.local in {True, False}
            assert model.limits().window > 0
            assert model.limits().max_output > 0

    async def test_answers(self, play: Play, *, stream: bool) -> None:
        async with opened(play(PLAIN)) as model:
            answer = await answer_of(model, stream=stream)
        assert answer.content == PLAIN.content
        assert answer.stop_reason == "end"
        assert answer.usage == PLAIN.usage

    async def test_asks_for_tools(self, play: Play, *, stream: bool) -> None:
        request = msgspec.structs.replace(ASKED, tools=(READ,))
        async with opened(play(CALLS)) as model:
            answer = await answer_of(model, request, stream=stream)
        assert answer.tool_calls == CALLS.tool_calls
        assert answer.text == CALLS.text
        assert [part.text for part in answer.content if isinstance(part, Thinking)] == ["Two files, then."]
        assert answer.stop_reason == "tool_calls"
        assert answer.usage in {CALLS.usage, Usage(140, 20, 30)}  # some providers don't count what they cache

    async def test_answer_is_the_same_streamed_or_in_one_piece(self, play: Play) -> None:
        async with opened(play(CALLS, CALLS)) as model:
            assert await answer_of(model, stream=True) == await answer_of(model, stream=False)

    async def test_stream_ends_once_and_its_deltas_are_the_answer(self, play: Play) -> None:
        async with opened(play(CALLS)) as model:
            *events, last = await events_of(model)
        assert isinstance(last, Finished)
        assert not [event for event in events if isinstance(event, Finished | Failed)]
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == CALLS.text
        assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == "Two files, then."
        assert [event.text for event in events if isinstance(event, TextEnd)] == [CALLS.text]
        assert [event.text for event in events if isinstance(event, ThinkingEnd)] == ["Two files, then."]
        assert [event.call for event in events if isinstance(event, ToolCallEnd)] == CALLS.tool_calls

    async def test_call_without_deltas_brings_the_answer_alone(self, play: Play) -> None:
        async with opened(play(CALLS)) as model:
            assert len(await events_of(model, stream=False)) == 1

    async def test_says_that_the_answer_was_too_long(self, play: Play, *, stream: bool) -> None:
        cut = msgspec.structs.replace(PLAIN, stop_reason="length")
        async with opened(play(cut)) as model:
            assert (await answer_of(model, stream=stream)).stop_reason == "length"

    @pytest.mark.parametrize(("status", "sentence", "kind"), FAILURES)
    async def test_failure_is_data(
        self, play: Play, status: int, sentence: str, kind: ErrorKind, *, stream: bool
    ) -> None:
        async with opened(play(ModelError(sentence, status=status, kind=kind))) as model:
            [event] = await events_of(model, stream=stream)
        assert isinstance(event, Failed)
        assert (event.error.kind, event.error.status) == (kind, status)
        assert sentence in event.error.message

    async def test_goes_on_after_a_failure(self, play: Play) -> None:
        async with opened(play(ModelError("Try later", status=503, kind="timeout"), PLAIN)) as model:
            [failed] = await events_of(model)
            assert isinstance(failed, Failed)
            assert (await answer_of(model)).text == PLAIN.text

    async def test_takes_whatever_was_said_before(self, play: Play, *, stream: bool) -> None:
        request = msgspec.structs.replace(ASKED, messages=HISTORY, tools=(READ,))
        async with opened(play(PLAIN, PLAIN)) as model:
            for _ in range(2):
                assert (await answer_of(model, request, stream=stream)).text == PLAIN.text

    async def test_answers_several_at_once(self, play: Play) -> None:
        replies = [AssistantMessage([Text(f"number {number}")]) for number in range(5)]
        async with opened(play(*replies)) as model:
            answers = await asyncio.gather(*(answer_of(model) for _ in replies))
        assert sorted(answer.text for answer in answers) == [reply.text for reply in replies]

    async def test_call_can_be_cancelled(self, play: Play, *, stream: bool) -> None:
        async with opened(play(None)) as model:
            call = asyncio.create_task(answer_of(model, stream=stream))
            await asyncio.wait({call}, timeout=0.05)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    async def test_can_be_closed_again_and_used_again(self, play: Play) -> None:
        async with opened(play(PLAIN, PLAIN)) as model:
            for _ in range(2):
                assert (await answer_of(model)).text == PLAIN.text
                await model.close()
                await model.close()
