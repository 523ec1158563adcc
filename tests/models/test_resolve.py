"""From the configuration to a model: names, keys, local servers, other packages' providers, and what errors say."""

import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.models.calls import answer, failure

from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, ModelSettings, ProviderSettings
from denizen.errors import ConfigError
from denizen.events import Retrying, StreamEvent
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.models import open_model
from denizen.models.providers import PROVIDERS, parse_model, provider_access
from denizen.models.resolve import DEFAULT_MODELS, first_available, with_api
from denizen.ports import KnownModel, ModelRequest
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackOpenAI, LoopbackResponses

LOCAL = ("ollama", "lmstudio", "vllm", "llamacpp")


def opened(config: Config, **environ: str) -> KnownModel:
    return open_model(config, environ=environ, clock=FakeClock())


async def ask(model: KnownModel) -> list[StreamEvent]:
    try:
        return [event async for event in model.stream(ModelRequest([UserMessage([Text("Hi")])]))]
    finally:
        await model.close()


def at(base_url: str, *keys: str, **settings: Any) -> ProviderSettings:
    profiles = [AuthProfileSettings(id=f"profile-{key}", api_key=key) for key in keys]
    return ProviderSettings(base_url=base_url, auth_profiles=profiles, **settings)


@pytest.fixture
def nowhere() -> dict[str, ProviderSettings]:
    """The local servers' addresses, where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return {name: at(f"http://127.0.0.1:{taken.getsockname()[1]}/v1") for name in LOCAL}


# Names


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("ollama:llama3.2:3b", "ollama", "llama3.2:3b"),
        ("openrouter:anthropic/claude-sonnet-4.5", "openrouter", "anthropic/claude-sonnet-4.5"),
        (" OpenAI : gpt-5-mini ", "openai", "gpt-5-mini"),
        ("offline", "offline", ""),
    ],
)
def test_name_is_provider_and_model(text: str, provider: str, model: str) -> None:
    assert parse_model(text) == (provider, model)


@pytest.mark.parametrize("text", ["", "  ", ":gpt-5-mini"])
def test_name_without_a_provider_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write provider:model, like anthropic:"):
        parse_model(text)


def test_unknown_provider_is_reported_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match='No provider is called "antropic"; the nearest is "anthropic"'):
        opened(Config(model="antropic:claude-sonnet-4-5"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gpt-5-mni", "openai:gpt-5-mini"),
        ("gemni", "gemini"),
    ],
)
def test_name_that_is_a_models_is_reported_with_the_nearest_of_the_catalogue(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f'the nearest is "{meant}"'):
        opened(Config(model=name))


def test_model_without_a_provider_is_answered_with_how_to_name_one() -> None:
    with pytest.raises(ConfigError, match="A model is named provider:model"):
        opened(Config(model="gpt-5-mini"))


def test_missing_key_is_reported_with_the_variable_and_the_setting() -> None:
    with pytest.raises(
        ConfigError, match=r"openai has no key: set OPENAI_API_KEY, or providers\.openai\.auth_profiles"
    ):
        opened(Config(model="openai:gpt-5-mini"))


def test_fallback_without_a_key_is_reported_before_it_is_needed() -> None:
    with pytest.raises(ConfigError, match="mistral has no key"):
        opened(Config(model="openai:gpt-5-mini", fallback_models=["mistral:m"]), OPENAI_API_KEY="key")


# Keys and addresses


async def test_key_comes_from_the_environment(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.say("Hello")
    config = Config(model="anthropic:m", providers={"anthropic": at(loopback_anthropic.base_url)})
    model = opened(config, ANTHROPIC_API_KEY="from-environment")
    assert (model.name, answer(await ask(model)).text) == ("anthropic:m", "Hello")
    assert loopback_anthropic.requests[0].headers["x-api-key"] == "from-environment"


async def test_configured_keys_come_before_the_environment_and_take_turns(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(401, "Wrong")
    loopback_openai.say("Hello")
    config = Config(model="openai:m", providers={"openai": at(loopback_openai.base_url, "one", "two")})
    events = await ask(opened(config, OPENAI_API_KEY="from-environment"))
    assert [request.headers["authorization"] for request in loopback_openai.requests] == ["Bearer one", "Bearer two"]
    assert [event.profile_id for event in events if isinstance(event, Retrying)] == ["profile-two"]


async def test_refused_key_of_the_environment_is_named(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(401, "Incorrect API key")
    config = Config(model="openai:m", providers={"openai": at(loopback_openai.base_url)})
    error = failure(await ask(opened(config, OPENAI_API_KEY="wrong")))
    assert error.message == "openai:m: Incorrect API key (HTTP 401); set a key that works in OPENAI_API_KEY"


async def test_refused_keys_of_the_configuration_are_named(loopback_openai: LoopbackOpenAI) -> None:
    for _ in range(2):
        loopback_openai.fail(401, "Incorrect API key")
    config = Config(model="openai:m", providers={"openai": at(loopback_openai.base_url, "one", "two")})
    error = failure(await ask(opened(config)))
    assert error.message.endswith(
        "none of the 2 keys that were tried works, set others in providers.openai.auth_profiles"
    )


async def test_headers_of_the_configuration_are_sent(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.say("Hello")
    settings = at(loopback_openai.base_url, "one", headers={"X-Team": "lamps"})
    await ask(opened(Config(model="openai:m", providers={"openai": settings})))
    assert loopback_openai.requests[0].headers["x-team"] == "lamps"


async def test_any_server_is_a_provider_by_its_base_url(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.say(AssistantMessage([Text("Hello")], usage=Usage(10, 1)))
    model = opened(Config(model="lamps:m", providers={"lamps": at(loopback_openai.base_url)}))
    assert (model.name, model.local) == ("lamps:m", True)
    assert answer(await ask(model)).usage.cost_usd == 0.0


async def test_any_server_may_speak_anthropic(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.say("Hello")
    config = Config(model="lamps:m", providers={"lamps": at(loopback_anthropic.base_url, "key", api="anthropic")})
    assert answer(await ask(opened(config))).text == "Hello"
    assert loopback_anthropic.requests[0].headers["x-api-key"] == "key"


async def test_fallback_model_of_another_provider(
    loopback_anthropic: LoopbackAnthropic, loopback_openai: LoopbackOpenAI
) -> None:
    loopback_anthropic.fail(503, "Down")
    loopback_openai.say("Hello")
    config = Config(
        model="anthropic:m",
        fallback_models=["openai:n"],
        providers={"anthropic": at(loopback_anthropic.base_url, "a"), "openai": at(loopback_openai.base_url, "b")},
        agent=AgentSettings(max_retries=0),
    )
    model = opened(config)
    assert model.name == "anthropic:m"
    assert answer(await ask(model)).model == "openai:n"


async def test_price_of_a_known_model_is_counted_behind_a_proxy_on_this_machine(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    loopback_anthropic.say(AssistantMessage([Text("Hello")], usage=Usage(1_000, 100, 10_000, 2_000)))
    config = Config(model="anthropic:claude-sonnet-4-5", providers={"anthropic": at(loopback_anthropic.base_url, "k")})
    model = opened(config)
    assert not model.local
    assert answer(await ask(model)).usage.cost_usd == pytest.approx(0.015)


def test_limits_are_the_catalogues_unless_they_are_set() -> None:
    assert opened(Config(model="openai:gpt-5-mini"), OPENAI_API_KEY="k").limits().window == 400_000
    assert opened(Config(model="openai:new"), OPENAI_API_KEY="k").limits().window == 200_000
    settings = ProviderSettings(context_window=32_768)
    assert opened(Config(model="ollama:m", providers={"ollama": settings})).limits().window == 32_768


@pytest.mark.parametrize("name", [*LOCAL, "llama.cpp"])
def test_local_servers_need_no_key(name: str) -> None:
    assert opened(Config(model=f"{name}:m")).local


# Nothing configured


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic:claude-sonnet-5-5"),
        ({"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}, "openai:gpt-5-mini"),
        ({"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": " "}, "deepseek:deepseek-flash"),
    ],
)
def test_first_key_in_the_environment_decides(environ: Mapping[str, str], name: str) -> None:
    assert opened(Config(), **environ).name == name


def test_keys_are_looked_for_in_the_order_in_which_providers_are_listed() -> None:
    assert [*DEFAULT_MODELS] == [name for name, provider in PROVIDERS.items() if provider.key_variable]


def test_key_in_the_configuration_decides_too() -> None:
    settings = ProviderSettings(auth_profiles=[AuthProfileSettings(id="main", api_key="key")])
    assert opened(Config(providers={"mistral": settings})).name == "mistral:mistral-medium-latest"


def test_without_a_key_a_server_on_this_machine_is_taken(
    nowhere: dict[str, ProviderSettings], loopback_openai: LoopbackOpenAI
) -> None:
    loopback_openai.send(
        msgspec.json.encode({"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "llama3.2:3b"}]}),
        content_type="application/json",
    )
    config = Config(providers=nowhere | {"lmstudio": at(loopback_openai.base_url)})
    assert first_available(config, {}) == "lmstudio:llama3.2:3b"
    assert loopback_openai.requests[0].path == "/v1/models"


@pytest.mark.parametrize("reply", [b"<html>", b"[]", b'{"data": [{}, 1]}', b"\xff", b"[" * 100_000])
def test_server_that_is_no_model_server_is_passed_over(
    nowhere: dict[str, ProviderSettings], loopback_openai: LoopbackOpenAI, reply: bytes
) -> None:
    loopback_openai.send(reply, content_type="application/json")
    assert opened(Config(providers=nowhere | {"vllm": at(loopback_openai.base_url)})).name == "offline"


async def test_with_nothing_there_it_is_offline(nowhere: dict[str, ProviderSettings]) -> None:
    model = opened(Config(providers=nowhere))
    assert (model.name, model.local) == ("offline", True)
    assert "offline model" in answer(await ask(model)).text


def test_provider_alone_means_its_usual_model(
    nowhere: dict[str, ProviderSettings], loopback_openai: LoopbackOpenAI
) -> None:
    assert opened(Config(model="openai"), OPENAI_API_KEY="k").name == "openai:gpt-5-mini"
    loopback_openai.send(b'{"data": [{"id": "qwen3"}]}', content_type="application/json")
    assert opened(Config(model="ollama", providers={"ollama": at(loopback_openai.base_url)})).name == "ollama:qwen3"
    with pytest.raises(
        ConfigError, match=r"Name a model of vllm \(vllm:MODEL\): no server at http.* is it running \(`vllm serve"
    ):
        opened(Config(model="vllm", providers=nowhere))


# Providers of other packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that brings the provider `parrot`, and one that can't be loaded."""
    (tmp_path / "parrots.py").write_text(
        "from denizen.testing import ScriptedModel\n\n\n"
        "def parrot(model, settings, environ, clock):\n"
        "    return ScriptedModel([f'{model} {settings.base_url} {sorted(environ)}'])\n"
    )
    info = tmp_path / "parrots-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrots\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[denizen.models]\nparrot = parrots:parrot\nbroken = nowhere_to_be:found\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("parrots", None)


