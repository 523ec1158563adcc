"""Fail-over with real HTTP on loopback: profiles, cool-downs, retries and fall-back models."""

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.models.calls import answer, failure

from denizen.errors import ErrorKind, ModelError
from denizen.events import Failed, Finished, Retrying, StreamEvent, TextDelta
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.failover import MAX_REST_WAIT_BEFORE_FALLBACK_S, MAX_REST_WAIT_S, MAX_SESSIONS, STICKY_S, Failover
from denizen.models.http import Http
from denizen.models.profiles import PROFILE_REST, Candidate, ModelLimits
from denizen.ports import ModelRequest
from denizen.runtime.clock import BackOff
from denizen.testing import FakeClock, LoopbackAnthropic, ScriptedModel, Step

ASKED = ModelRequest([UserMessage([Text("Hi")])], stream=True)
KEYS = "providers.anthropic.auth_profiles"
QUOTA = {"type": "error", "error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}
TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"


class Bench:
    """A provider and a clock, and models that reach it with auth profiles like `main` and `spare`."""

    def __init__(self, server: LoopbackAnthropic) -> None:
        self.server = server
        self.clock = FakeClock()
        self.http = Http()

    def candidate(self, profile: str, model: str = "first") -> Candidate:
        url, key = self.server.base_url, f"key-{profile}"
        client = AnthropicModel(model, api_key=key, base_url=url, profile_id=profile, http=self.http)
        return Candidate(client.name, client, profile, KEYS)

    def model(self, *profiles: str, fallback: bool = False, max_retries: int = 3, rest: float = 1.0) -> Failover:
        """A model with these profiles; its fall-back is the model `second` with the profile `other`."""
        candidates = [self.candidate(profile) for profile in profiles or ("main",)]
        candidates += [self.candidate("other", "second")] if fallback else []
        return Failover(candidates, self.clock, max_retries=max_retries, cooldown=BackOff(rest, 60.0))

    @property
    def asked(self) -> list[str]:
        """Whose key came with each request."""
        return [request.headers["x-api-key"].removeprefix("key-") for request in self.server.requests]

    async def requests(self, number: int) -> None:
        """Wait until so many requests came."""
        async with asyncio.timeout(60):
            for _ in iter(lambda: len(self.server.requests) < number, False):
                await asyncio.sleep(0)

    async def connected(self, number: int) -> None:
        """Have so many connections open: requests then come before any answer to them goes."""
        for _ in range(number):
            self.server.send(Step.HOLD, *self.server.wire.streamed(AssistantMessage([Text("Hello")])))
        model, before = self.model(), len(self.server.requests)
        async with asyncio.TaskGroup() as group:
            for each in range(number):
                group.create_task(ask(model, str(each)))
            await self.requests(before + number)
            self.server.release()


async def others() -> None:
    """Let other tasks, and the server's thread, go as far as they get."""
    for _ in range(1000):
        await asyncio.sleep(0)


@pytest.fixture
async def bench(loopback_anthropic: LoopbackAnthropic) -> AsyncIterator[Bench]:
    bench = Bench(loopback_anthropic)
    yield bench
    await bench.http.close()


async def ask(model: Failover, session: str = "work", *, stream: bool = True, tokens: int = 0) -> list[StreamEvent]:
    """All events of a call."""
    request = msgspec.structs.replace(ASKED, session_key=session, stream=stream, tokens=tokens)
    return [event async for event in model.stream(request)]


def retries(events: list[StreamEvent]) -> list[tuple[int, ErrorKind, str, float]]:
    """What was announced: the attempt, why, with which profile, and after how many seconds."""
    return [(each.attempt, each.reason, each.profile_id, each.delay) for each in events if isinstance(each, Retrying)]


# The table of statuses and categories


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (402, "billing"),
        (408, "timeout"),
        (409, "timeout"),
        (425, "timeout"),
        (429, "rate_limit"),
        (500, "timeout"),
        (502, "timeout"),
        (503, "timeout"),
        (504, "timeout"),
        (529, "timeout"),
    ],
)
async def test_retriable_status_is_tried_again_after_a_rest(
    bench: Bench, status: int, kind: ErrorKind, *, stream: bool
) -> None:
    bench.server.fail(status, "Not now")
    bench.server.say("Hello")
    events = await ask(bench.model(), stream=stream)
    assert answer(events).text == "Hello"
    assert retries(events) == [(1, kind, "main", 1.0)]
    assert bench.clock.slept == [1.0]
    assert len(bench.server.requests) == 2


