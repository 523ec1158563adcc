"""Typed answers are held to their schema by the provider, wherever it can do that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.engine.scene import call

from denizen import Agent, load_config, run_agent, tool
from denizen.ports import Traits
from denizen.testing import LoopbackOpenAI


class City(msgspec.Struct):
    name: str


ROME = '{"name": "Rome"}'


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look() -> str:
    """Look."""
    return "Rome"


@pytest.fixture
def server() -> Iterator[LoopbackOpenAI]:
    with LoopbackOpenAI() as server:
        yield server


async def asked(home: Path, server: LoopbackOpenAI, provider: str, *, tools: Any = (), **agent: Any) -> City:
    """The typed answer of that provider's model."""
    reached = {"base_url": server.base_url, "auth_profiles": [{"id": "a", "api_key": "key"}]}
    overrides = {"model": f"{provider}:m", "providers": {provider: reached}, "agent": agent}
    config = load_config(home=home, environ={}, cwd=home, overrides=overrides)
    async with Agent(config, tools=tools, environ={}) as made:
        return (await run_agent("Where?", agent=made, output=City)).output


def formats(server: LoopbackOpenAI) -> list[str]:
    return [request.json.get("response_format", {}).get("type", "") for request in server.requests]


def with_tools(server: LoopbackOpenAI) -> list[bool]:
    return ["tools" in request.json for request in server.requests]


SCHEMA = ["openai", "azure", "openrouter", "gemini", "mistral", "xai", "groq", "together"]
LOCAL = ["ollama", "lmstudio", "vllm", "llamacpp", "office"]


@pytest.mark.parametrize("provider", [*SCHEMA, *LOCAL])
async def test_schema_is_sent_where_it_can_be_held_to(tmp_path: Path, server: LoopbackOpenAI, provider: str) -> None:
    server.say(ROME)
    assert await asked(tmp_path, server, provider) == City("Rome")
    [request] = server.requests
    assert request.json["response_format"]["json_schema"]["schema"]["required"] == ["name"]


async def test_deepseek_is_asked_for_json(tmp_path: Path, server: LoopbackOpenAI) -> None:
    server.say(ROME)
    assert await asked(tmp_path, server, "deepseek") == City("Rome")
    assert formats(server) == ["json_object"]


@pytest.mark.parametrize("provider", [*SCHEMA[2:5], *LOCAL])
async def test_where_tools_and_schema_exclude_each_other_a_wrong_answer_is_asked_for_again_by_schema(
    tmp_path: Path, server: LoopbackOpenAI, provider: str
) -> None:
    server.say(call(("look", {})), "It is Rome.", ROME)
    assert await asked(tmp_path, server, provider, tools=[look]) == City("Rome")
    assert formats(server) == ["", "", "json_schema"]
    assert with_tools(server) == [True, True, False]


async def test_commands_in_text_are_not_held_to_the_schema(tmp_path: Path, server: LoopbackOpenAI) -> None:
    server.say("$(look)", "It is Rome.", ROME)
    assert await asked(tmp_path, server, "openai", tools=[look], actions="shell") == City("Rome")
    assert formats(server) == ["", "", "json_schema"]


async def test_model_that_takes_no_schema_is_asked_for_json_and_then_for_nothing(
    tmp_path: Path, server: LoopbackOpenAI
) -> None:
    server.fail(400, "This model does not support response format `json_schema`.")
    server.fail(400, "'response_format' of type 'json_object' is not supported with this model.")
    server.say(ROME)
    assert await asked(tmp_path, server, "groq") == City("Rome")
    assert formats(server) == ["json_schema", "json_object", ""]
