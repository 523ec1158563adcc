"""Prices and windows agree with genai-prices, cached tokens and long prompts included, and cost little to ask for."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price, data_snapshot

from denizen.messages import Usage
from denizen.models.catalogue import cost, known_models, limits
from denizen.models.resolve import DEFAULT_MODELS
from denizen.ports import Limits

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PROVIDERS = ["anthropic", "openai", "openrouter", "gemini", "mistral", "deepseek", "xai", "groq", "together", "bedrock"]


def test_window_is_the_catalogues() -> None:
    assert limits("anthropic", "claude-sonnet-4-5") == Limits(200_000)
    assert limits("openai", "gpt-5-mini").window == 400_000


@pytest.mark.parametrize(("provider", "model"), [("anthropic", "claude-nobody-knows"), ("acme", "m"), ("", "")])
def test_unknown_model_has_the_usual_limits_and_no_price(provider: str, model: str) -> None:
    assert limits(provider, model) == Limits(200_000)
    assert cost(provider, model, Usage(10, 10), NOW) is None


def test_cached_tokens_have_their_own_price() -> None:
    dollars = cost("anthropic", "claude-sonnet-4-5", Usage(1_000, 100, cache_read=10_000, cache_write=2_000), NOW)
    assert dollars == pytest.approx((1_000 * 3 + 100 * 15 + 10_000 * 0.3 + 2_000 * 3.75) / 1e6)


def test_long_prompt_costs_more_for_every_token() -> None:
    short, long = (cost("anthropic", "claude-sonnet-4-5", Usage(sent), NOW) for sent in (200_000, 200_001))
    assert short == pytest.approx(0.6)
    assert long == pytest.approx(1.200006)


def test_price_is_that_of_its_time() -> None:
    before, after = (
        cost("gemini", "gemini-3.8-flash", Usage(1_000_000), datetime(year, 1, 1, tzinfo=UTC)) for year in (2026, 2027)
    )
    assert (before, after) == (pytest.approx(0.75), pytest.approx(1.5))


def test_call_without_counted_tokens_has_no_known_price() -> None:
    assert cost("openai", "gpt-5-mini", Usage(), NOW) is None


def test_free_model_costs_nothing() -> None:
    assert cost("openrouter", "openai/gpt-oss-20b:free", Usage(1_000, 100), NOW) == 0.0


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("sent", [1_000, 150_000, 300_000])
def test_every_price_is_that_of_genai_prices(provider: str, sent: int) -> None:
    usage = Usage(sent, 700, cache_read=sent // 2, cache_write=sent // 10)
    whole = sent + sent // 2 + sent // 10
    theirs = PricedUsage(
        input_tokens=whole, output_tokens=700, cache_read_tokens=sent // 2, cache_write_tokens=sent // 10
    )
    compared = 0
    for model in known_models(provider):
        ours = cost(provider, model.id, usage, NOW)
        if ours is not None:
            price = calc_price(theirs, model.id, provider_id=provider, genai_request_timestamp=NOW)
            assert ours == pytest.approx(float(price.total_price)), model.id
            compared += 1
    assert compared > 5


def test_lists_models_with_windows_and_prices() -> None:
    models = {model.id: model for model in known_models("anthropic")}
    assert models["claude-sonnet-4-5"] == ("claude-sonnet-4-5", 200_000, pytest.approx(3.0), pytest.approx(15.0))
    assert [*known_models("acme")] == []


@pytest.mark.parametrize(("provider", "model"), DEFAULT_MODELS.items())
def test_usual_models_are_known_and_not_given_up(provider: str, model: str) -> None:
    _, known = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    assert not known.deprecated
    assert cost(provider, model, Usage(1_000, 100), NOW)


def test_nothing_is_read_before_it_is_asked_for() -> None:
    program = """
import sys
from denizen.runtime.clock import SystemClock
from denizen.config import Config
from denizen.models import open_model

open_model(Config(model="anthropic:claude-sonnet-4-5"), environ={"ANTHROPIC_API_KEY": "key"}, clock=SystemClock())
print("genai_prices" in sys.modules, "anthropic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("provider", "chats", "others"),
    [
        ("openai", {"gpt-5-mini", "gpt-4o", "o3"}, {"text-embedding-3-small", "whisper-1", "gpt-image-1", "tts-1"}),
        ("openai", {"gpt-4o-search-preview"}, {"gpt-4o-audio-preview", "davinci-002", "ft:gpt-4o", "moderation"}),
        ("openai", {"gpt-5", "gpt-5-pro", "gpt-5.3-codex"}, {"o3-deep-research"}),
        ("gemini", {"gemini-2.5-pro"}, {"gemini-embedding-001", "gemini-2.5-flash-tts", "claude-3-opus"}),
        ("mistral", {"mistral-large", "codestral"}, {"mistral-embed", "mistral-ocr-latest"}),
        ("groq", {"openai/gpt-oss-120b"}, {"whisper-large-v3", "meta-llama/llama-guard-4-12b"}),
        ("bedrock", {"regional.anthropic.claude-3-5-haiku-20241022-v1:0"}, {"amazon.nova-lite-v1:0"}),
    ],
)
def test_models_that_are_listed_chat(provider: str, chats: set[str], others: set[str]) -> None:
    listed = {model.id for model in known_models(provider)}
    assert chats <= listed
    assert not others & listed


@pytest.mark.parametrize("provider", DEFAULT_MODELS)
def test_usual_model_is_listed_or_unknown(provider: str) -> None:
    listed = {model.id for model in known_models(provider)}
    known = data_snapshot.find_provider_by_id(data_snapshot.get_snapshot().providers, provider)
    assert known
    assert DEFAULT_MODELS[provider] in listed or DEFAULT_MODELS[provider] not in {model.id for model in known.models}


def test_what_is_written_to_a_cache_for_an_hour_costs_what_the_answer_says() -> None:
    written = Usage(0, 0, cache_write=3_000, cache_write_1h=1_000)
    dollars = (3.75 * 2_000 + 6 * 1_000) / 1e6
    assert cost("anthropic", "claude-sonnet-4-5", written, NOW) == pytest.approx(dollars)
    assert cost("anthropic", "claude-sonnet-4-5", written, NOW, for_an_hour=True) == pytest.approx(dollars)
