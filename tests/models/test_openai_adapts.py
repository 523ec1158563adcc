"""What a server of OpenAI's format wants otherwise, whatever name its provider has."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.calls import answer, call
from tests.models.chat import HI, model

from denizen import Agent, load_config, run_agent
from denizen.models.providers import provider_access
from denizen.ports import ModelRequest
from denizen.testing import FakeClock, LoopbackOpenAI

REFUSAL = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


@pytest.fixture
def server() -> Iterator[LoopbackOpenAI]:
    with LoopbackOpenAI() as server:
        yield server


async def test_limit_is_called_anew_where_a_model_asks_for_that(server: LoopbackOpenAI) -> None:
    server.fail(400, REFUSAL)
    server.say("Hello.", "And again.")
    asked, client = ModelRequest([HI], session_key="work"), model(server, "office")
    assert answer(await call(client, asked)).text == "Hello."
    assert answer(await call(client, asked)).text == "And again."
    assert ["max_tokens" in request.json for request in server.requests] == [True, False, False]
    assert server.requests[-1].json["max_completion_tokens"] == 8192


@pytest.mark.parametrize(
    ("name", "base_url", "limit"),
    [
        ("office", "https://shop.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("work", "https://shop.services.ai.azure.com/openai/v1?api-version=preview", "max_completion_tokens"),
        ("azure", "https://models.example.com/v1", "max_completion_tokens"),
        ("office", "https://models.example.com/v1", "max_tokens"),
    ],
)
def test_azure_is_known_by_its_address_or_name(tmp_path: Path, name: str, base_url: str, limit: str) -> None:
    config = load_config(
        home=tmp_path, environ={}, cwd=tmp_path, overrides={"providers": {name: {"base_url": base_url}}}
    )
    assert provider_access(name, config, {}).provider.max_tokens == limit


QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("provider", "words"),
    [("dashscope", QUOTA), ("qwen", "Allocated quota exceeded, please increase your quota limit.")],
)
async def test_quota_for_a_minute_is_retried(tmp_path: Path, server: LoopbackOpenAI, provider: str, words: str) -> None:
    server.fail(429, {"error": {"message": words, "type": "insufficient_quota", "code": "insufficient_quota"}})
    server.say("Hello.")
    reached = {"base_url": server.base_url, "auth_profiles": [{"id": "a", "api_key": "key"}]}
    overrides = {"model": f"{provider}:qwen-max", "providers": {provider: reached}}
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}, clock=FakeClock()) as agent:
        result = await run_agent("Hello?", agent=agent)
    assert (result.reply, result.retries) == ("Hello.", 1)