async def test_lost_connection_is_tried_again(bench: Bench) -> None:
    bench.server.send(Step.HANG_UP)
    bench.server.say("Hello")
    events = await ask(bench.model())
    assert answer(events).text == "Hello"
    assert retries(events) == [(1, "timeout", "main", 1.0)]


async def test_error_inside_a_stream_is_treated_like_a_status(bench: Bench) -> None:
    overloaded = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    bench.server.send(overloaded)
    bench.server.say("Hello")
    events = await ask(bench.model())
    assert answer(events).text == "Hello"
    assert retries(events) == [(1, "timeout", "main", 1.0)]


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_key_makes_way_for_the_next_at_once(bench: Bench, status: int) -> None:
    bench.server.fail(status, "invalid x-api-key")
    bench.server.say("Hello")
    events = await ask(bench.model("main", "spare"))
    assert answer(events).text == "Hello"
    assert retries(events) == [(1, "auth", "spare", 0.0)]
    assert bench.asked == ["main", "spare"]
    assert bench.clock.slept == []


async def test_single_refused_key_fails_at_once_and_names_the_setting(bench: Bench) -> None:
    model = bench.model()
    for _ in range(2):
        bench.server.fail(401, "invalid x-api-key")
        error = failure(await ask(model))
        assert error.kind == "auth"
        assert error.message == f"anthropic:first: invalid x-api-key (HTTP 401); set a key that works in {KEYS}"
    assert bench.clock.slept == []
    assert len(bench.server.requests) == 2


async def test_all_refused_keys_are_reported_in_one_sentence_that_names_the_setting(bench: Bench) -> None:
    for _ in range(2):
        bench.server.fail(401, "invalid x-api-key")
    error = failure(await ask(bench.model("main", "spare")))
    assert error.message.endswith(f"; none of the 2 keys that were tried works, set others in {KEYS}")
    assert bench.asked == ["main", "spare"]


async def test_last_word_names_the_setting_too_when_keys_are_left(bench: Bench) -> None:
    for _ in range(2):
        bench.server.fail(401, "invalid x-api-key")
    error = failure(await ask(bench.model("main", "spare", "third", max_retries=1)))
    assert error.message.endswith(f"; none of the 2 keys that were tried works, set others in {KEYS}")


async def test_key_that_was_refused_is_not_used_again_in_the_call(bench: Bench) -> None:
    bench.server.fail(401, "invalid x-api-key")
    bench.server.fail(429, "Slow down")
    bench.server.say("Hello")
    await ask(bench.model("main", "spare"))
    assert bench.asked == ["main", "spare", "spare"]


@pytest.mark.parametrize(
    ("status", "sentence", "kind"), [(400, "No such field", "unknown"), (400, TOO_LONG, "context_overflow")]
)
async def test_what_no_retry_fixes_fails_at_once(bench: Bench, status: int, sentence: str, kind: ErrorKind) -> None:
    bench.server.fail(status, sentence)
    events = await ask(bench.model("main", "spare", fallback=True))
    assert failure(events).kind == kind
    assert len(events) == len(bench.server.requests) == 1


async def test_quota_fails_at_once_where_there_is_no_other_model(bench: Bench) -> None:
    bench.server.fail(429, QUOTA)
    assert failure(await ask(bench.model("main", "spare"))).kind == "quota"
    assert bench.asked == ["main"]


async def test_quota_goes_straight_to_the_fallback_model(bench: Bench) -> None:
    bench.server.fail(429, QUOTA)
    bench.server.say("Hello")
    events = await ask(bench.model("main", "spare", fallback=True))
    assert answer(events).model == "anthropic:second"
    assert bench.asked == ["main", "other"]
    assert bench.clock.slept == []


# Cool-down


async def test_rest_doubles_and_a_success_resets_it(bench: Bench) -> None:
    model = bench.model()
    for _ in range(3):
        bench.server.fail(529, "Overloaded")
    bench.server.say("Hello")
    bench.server.fail(529, "Overloaded")
    bench.server.say("Hello again")
    assert [delay for *_, delay in retries(await ask(model))] == [1.0, 2.0, 4.0]
    assert [delay for *_, delay in retries(await ask(model))] == [1.0]