@pytest.mark.usefixtures("package")
async def test_other_packages_bring_providers() -> None:
    model = opened(Config(model="parrot:polly"), CRACKER="1")
    assert model.name == "parrot:polly"
    assert answer(await ask(model)).text == "polly  ['CRACKER']"


@pytest.mark.usefixtures("package")
def test_package_that_cannot_be_loaded_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"'broken' of parrots can't be loaded: .*nowhere_to_be"):
        opened(Config(model="broken:m"))


@pytest.mark.usefixtures("package")
def test_known_providers_load_no_package(nowhere: dict[str, ProviderSettings]) -> None:
    opened(Config(providers=nowhere))
    opened(Config(model="openai:m"), OPENAI_API_KEY="k")
    assert "parrots" not in sys.modules


@pytest.mark.parametrize(
    ("model", "settings", "path"),
    [
        ("openai:gpt-5-mini", {}, "/v1/chat/completions"),  # at an address of the user's own
        ("openai:gpt-5.3-codex", {}, "/v1/responses"),
        ("openai:gpt-5.2-pro", {}, "/v1/responses"),
        ("openai:o3-pro-2025-06-10", {}, "/v1/responses"),
        ("openai:gemini-2.5-pro", {}, "/v1/chat/completions"),  # another maker's
        ("openai:deepseek-v4-pro", {}, "/v1/chat/completions"),
        ("openai:gpt-5-mini", {"api": "responses"}, "/v1/responses"),
        ("openai:gpt-5.3-codex", {"api": "chat"}, "/v1/chat/completions"),
        ("office:m", {"api": "responses"}, "/v1/responses"),
        ("office:m", {"api": "openai"}, "/v1/chat/completions"),
    ],
)
async def test_wire_format_is_the_one_that_was_set_or_that_the_model_wants(
    loopback_responses: LoopbackResponses, model: str, settings: dict[str, Any], path: str
) -> None:
    loopback_responses.fail(400, "no")
    access = at(loopback_responses.base_url, "k", **settings)
    await ask(opened(Config(model=model, providers={model.partition(":")[0]: access})))
    assert loopback_responses.requests[-1].path == path


