"""Facts found by meaning: real HTTP to an embeddings server on loopback."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from denizen.config import Config
from denizen.config.settings import EmbeddingSettings, MemorySettings
from denizen.errors import ConfigError
from denizen.memory import LongTermMemory, open_memory
from denizen.memory.embeddings import RETRY_AFTER_S
from denizen.runtime.postgres import PostgresDatabase
from denizen.testing import FakeClock, LoopbackOpenAI, Step

Open = Callable[..., LongTermMemory]

NORTH, EAST, NORTHEAST = (0.0, 2.0), (3.0, 0.0), (1.0, 1.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory_of(
    tmp_path: Path,
    clock: FakeClock,
    loopback_openai: LoopbackOpenAI,
    database: PostgresDatabase | None,
    opened: ExitStack,
) -> Open:
    def make(base_url: str = loopback_openai.base_url, model: str = "small") -> LongTermMemory:
        embeddings = EmbeddingSettings(base_url=base_url, model=model, api_key="a-key-of-some-length")
        config = Config(home=tmp_path / "home", workspace=tmp_path, memory=MemorySettings(embeddings=embeddings))
        memory = open_memory(config, clock=clock, database=database)
        opened.callback(memory.close)
        return memory

    return make


def answer(server: LoopbackOpenAI, *vectors: Sequence[float]) -> None:
    """Answer with these, in an order of the server's own."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    body = msgspec.json.encode({"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 1}})
    server.send(body, content_type="application/json")


async def recalled(memory: LongTermMemory, query: str) -> list[str]:
    return [fact.text for fact in await memory.recall(query)]


async def test_a_fact_is_found_that_shares_no_word(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    memory = memory_of()
    await memory.remember("The cat sleeps")
    await memory.remember("JWT in cookies")
    answer(loopback_openai, NORTHEAST, NORTH, EAST)
    answer(loopback_openai, (1.0, 9.0))
    assert len(await recalled(memory, "authentication")) == 2
    assert await recalled(memory, "authentication") == ["JWT in cookies", "The cat sleeps"]


async def test_the_server_sees_each_fact_once(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    memory = memory_of()
    await memory.remember("JWT in cookies")
    answer(loopback_openai, NORTH, NORTH)
    answer(loopback_openai, NORTH)
    await memory.recall("authentication")
    await memory_of().recall("login")
    first, second = loopback_openai.requests
    assert first.path == "/v1/embeddings"
    assert first.headers["Authorization"] == "Bearer a-key-of-some-length"
    assert first.json == {"model": "small", "input": ["authentication", "JWT in cookies"], "encoding_format": "float"}
    assert second.json["input"] == ["login"]


async def test_another_model_sees_the_facts_anew(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    await memory_of().remember("JWT in cookies")
    answer(loopback_openai, NORTH, NORTH)
    await memory_of().recall("authentication")
    answer(loopback_openai, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    assert await recalled(memory_of(model="large"), "authentication") == ["JWT in cookies"]
    assert loopback_openai.requests[-1].json["input"] == ["authentication", "JWT in cookies"]


async def test_many_facts_are_seen_bit_by_bit(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    memory = memory_of()
    for number in range(70):
        await memory.remember(f"fact {number}")
    answer(loopback_openai, *[NORTH] * 64)
    answer(loopback_openai, *[NORTH] * 8)
    await memory.recall("one")
    await memory.recall("two")
    seen = [text for request in loopback_openai.requests for text in request.json["input"][1:]]
    assert sorted(seen) == sorted(f"fact {number}" for number in range(70))


async def test_meaning_and_words_count_both(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    memory = memory_of()
    for fact in ("login by words", "cookies by meaning", "login by both"):
        await memory.remember(fact)
    answer(loopback_openai, NORTH, NORTH, NORTH, EAST)
    best, *others = await recalled(memory, "login")
    assert best == "login by both"
    assert {*others} == {"login by words", "cookies by meaning"}


FAILURES: dict[str, Callable[[LoopbackOpenAI], None]] = {
    "a status": lambda server: server.fail(500, "down"),
    "no JSON": lambda server: server.send(b"<html>", content_type="application/json"),
    "too few": lambda server: answer(server, NORTH),
    "no direction": lambda server: answer(server, (0.0, 0.0), NORTH),
    "hangs up": lambda server: server.send(b'{"data"', Step.HANG_UP),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_server_that_fails_is_reported_once_and_words_still_count(
    memory_of: Open,
    loopback_openai: LoopbackOpenAI,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
    failure: str,
) -> None:
    memory = memory_of()
    await memory.remember("JWT in cookies")
    FAILURES[failure](loopback_openai)
    with caplog.at_level(logging.WARNING):
        assert await recalled(memory, "cookies") == ["JWT in cookies"]
        await clock.sleep(RETRY_AFTER_S - 1)
        assert await recalled(memory, "authentication") == []
        assert len(loopback_openai.requests) == 1
        await clock.sleep(1)
        FAILURES[failure](loopback_openai)
        await memory.recall("cookies")
    assert len(loopback_openai.requests) == 2
    [warning] = caplog.messages
    assert "The embeddings of http://127.0.0.1:" in warning
    assert "found by their words alone" in warning
    assert "a-key-of-some-length" not in warning


async def test_a_server_that_is_back_is_used_again(
    memory_of: Open, loopback_openai: LoopbackOpenAI, clock: FakeClock
) -> None:
    memory = memory_of()
    await memory.remember("JWT in cookies")
    loopback_openai.fail(500, "down")
    assert await recalled(memory, "authentication") == []
    await clock.sleep(RETRY_AFTER_S)
    answer(loopback_openai, NORTH, NORTH)
    assert await recalled(memory, "authentication") == ["JWT in cookies"]


async def test_nobody_listening_is_no_harm(memory_of: Open) -> None:
    memory = memory_of("http://127.0.0.1:9/v1")
    await memory.remember("JWT in cookies")
    assert await recalled(memory, "cookies") == ["JWT in cookies"]


def test_settings_that_cannot_work_are_refused(memory_of: Open) -> None:
    with pytest.raises(ConfigError, match=r"no memory\.embeddings\.model"):
        memory_of(model="")
    with pytest.raises(ConfigError, match=r"memory\.embeddings\.base_url is \"localhost\""):
        memory_of("localhost")


async def test_a_fact_that_two_scopes_have_is_found_once(memory_of: Open, loopback_openai: LoopbackOpenAI) -> None:
    memory = memory_of()
    await memory.remember("JWT in cookies")
    await memory.remember("JWT in cookies", scope="user")
    answer(loopback_openai, NORTH, NORTH, NORTH)
    assert await recalled(memory, "cookies") == ["JWT in cookies"]