async def test_rest_outlives_the_call(bench: Bench) -> None:
    model = bench.model(max_retries=0)
    bench.server.fail(529, "Overloaded")
    bench.server.fail(529, "Overloaded")
    bench.server.say("Hello")
    for _ in range(3):
        await ask(model)
    assert bench.clock.slept == [1.0, 1.0]


def test_rest_is_a_minute_at_most() -> None:
    assert [PROFILE_REST.after(failures) for failures in (0, 1, 2, 6, 7, 10_000)] == [0.0, 1.0, 2.0, 32.0, 60.0, 60.0]


def test_rest_can_be_set_for_a_world_that_is_patient() -> None:
    assert [BackOff(5.0, 20.0).after(failures) for failures in (1, 2, 3, 4)] == [5.0, 10.0, 20.0, 20.0]


async def test_profiles_take_turns_and_the_shortest_rest_is_waited_for(bench: Bench) -> None:
    bench.server.fail(429, "Slow down", {"Retry-After": "30"})
    bench.server.fail(529, "Overloaded")
    bench.server.say("Hello")
    events = await ask(bench.model("main", "spare"))
    assert retries(events) == [(1, "rate_limit", "spare", 0.0), (2, "timeout", "spare", 1.0)]
    assert bench.asked == ["main", "spare", "spare"]


@pytest.mark.parametrize(("wish", "delay"), [("12", 12.0), ("0", 1.0)])
async def test_wish_to_wait_is_honoured_when_longer(bench: Bench, wish: str, delay: float) -> None:
    bench.server.fail(429, "Slow down", {"Retry-After": wish})
    bench.server.say("Hello")
    assert retries(await ask(bench.model())) == [(1, "rate_limit", "main", delay)]
    assert bench.clock.slept == [delay]


async def test_profile_that_must_rest_too_long_is_passed_over(bench: Bench) -> None:
    wish = {"Retry-After": str(MAX_REST_WAIT_S + 1)}
    bench.server.fail(429, "Come back later", wish)
    bench.server.say("Hello")
    model = bench.model(fallback=True)
    assert answer(await ask(model, "one")).model == "anthropic:second"
    bench.server.fail(429, "Come back later", wish)
    error = failure(await ask(model, "two"))
    assert error.message.count("Come back later") == 2
    assert error.message.endswith("; it asks to wait 11 min")
    assert bench.clock.slept == []
    assert bench.asked == ["main", "other", "other"]


@pytest.mark.parametrize(
    ("wish", "asked", "slept"),
    [
        (MAX_REST_WAIT_BEFORE_FALLBACK_S, "main", [MAX_REST_WAIT_BEFORE_FALLBACK_S]),
        (MAX_REST_WAIT_BEFORE_FALLBACK_S + 1, "other", []),
    ],
)
async def test_fallback_model_goes_on_where_the_first_must_rest_for_more_than_a_minute(
    bench: Bench, wish: float, asked: str, slept: list[float]
) -> None:
    bench.server.fail(429, "Come back later", {"Retry-After": str(wish)})
    bench.server.say("Hello")
    await ask(bench.model(fallback=True))
    assert bench.asked == ["main", asked]
    assert bench.clock.slept == slept


async def test_model_is_waited_for_where_the_next_must_rest_even_longer(bench: Bench) -> None:
    model = bench.model(fallback=True, max_retries=0)
    bench.server.fail(429, "Come back later", {"Retry-After": "100"})
    bench.server.fail(429, "Come back later", {"Retry-After": "300"})
    bench.server.say("Hello")
    await ask(model, "one")
    await ask(model, "two")
    assert bench.asked == ["main", "other", "main"]
    assert bench.clock.slept == [100]


# How often


@pytest.mark.parametrize("max_retries", [0, 1, 3])
async def test_gives_up_after_max_retries_over_all_profiles(bench: Bench, max_retries: int) -> None:
    for _ in range(max_retries + 1):
        bench.server.fail(503, "Down")
    events = await ask(bench.model("main", "spare", max_retries=max_retries))
    assert failure(events).kind == "timeout"
    assert [attempt for attempt, *_ in retries(events)] == [*range(1, max_retries + 1)]
    assert len(bench.server.requests) == max_retries + 1