async def test_model_s_own_wire_format_overrides_its_provider_s(loopback_responses: LoopbackResponses) -> None:
    loopback_responses.say("Hello")
    models = {"office:thinker": ModelSettings(api="responses")}
    config = Config(model="office:thinker", models=models, providers={"office": at(loopback_responses.base_url, "k")})
    assert answer(await ask(opened(config))).text == "Hello"


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("gpt-5-mini", True),
        ("o3", True),
        ("gpt-4o", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5-search-api", False),
        ("gpt-5-pro", True),
    ],
)
def test_openai_s_own_models_are_asked_as_they_want_it(model: str, *, wanted: bool) -> None:
    access = provider_access("openai", Config(), {})
    assert (with_api(access, model, ModelSettings()).provider.api == "responses") == wanted


@pytest.mark.parametrize("setting", ["provider", "model"])
def test_google_by_chat_completions_has_another_address(setting: str) -> None:
    own = ProviderSettings(api="chat" if setting == "provider" else "")
    access = provider_access("google", Config(providers={"google": own}), {})
    chosen = own if setting == "provider" else ModelSettings(api="chat")
    made = with_api(access, "gemini-2.5-pro", chosen)
    assert (made.provider.api, made.base_url) == ("chat", PROVIDERS["gemini"].base_url)
    native = with_api(provider_access("google", Config(), {}), "gemini-2.5-pro", ModelSettings())
    assert (native.provider.api, native.base_url) == ("gemini", PROVIDERS["google"].base_url)
