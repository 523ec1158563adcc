"""What real providers sent is read as their own SDKs read it, over real HTTP, however the bytes are cut."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.calls import answer, call, failure
from tests.models.recordings import Recording, golden_of, recordings, told

from denizen.errors import ErrorKind
from denizen.events import Failed, Finished, Retrying, StreamEvent, TextDelta, ThinkingDelta
from denizen.messages import Thinking
from denizen.ports import ModelRequest
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI, Step, split
from denizen.testing.loopback import LoopbackServer

ALL = recordings()
SPLICED = "vercel-ai/anthropic_spliced-message-start.json"
SEVERAL = {  # recorded as one, but a response each: how many, and which of them are answers
    "vercel-ai/anthropic_anthropic-programmatic-tool-calling.1.json": 15,
    "vercel-ai/anthropic_anthropic-tool-search-deferred-bm25.json": 3,
}
ANSWERS = [each for each in ALL if each.golden and each.file not in {SPLICED, *SEVERAL}]
REQUEST = ModelRequest([], stream=True)


class Servers:
    """A server for each wire format, shared by the tests here."""

    def __init__(self, anthropic: LoopbackAnthropic, openai: LoopbackOpenAI) -> None:
        self._anthropic = anthropic
        self._openai = openai

    def speaking(self, api: str) -> LoopbackServer:
        return self._anthropic if api == "anthropic-messages" else self._openai

    async def replay(self, recording: Recording, *steps: bytes | Step) -> list[StreamEvent]:
        """The events that a client makes of these bytes."""
        server = self.speaking(recording.api)
        server.send(*steps, content_type=recording.response["headers"].get("content-type", "text/event-stream"))
        return await call(recording.model_at(server.base_url), REQUEST)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with LoopbackAnthropic() as anthropic, LoopbackOpenAI() as openai:
        yield Servers(anthropic, openai)


def test_nothing_recorded_is_left_out() -> None:
    streams = [each for each in ALL if each.status == 200]
    assert len(ANSWERS) == 239
    assert len(streams) == len(ANSWERS) + 1 + len(SEVERAL) + 1  # the last: a stream that fails


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
async def test_recorded_stream_gives_the_golden_message(recording: Recording, servers: Servers) -> None:
    expected = golden_of(recording)
    events = await servers.replay(recording, recording.body)
    message = answer(events)
    assert told(message, recording) == expected
    assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == message.text
    thoughts = "".join(part.text for part in message.content if isinstance(part, Thinking))
    assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == thoughts
    assert told(answer(await servers.replay(recording, *split(recording.body, 997, 1, 61, 3))), recording) == expected


SHORT = [each for each in ANSWERS if len(each.body) < 5000]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recording=st.sampled_from(SHORT), sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6))
async def test_cut_anywhere_a_stream_gives_the_same_message(
    recording: Recording, sizes: list[int], servers: Servers
) -> None:
    assert told(answer(await servers.replay(recording, *split(recording.body, *sizes))), recording) == golden_of(
        recording
    )


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recording=st.sampled_from(ANSWERS), share=st.floats(0, 1, exclude_max=True), broken=st.booleans())
async def test_stream_that_ends_early_is_a_failure_and_never_a_shorter_answer(
    recording: Recording, share: float, servers: Servers, *, broken: bool
) -> None:
    kept = recording.body[: int(len(recording.body) * share)]
    events = await servers.replay(recording, kept, *([Step.HANG_UP] if broken else []))
    if isinstance(events[-1], Finished):  # only what follows the answer was cut off: what it cost, or the end's mark
        assert told(events[-1].message, recording)["parts"] == golden_of(recording)["parts"]
    else:
        assert failure(events).kind == "timeout"
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])


@pytest.mark.parametrize("recording", [each for each in ALL if each.file in SEVERAL], ids=str)
async def test_only_the_first_of_several_responses_is_the_answer(recording: Recording, servers: Servers) -> None:
    starts = recording.body.split(b"event: message_start")[1:]
    responses = [b"event: message_start" + start for start in starts]
    assert len(responses) == SEVERAL[recording.file]
    answers = [answer(await servers.replay(recording, response)) for response in responses]
    assert [message.stop_reason for message in answers] == ["tool_calls"] * (len(answers) - 1) + ["end"]
    assert all(message.tool_calls for message in answers[:-1])
    assert answer(await servers.replay(recording, recording.body)) == answers[0]


async def test_answer_that_a_gateway_began_anew_is_the_second_one_alone(servers: Servers) -> None:
    recording = next(each for each in ALL if each.file == SPLICED)
    events = await servers.replay(recording, recording.body)
    message = answer(events)
    assert [call.id for call in message.tool_calls] == ["toolu_second"]
    assert message.tool_calls[0].args == {"value": "Sparkle Day"}
    assert message.content[0] == Thinking("Let me call the tool.", "sig-second")
    assert any(isinstance(event, Retrying) for event in events)


async def test_recorded_failure_inside_a_stream(servers: Servers) -> None:
    [recording] = [each for each in ALL if each.status == 200 and each.golden is None]
    error = failure(await servers.replay(recording, recording.body))
    assert (error.kind, error.status) == ("unknown", 400)
    assert error.message == f"openrouter:{recording.model}: Token limit reached (HTTP 400)"


FAILURES: dict[str, tuple[ErrorKind, str]] = {
    "pydantic-ai/tests_models_cassettes_test_anthropic_test_anthropic_explicit_effort_xhigh_unsupported_model_errors": (
        "unknown",
        "This model does not support effort level 'xhigh'",
    ),
    "pydantic-ai/tests_models_cassettes_test_groq_test_tool_regular_error": (
        "unknown",
        "`non-existent` does not exist",
    ),
    "pydantic-ai/tests_models_cassettes_test_multimodal_tool_returns_": ("unknown", "Invalid 'messages[3]'"),
    "pydantic-ai/tests_models_cassettes_test_openai_test_openai_web_search_tool_model_not_supported": (
        "unknown",
        "Web search options not supported",
    ),
    "pydantic-ai/tests_models_cassettes_test_openrouter_test_openrouter_errors_raised": (
        "rate_limit",
        "temporarily rate-limited upstream",
    ),
    "ruby_llm/spec_fixtures_vcr_cassettes_chat_error_handling_with_azure_": ("auth", "invalid subscription key"),
    "ruby_llm/spec_fixtures_vcr_cassettes_chat_error_handling_with_openrouter_": (
        "auth",
        "Missing Authentication header",
    ),
    "ruby_llm/spec_fixtures_vcr_cassettes_chat_error_handling_with_perplexity_": ("auth", "Invalid API key provided"),
    "ruby_llm/spec_fixtures_vcr_cassettes_chat_real_error_scenarios_deepseek_": (
        "context_overflow",
        "maximum context length is 1048565 tokens",
    ),
    "ruby_llm/spec_fixtures_vcr_cassettes_chat_real_error_scenarios_perplexity_": (
        "context_overflow",
        "The total length of all messages is too long",
    ),
}


@pytest.mark.parametrize("recording", [each for each in ALL if each.status != 200], ids=str)
async def test_recorded_refusal_is_understood(recording: Recording, servers: Servers) -> None:
    kind, words = next(told for start, told in FAILURES.items() if recording.file.startswith(start))
    server = servers.speaking(recording.api)
    server.fail(recording.status, recording.body)
    error = failure(await call(recording.model_at(server.base_url), REQUEST))
    assert (error.kind, error.status, error.provider) == (kind, recording.status, recording.provider.name)
    assert words in error.message
    assert error.message.startswith(f"{recording.provider.name}:")
