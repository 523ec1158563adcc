"""What a person reads when no model answered: what happened, to what, and what to do; over real HTTP."""

import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal

import pytest
from tests.models.calls import ASKED, failure
from tests.models.raw import Raw, whole

from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, ProviderSettings
from denizen.messages import AssistantMessage, Text
from denizen.models import open_model
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackOpenAI, Step
from denizen.testing.loopback import LoopbackServer

GOES_ON = "; a model in fallback_models would go on by itself"


async def told(base_url: str, *models: str, wire: Literal["anthropic", "openai"] = "openai", retries: int = 0) -> str:
    """The words of a call's failure, after `max_retries` more tries of each of `models`."""
    names = dict.fromkeys(model.partition(":")[0] for model in models)
    keys = [AuthProfileSettings(id="main", api_key="a-long-enough-key")]
    config = Config(
        model=models[0],
        fallback_models=[*models[1:]],
        agent=AgentSettings(max_retries=retries),
        providers={name: ProviderSettings(base_url=base_url, auth_profiles=keys, api=wire) for name in names},
    )
    model = open_model(config, environ={}, clock=FakeClock())
    try:
        return failure([event async for event in model.stream(ASKED)]).message
    finally:
        await model.close()


async def refused(server: LoopbackOpenAI, model: str, status: int, said: Any, wait: str = "") -> str:
    """The words where the model's provider answers with a status and a sentence."""
    server.fail(status, said, {"Retry-After": wait} if wait else None)
    return await told(server.base_url, model)


# No such model


@pytest.mark.parametrize(
    ("model", "status", "said", "nearest"),
    [
        ("openai:gpt-5-minni", 404, "The model `x` does not exist or you have no access.", "openai:gpt-5-mini"),
        ("groq:openai/gpt-oss-12b", 404, "The model `x` does not exist", "groq:openai/gpt-oss-120b"),
        ("openrouter:openai/gpt-5-minni", 400, "x is not a valid model ID", "openrouter:openai/gpt-5-mini"),
        ("mistral:mistral-large-latst", 400, "Invalid model: x", "mistral:mistral-large"),
        ("deepseek:deepseek-chatt", 400, "Model Not Exist", "deepseek:deepseek-chat"),
        ("xai:grok-4.77", 400, "Unknown model", "xai:grok-4.7"),
    ],
)
async def test_unknown_model_is_reported_with_the_nearest_that_are_known(
    loopback_openai: LoopbackOpenAI, model: str, status: int, said: str, nearest: str
) -> None:
    words = await refused(loopback_openai, model, status, said)
    provider = model.partition(":")[0]
    assert words.startswith(f"{model}: {said.removesuffix('.')} (HTTP {status}); the nearest known: {nearest}")
    assert words.endswith(f"; all: `denizen models {provider}`")