async def test_then_the_fallback_model_has_its_own_tries(bench: Bench) -> None:
    for _ in range(3):
        bench.server.fail(503, "Down")
    bench.server.say("Hello")
    events = await ask(bench.model(fallback=True, max_retries=1))
    assert answer(events).text == "Hello"
    assert bench.asked == ["main", "main", "other", "other"]
    assert [attempt for attempt, *_ in retries(events)] == [1, 2, 3]
    assert [each.model for each in events if isinstance(each, Retrying)][1:] == ["anthropic:second"] * 2


async def test_failure_of_all_models_tells_of_each(bench: Bench) -> None:
    bench.server.fail(401, "invalid x-api-key")
    bench.server.fail(503, "Down")
    error = failure(await ask(bench.model(fallback=True, max_retries=0)))
    assert f"set a key that works in {KEYS}\nanthropic:second: Down" in error.message
    assert (error.kind, error.status, error.profile_id) == ("timeout", 503, "other")


# Streams that die


async def test_dead_stream_is_taken_back_and_begun_again(bench: Bench) -> None:
    whole = bench.server.wire.streamed(AssistantMessage([Text("Two lamps cost 25")]))
    bench.server.send(*whole[:-4], Step.HANG_UP)
    bench.server.say("Two lamps cost 25 euros")
    events = await ask(bench.model())
    [retry] = [each for each in events if isinstance(each, Retrying)]
    before, after = events[: events.index(retry)], events[events.index(retry) :]
    assert retry.withdrawn == "".join(each.delta for each in before if isinstance(each, TextDelta)) != ""
    assert "".join(each.delta for each in after if isinstance(each, TextDelta)) == "Two lamps cost 25 euros"
    assert [type(each) for each in events if isinstance(each, Finished | Failed)] == [Finished]


async def test_deltas_come_while_the_stream_goes_on(bench: Bench) -> None:
    first, *rest = bench.server.wire.streamed(AssistantMessage([Text("Two lamps")]))
    bench.server.send(first, *rest[:3], Step.HOLD, *rest[3:])
    seen: list[StreamEvent] = []
    async for event in bench.model().stream(ASKED):
        if not seen:
            bench.server.release()
        seen.append(event)
    assert isinstance(seen[0], TextDelta)
    assert answer(seen).text == "Two lamps"


# Sessions stay where they are


async def test_session_stays_on_the_profile_that_worked(bench: Bench) -> None:
    model = bench.model("main", "spare")
    bench.server.fail(429, "Slow down")
    bench.server.say(*["Hello"] * 4)
    await ask(model, "work")
    await bench.clock.sleep(2)
    await ask(model, "work")
    await ask(model, "other work")
    assert bench.asked == ["main", "spare", "spare", "main"]
    await bench.clock.sleep(STICKY_S["5m"])
    await ask(model, "work")
    assert bench.asked[-1] == "main"


async def test_session_stays_on_the_fallback_model_that_worked(bench: Bench) -> None:
    model = bench.model(fallback=True)
    bench.server.fail(429, QUOTA)
    bench.server.say("Hello", "Hello")
    await ask(model, "work")
    assert answer(await ask(model, "work")).model == "anthropic:second"


async def test_home_that_fails_makes_way_like_any_profile(bench: Bench) -> None:
    model = bench.model("main", "spare")
    bench.server.fail(429, "Slow down")
    bench.server.say("Hello")
    bench.server.fail(429, "Slow down")
    bench.server.say("Hello")
    await ask(model, "work")
    await bench.clock.sleep(2)
    await ask(model, "work")
    assert bench.asked == ["main", "spare", "spare", "main"]


async def test_new_session_begins_where_a_profile_is_ready(bench: Bench) -> None:
    model = bench.model(fallback=True, max_retries=0)
    bench.server.fail(529, "Overloaded")
    bench.server.say("Hello", "Hello")
    await ask(model, "one")
    await ask(model, "two")
    assert bench.asked == ["main", "other", "other"]
    assert bench.clock.slept == []


async def test_only_the_latest_sessions_are_remembered() -> None:
    clock = FakeClock()
    main = ScriptedModel([ModelError("Slow down", kind="rate_limit"), *["main"] * 2])
    spare = ScriptedModel(["spare"] * (MAX_SESSIONS + 2))
    model = Failover([Candidate("test:m", main, "main"), Candidate("test:m", spare, "spare")], clock)
    await ask(model, "first")
    for number in range(MAX_SESSIONS):
        await ask(model, f"session {number}")
    await clock.sleep(1)
    assert answer(await ask(model, f"session {MAX_SESSIONS - 1}")).text == "spare"
    assert answer(await ask(model, "first")).text == "main"


