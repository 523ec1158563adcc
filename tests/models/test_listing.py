"""What providers list, read in whichever form they have."""

from typing import Any

import pytest

from denizen.config import Config
from denizen.config.settings import AuthProfileSettings, ProviderSettings
from denizen.errors import ConfigError, ModelError
from denizen.models.catalogue import PricedModel
from denizen.models.resolve import list_models
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer

UNKNOWN = (0, None, None)
LISTS: list[tuple[str, type[LoopbackServer], str, Any, list[PricedModel]]] = [
    (
        "anthropic",
        LoopbackAnthropic,
        "/v1/models",
        {
            "data": [
                {"type": "model", "id": "claude-a", "max_input_tokens": 1_000_000, "lifecycle": "active"},
                {"type": "model", "id": "claude-b", "max_input_tokens": None, "lifecycle": "retired"},
                {"type": "model", "id": "claude-c"},
            ],
            "has_more": False,
        },
        [PricedModel("claude-a", 1_000_000, None, None), PricedModel("claude-c", *UNKNOWN)],
    ),
    (
        "openai",
        LoopbackOpenAI,
        "/v1/models",
        {"object": "list", "data": [{"id": "gpt-5-mini"}, {"id": "text-embedding-3-small"}, {"id": "whisper-1"}]},
        [PricedModel("gpt-5-mini", *UNKNOWN)],
    ),
    (
        "openrouter",
        LoopbackOpenAI,
        "/v1/models",
        {
            "data": [
                {"id": "x/y", "context_length": 8_192, "pricing": {"prompt": "0.000002", "completion": "0.00001"}},
                {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
                {"id": "x/z", "pricing": {"prompt": "?", "completion": "?"}},
            ]
        },
        [
            PricedModel("x/y", 8_192, 2.0, 10.0),
            PricedModel("openrouter/auto", *UNKNOWN),
            PricedModel("x/z", *UNKNOWN),
        ],
    ),
    (
        "together",
        LoopbackOpenAI,
        "/v1/models",
        [{"id": "x/y", "context_length": 4_096, "pricing": {"input": 0.2, "output": 1}}],
        [PricedModel("x/y", 4_096, 0.2, 1.0)],
    ),
    (
        "mistral",
        LoopbackOpenAI,
        "/v1/models",
        {"data": [{"id": "m", "max_context_length": 32_768}, {"name": None}, "odd", {"id": 7}]},
        [PricedModel("m", 32_768, None, None)],
    ),
    (
        "google",
        LoopbackGemini,
        "/v1beta/models",
        {
            "models": [
                {
                    "name": "models/gemini-a",
                    "inputTokenLimit": 1_048_576,
                    "supportedGenerationMethods": ["generateContent", "countTokens"],
                },
                {"name": "models/gemini-b", "supportedGenerationMethods": ["embedContent"]},
            ]
        },
        [PricedModel("gemini-a", 1_048_576, None, None)],
    ),
]


async def listed(provider: str, base_url: str, *, keys: bool = True) -> list[PricedModel]:
    profiles = [AuthProfileSettings(id="a", api_key="key-0123456789")] if keys else []
    config = Config(providers={provider: ProviderSettings(base_url=base_url, auth_profiles=profiles)})
    return [*await list_models(provider, config, environ={}, clock=FakeClock())]


@pytest.mark.parametrize(("provider", "server", "path", "answer", "models"), LISTS, ids=[each[0] for each in LISTS])
async def test_a_provider_lists_its_models(
    provider: str, server: type[LoopbackServer], path: str, answer: Any, models: list[PricedModel]
) -> None:
    with server() as provider_server:
        provider_server.facts[path] = answer
        assert await listed(provider, provider_server.base_url) == models


@pytest.mark.parametrize(
    ("answer", "why"), [({"data": []}, "lists no models"), ("odd", "lists no models"), (7, "lists no models")]
)
async def test_a_list_without_models_is_a_failure(loopback_openai: LoopbackOpenAI, answer: Any, why: str) -> None:
    loopback_openai.facts["/v1/models"] = answer
    with pytest.raises(ModelError, match=f"openai: .*{why}"):
        await listed("openai", loopback_openai.base_url)


async def test_a_refusal_and_a_server_that_is_not_there_are_failures(loopback_openai: LoopbackOpenAI) -> None:
    with pytest.raises(ModelError, match="HTTP 404"):
        await listed("openai", loopback_openai.base_url)
    with pytest.raises(ModelError, match="openai: no server listens"):
        await listed("openai", "http://127.0.0.1:9/v1")
    with pytest.raises((ModelError, ConfigError)):
        await listed("openai", "not an address")