async def test_unknown_model_of_anthropic_is_reported_likewise(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.fail(404, "model: claude-sonet-4-5")
    words = await told(loopback_anthropic.base_url, "anthropic:claude-sonet-4-5", wire="anthropic")
    assert "(HTTP 404); the nearest known: anthropic:claude-sonnet-4-5" in words


async def test_model_like_none_is_answered_with_where_all_are_listed(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "openai:zzz", 404, "The model `zzz` does not exist")
    assert words.endswith("(HTTP 404); all: `denizen models openai`")


async def test_model_that_is_known_is_refused_to_the_key(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "openai:o3", 403, "Project `p` does not have access to model `o3`")
    assert words.endswith("; the name is right, so this key may not use it; others: `denizen models openai`")


async def test_model_that_a_server_here_lacks_is_answered_with_where_its_own_are_listed(
    loopback_openai: LoopbackOpenAI,
) -> None:
    words = await refused(loopback_openai, "ollama:qwen3", 404, 'model "qwen3" not found, try pulling it first')
    assert words.endswith("(HTTP 404); available: `denizen models ollama`")


async def test_model_that_calls_no_tools_can_act_in_its_text(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "ollama:gemma:2b", 400, "library/gemma:2b does not support tools")
    assert words.endswith('or commands in its text: agent.actions = "shell"')


# Keys, money, limits


@pytest.mark.parametrize(("status", "does"), [(401, "works"), (403, "may do that")])
async def test_refused_key_of_an_own_provider_names_its_setting(
    loopback_openai: LoopbackOpenAI, status: int, does: str
) -> None:
    words = await refused(loopback_openai, "office:m", status, "No")
    assert words == f"office:m: No (HTTP {status}); set a key that {does} in providers.office.auth_profiles"


async def test_missing_key_of_an_own_provider_names_its_setting(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(401, "No")
    providers = {"office": ProviderSettings(base_url=loopback_openai.base_url)}
    model = open_model(Config(model="office:m", providers=providers), environ={}, clock=FakeClock())
    error = failure([event async for event in model.stream(ASKED)])
    await model.close()
    assert error.message.endswith("; set a key that works in providers.office.auth_profiles")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (402, "Insufficient Balance"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}),
    ],
)
async def test_used_up_money_is_reported_with_the_place_to_look(
    loopback_openai: LoopbackOpenAI, status: int, said: Any
) -> None:
    words = await refused(loopback_openai, "openai:gpt-5-mini", status, said)
    place = "check the plan and credit of this key at https://platform.openai.com, or take another model"
    assert words.endswith(f"(HTTP {status}); {place}{GOES_ON}")


async def test_money_at_a_provider_of_ones_own_has_no_known_place(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "office:m", 402, "No money")
    assert words == "office:m: No money (HTTP 402); check the plan and credit of this key, or take another model"


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        ("20", "it asks to wait 20 s"),
        ("0.2", "it asks to wait 1 s"),
        ("120", "it asks to wait 120 s"),
        ("4000", "it asks to wait 67 min"),
        ("86000", "it asks to wait 24 h"),
        ("", "ask again in a minute"),
    ],
)
async def test_rate_limit_says_how_long_to_wait(loopback_openai: LoopbackOpenAI, wait: str, words: str) -> None:
    said = await refused(loopback_openai, "openai:gpt-5-mini", 429, "Slow down.", wait)
    assert said == f"openai:gpt-5-mini: Slow down (HTTP 429); {words}{GOES_ON}"


async def test_wish_to_wait_may_stand_in_the_words_alone(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "openai:gpt-5-mini", 429, "Slow down. Try again in 1m2.5s.")
    assert words.endswith(f"(HTTP 429); it asks to wait 63 s{GOES_ON}")


async def test_what_is_too_long_says_how_to_send_less(loopback_openai: LoopbackOpenAI) -> None:
    words = await refused(loopback_openai, "openai:gpt-5-mini", 413, b"<html>too large</html>")
    less = "begin a new session, attach less, or take a model that sees more"
    assert words == f"openai:gpt-5-mini: {HTTPStatus(413).phrase} (HTTP 413); {less}"
    words = await refused(loopback_openai, "office:m", 400, "prompt is too long")
    assert words.endswith(f"; {less}; set providers.office.context_window to what this one sees")


# Servers and the way to them


@pytest.mark.parametrize(("status", "said"), [(500, "Oops"), (529, "Overloaded")])
async def test_provider_in_trouble_is_asked_again_later_and_a_server_here_has_a_log(
    loopback_openai: LoopbackOpenAI, status: int, said: str
) -> None:
    words = await refused(loopback_openai, "openai:gpt-5-mini", status, said)
    assert words == f"openai:gpt-5-mini: {said} (HTTP {status}); ask again later{GOES_ON}"
    words = await refused(loopback_openai, "ollama:qwen3", status, said)
    assert words == f"ollama:qwen3: {said} (HTTP {status}); see the server's log"


def hangs_up(server: LoopbackServer) -> None:
    server.send(*server.wire.streamed(AssistantMessage([Text("Two lamps")]))[:2], Step.HANG_UP)