# Many sessions at once


async def test_failures_side_by_side_count_once(bench: Bench) -> None:
    model = bench.model(max_retries=1)
    await bench.connected(5)
    for _ in range(5):
        bench.server.fail(429, "Slow down")
    bench.server.say(*["Hello"] * 5)
    calls = await asyncio.gather(*(ask(model, str(number)) for number in range(5)))
    assert {delay for events in calls for *_, delay in retries(events)} == {1.0}
    assert all(answer(events).text == "Hello" for events in calls)


async def test_one_call_alone_tries_a_profile_that_has_rested(bench: Bench) -> None:
    model = bench.model(max_retries=0)
    bench.server.fail(529, "Overloaded")
    await ask(model)
    whole = bench.server.wire.streamed(AssistantMessage([Text("Hello")]))
    bench.server.send(Step.HOLD, *whole)
    bench.server.say(*["Hello"] * 9)
    calls = [asyncio.create_task(ask(model, str(number))) for number in range(10)]
    await bench.requests(2)
    await others()
    assert len(bench.server.requests) == 2
    bench.server.release()
    assert [answer(events).text for events in await asyncio.gather(*calls)] == ["Hello"] * 10
    assert len(bench.server.requests) == 11


async def test_calls_that_wait_share_the_failure_of_the_one_that_tries(bench: Bench) -> None:
    model = bench.model(max_retries=1)
    for _ in range(4):
        bench.server.fail(529, "Overloaded")
    await ask(model)
    calls = await asyncio.gather(*(ask(model, str(number)) for number in range(10)))
    assert all(failure(events).kind == "timeout" for events in calls)
    assert len(bench.server.requests) == 4


async def test_cancelled_trial_lets_the_others_try(bench: Bench) -> None:
    model = bench.model(max_retries=0)
    bench.server.fail(529, "Overloaded")
    await ask(model)
    bench.server.send(Step.STALL)
    bench.server.say("Hello")
    first = asyncio.create_task(ask(model, "one"))
    await bench.requests(2)
    second = asyncio.create_task(ask(model, "two"))
    await others()
    first.cancel()
    assert answer(await second).text == "Hello"


# What a call costs


async def test_price_is_put_into_the_usage() -> None:
    said = AssistantMessage([Text("Hello")], usage=Usage(100, 10))
    told = AssistantMessage([Text("Hello")], usage=Usage(100, 10, cost_usd=0.5))
    priced = Candidate("test:m", ScriptedModel([said, told]), cost=lambda usage: (usage.input or 0) / 1000)
    model = Failover([priced], FakeClock())
    assert answer(await ask(model)).usage == Usage(100, 10, cost_usd=0.1)
    assert answer(await ask(model)).usage.cost_usd == 0.5


async def test_other_work_goes_on_while_a_server_is_asked_for_its_window() -> None:
    goes_on = threading.Event()
    limits = ModelLimits("m", ask=lambda: 32_000 if goes_on.wait(2) else 0)
    model = Failover([Candidate("local:m", ScriptedModel(["Hello."]), limits=limits)], FakeClock())
    call = asyncio.create_task(ask(model, tokens=100_000))
    await asyncio.sleep(0)
    goes_on.set()
    await call
    assert limits().window == 32_000


async def test_limits_are_those_of_the_model_that_the_session_asked_last(bench: Bench) -> None:
    large = ModelLimits(ask=lambda: 200_000)
    small = ModelLimits(ask=lambda: 8_000)
    candidates = [
        dataclasses.replace(bench.candidate("main"), limits=large),
        dataclasses.replace(bench.candidate("other", "second"), limits=small),
    ]
    model = Failover(candidates, bench.clock, max_retries=0)
    assert model.limits("fallen back").window == 200_000
    bench.server.fail(529, "Overloaded")
    bench.server.say("from the second")
    await ask(model, "fallen back")
    assert model.limits("fallen back").window == 8_000
    assert model.limits("another").window == model.limits().window == 200_000


async def test_answer_that_ends_without_an_end_is_a_failure() -> None:
    class Silent:
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            yield TextDelta("Hel")

    error = failure(await ask(Failover([Candidate("test:silent", Silent())], FakeClock())))
    assert error.message == "test:silent ended its answer without saying how."