def ends_early(server: LoopbackServer) -> None:
    server.send(*server.wire.streamed(AssistantMessage([Text("Two lamps")]))[:2])


def is_damaged(server: LoopbackServer) -> None:
    server.send(b'data: {"choi\n\n')


@pytest.mark.parametrize("breaks", [hangs_up, ends_early, is_damaged])
async def test_stream_that_breaks_off_may_be_the_network(
    loopback_openai: LoopbackOpenAI, breaks: Callable[[LoopbackServer], None]
) -> None:
    breaks(loopback_openai)
    words = await told(loopback_openai.base_url, "openai:gpt-5-mini")
    assert words.endswith(f"; ask again; if that doesn't help, check the network{GOES_ON}")
    breaks(loopback_openai)
    words = await told(loopback_openai.base_url, "ollama:qwen3")
    assert words.endswith("; check that the server runs, and its log; providers.ollama.base_url sets its address")


async def test_server_here_that_does_not_run_is_to_be_started() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        words = await told(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "ollama:qwen3")
    assert "no server listens at http://127.0.0.1:" in words
    where = "or set providers.ollama.base_url to its address"
    assert words.endswith(f" (connection refused); start it (`OLLAMA_CONTEXT_LENGTH=32768 ollama serve`), {where}")


async def test_https_where_there_is_none_says_what_to_write(loopback_openai: LoopbackOpenAI) -> None:
    words = await told(loopback_openai.base_url.replace("http:", "https:"), "ollama:qwen3")
    assert words.endswith(": does it speak https? If not, write http:// in providers.ollama.base_url")


async def test_answer_compressed_in_a_way_of_its_own_says_where_to_look() -> None:
    async with Raw(whole(b"\x1f\x8b", "Content-Encoding: br")) as server:
        words = await told(server.url, "ollama:qwen3")
    assert words.endswith(
        "; a proxy on the way changes it: check that providers.ollama.base_url is the provider itself"
    )


@pytest.mark.parametrize(("status", "said"), [(404, b"404 page not found"), (404, b""), (405, b"")])
async def test_place_that_is_not_there_is_a_wrong_address(
    loopback_openai: LoopbackOpenAI, status: int, said: bytes
) -> None:
    words = await refused(loopback_openai, "office:my-model", status, said)
    assert words.endswith(f"(HTTP {status}); check providers.office.base_url: most end in /v1")


async def test_redirect_is_not_followed_and_says_so() -> None:
    async with Raw(whole(b"", "Location: https://example.com/v1", status="301 Moved Permanently")) as server:
        words = await told(server.url, "office:m")
    assert words.endswith("(HTTP 301); set providers.office.base_url to its target: redirects aren't followed")


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "'top_k' is not supported with this model"), (422, "Invalid model parameters"), (500, "")],
)
async def test_what_is_not_about_the_name_of_the_model_is_not_answered_with_names(
    loopback_openai: LoopbackOpenAI, status: int, said: str
) -> None:
    words = await refused(loopback_openai, "openai:gpt-5-mini", status, said)
    assert "denizen models" not in words


async def test_address_of_anthropic_has_no_version_at_its_end(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.fail(404, b"404 page not found")
    words = await told(loopback_anthropic.base_url, "anthropic:claude-sonnet-4-5", wire="anthropic")
    assert words.endswith("(HTTP 404); check providers.anthropic.base_url")


@pytest.mark.parametrize(
    ("status", "todo"),
    [
        (407, "write the user and password of the proxy into its address, in `proxy` or HTTPS_PROXY: http://me:"),
        (410, "take another model: `denizen models office`"),
        (511, "log in to this network first"),
    ],
)
async def test_status_that_says_it_all_says_what_to_do(loopback_openai: LoopbackOpenAI, status: int, todo: str) -> None:
    words = await refused(loopback_openai, "office:m", status, b"")
    assert words.startswith(f"office:m: {HTTPStatus(status).phrase} (HTTP {status}); {todo}")


# What is wrong with a request


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ("'top_k' is not supported with this model.", "top_k"),
        ("temperature: range: 0..1", "temperature"),
        ("max_completion_tokens is too large: 99999", "max_tokens"),
        ("max_output_tokens is too large: 99999", "max_tokens"),
        ("Unknown parameter: 'seed'", "seed"),
    ],
)
async def test_setting_that_is_refused_is_named(loopback_openai: LoopbackOpenAI, said: str, setting: str) -> None:
    words = await refused(loopback_openai, "office:m", 400, said)
    assert words == f"office:m: {said.removesuffix('.')} (HTTP 400); change agent.{setting} in denizen.toml"


@pytest.mark.parametrize(
    ("status", "said", "todo"),
    [
        (404, "No endpoints found that support image input", "take a model that sees pictures"),
        (400, "Invalid content type. image_url is only supported by certain models.", "take a model that sees"),
        (400, "Failed to deserialize: unknown variant `image_url`, expected `text`", "take a model that sees pictures"),
        (500, "image input is not supported - hint: you may need to provide the mmproj", "take a model that sees"),
        (400, "image exceeds 5 MB maximum: 6 MB > 5 MB", "begin a new session with a smaller picture"),
        (400, "image dimensions exceed max allowed size: 8000 pixels", "begin a new session with a smaller picture"),
        (404, "No endpoints found that support tool use", "use a model that calls tools, or commands in its text"),
        (403, "Country, region, or territory not supported", "use a provider that is available in your region"),
        (400, "User location is not supported for the API use.", "use a provider that is available in your region"),
        (
            403,
            "x requires moderation. Your input was flagged for harassment",
            "rephrase it, or use another model",
        ),
        (403, "Your account has been flagged for unusual activity.", "set a key that may do that"),
        (400, "Invalid prompt: your prompt was flagged as potentially violating our policy", "rephrase it"),
        (400, "Output blocked by content filtering policy", "rephrase it, or use another model"),
        (400, "Client sent an HTTP request to an HTTPS server.", "write https:// in providers.office.base_url"),
        (
            404,
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            'set api = "responses" in providers.office',
        ),
        (404, "Cannot POST /v1/responses", 'set api = "chat" in providers.office'),
        (422, "Something that nobody knows", "asking the same again won't help: begin a new session, or take"),
    ],
)
async def test_refusal_says_what_to_do(loopback_openai: LoopbackOpenAI, status: int, said: str, todo: str) -> None:
    words = await refused(loopback_openai, "office:m", status, said)
    assert words.startswith(f"office:m: {said.removesuffix('.')} (HTTP {status}); {todo}")


@pytest.mark.parametrize("body", [b"null", b"Hello", b'"Hi"'])
async def test_answer_in_another_format_names_what_may_be_wrong(loopback_openai: LoopbackOpenAI, body: bytes) -> None:
    words = await refused(loopback_openai, "office:m", 200, body)
    assert words.endswith(
        "; check that providers.office.base_url is a model server, and providers.office.api its format"
    )


# Several models


async def test_each_model_has_a_line_of_its_own(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(401, "Wrong key")
    loopback_openai.fail(429, "Slow down", {"Retry-After": "30"})
    assert await told(loopback_openai.base_url, "openai:gpt-5-mini", "groq:openai/gpt-oss-20b") == (
        "openai:gpt-5-mini: Wrong key (HTTP 401); set a key that works in providers.openai.auth_profiles\n"
        "groq:openai/gpt-oss-20b: Slow down (HTTP 429); it asks to wait 30 s"
    )


async def test_advice_is_given_once_however_often_it_failed(loopback_openai: LoopbackOpenAI) -> None:
    for _ in range(4):
        loopback_openai.fail(500, "Oops")
    words = await told(loopback_openai.base_url, "openai:gpt-5-mini", retries=3)
    assert words == f"openai:gpt-5-mini: Oops (HTTP 500); ask again later{GOES_ON}"
