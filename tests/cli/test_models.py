"""`denizen models`: providers, keys, local servers, windows and prices."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.model import Model, lists

from denizen.messages import AssistantMessage, Thinking, ToolCall, Usage
from denizen.testing import LoopbackAnthropic


def rows(text: str) -> dict[str, str]:
    """The lines of tables by their first word; of several the first."""
    return {line.split()[0]: line for line in reversed(text.splitlines()) if line.strip()}


@pytest.fixture(autouse=True)
def served(model: Model) -> None:
    """The server on this machine has two models."""
    model.plays(lists("scripted", "other"))


def test_it_says_which_providers_can_be_asked_and_why(denizen: Run) -> None:
    table = rows(denizen("models", OPENAI_API_KEY="sk-planted-canary").out)
    assert table["openai"].split()[1:] == ["yes", "key", "from", "OPENAI_API_KEY"]
    assert "set ANTHROPIC_API_KEY" in table["anthropic"]
    assert "a server answers at" in table["test"]
    assert table["offline"].split()[1] == "yes"


def test_models_have_windows_and_prices(denizen: Run) -> None:
    ran = denizen("models", OPENAI_API_KEY="sk-planted-canary")
    _, window, given, taken = rows(ran.out)["openai:gpt-5-mini"].split()
    assert int(window.replace(",", "")) > 100_000
    assert 0 < float(given) < float(taken)
    assert "test:other" in ran.out
    assert "anthropic:claude" not in ran.out
    assert "canary" not in ran.out + ran.err


def test_a_named_provider_shows_its_models_without_a_key(denizen: Run) -> None:
    out = denizen("models", "anthropic").out
    assert "anthropic:claude" in out
    assert "openai" not in out


def test_a_provider_whose_models_nobody_tells_says_so(denizen: Run, home: Path, nobody: str) -> None:
    office = '[providers.office]\nbase_url = "https://models.example.com/v1"\n'
    (home / "denizen.toml").write_text(f'{office}[providers.vllm]\nbase_url = "{nobody}"\n')
    out = denizen("models", "office").out
    assert out.startswith("The models of office aren't known here. Use its own names: office:NAME\n")
    out = denizen("models", "vllm").out
    assert out.startswith(f"The models of vllm aren't known: no server answers at {nobody}.\n")


def test_a_provider_is_found_by_the_name_that_models_take(denizen: Run) -> None:
    assert denizen("models", "llama.cpp").out.startswith("The models of llamacpp aren't known: ")


def test_an_unknown_provider_is_wrong_use(denizen: Run) -> None:
    ran = denizen("models", "nobody")
    assert ran.status == 2
    assert "available: test, anthropic, openai" in ran.err
    assert denizen("models", "bedrok").err.endswith("No provider is called 'bedrok'; the nearest is 'bedrock'.\n")


def test_bedrock_is_asked_with_the_credentials_of_aws(denizen: Run) -> None:
    table = rows(denizen("models", "bedrock", AWS_PROFILE="work").out)
    assert all("anthropic." in name for name in table if name.startswith("bedrock:"))
    offers = [json.loads(denizen("models", "bedrock", "--json", AWS_PROFILE=name).out) for name in ("work", "")]
    assert [offer["ready"] for offer in offers] == [True, False]


def test_vertex_is_asked_with_the_application_default_credentials(denizen: Run, environ: dict[str, str]) -> None:
    def offer(**variables: str) -> Any:
        none = {"GOOGLE_APPLICATION_CREDENTIALS": "", "GOOGLE_CLOUD_PROJECT": "p"}
        return json.loads(denizen("models", "vertex", "--json", **none | variables).out)

    assert (offer()["ready"], "gcloud auth application-default login" in offer()["why"]) == (False, True)
    file = Path(environ["HOME"], ".config/gcloud/application_default_credentials.json")
    assert not offer(GOOGLE_APPLICATION_CREDENTIALS=str(file))["ready"]
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert (offer()["ready"], offer()["why"]) == (True, f"credentials from {file}")
    assert offer(GOOGLE_APPLICATION_CREDENTIALS=str(file))["ready"]


def test_as_json_every_provider_is_a_line(denizen: Run) -> None:
    offers: dict[str, Any] = {}
    for line in denizen("models", "--json").out.splitlines():
        offer = json.loads(line)
        offers[offer["provider"]] = offer
    assert (offers["test"]["ready"], offers["anthropic"]["ready"]) == (True, False)
    assert [model["name"] for model in offers["test"]["models"]] == ["test:scripted", "test:other"]


def test_it_says_which_model_is_in_use_and_why(denizen: Run, home: Path) -> None:
    assert f"model in use: test:scripted ({home / 'denizen.toml'}:1)" in denizen("models").out
    (home / "denizen.toml").unlink()
    assert "(none is set; the key is GROQ_API_KEY)" in denizen("models", GROQ_API_KEY="sk-planted-canary").out


def test_models_that_do_not_chat_are_not_shown(denizen: Run) -> None:
    out = denizen("models", "openai").out
    assert "openai:gpt-5-mini" in out
    assert not [word for word in ("embedding", "whisper", "tts", "image", "realtime") if word in out]


@pytest.mark.parametrize("command", [("models",), ("doctor",), ("config", "check"), ("ask", "hi")])
def test_what_follows_the_question_mark_of_a_base_url_is_not_shown(
    denizen: Run, home: Path, command: tuple[str, ...]
) -> None:
    url = "http://ann:planted-canary@127.0.0.1:9/v1?key=planted-canary"
    (home / "denizen.toml").write_text(f'model = "ollama:x"\n[providers.ollama]\nbase_url = "{url}"\n')
    ran = denizen(*command)
    assert ran.out + ran.err
    assert "planted-canary" not in ran.out + ran.err


# What is served now


@pytest.fixture
def claude(home: Path) -> Iterator[LoopbackAnthropic]:
    """A provider with a key, whose server this machine is."""
    with LoopbackAnthropic() as server:
        table = f'[providers.anthropic]\nbase_url = "{server.base_url}"\n'
        key = 'auth_profiles = [{ id = "a", api_key = "key-0123456789" }]\n'
        with (home / "denizen.toml").open("a") as file:
            file.write(table + key)
        yield server


def test_a_named_provider_lists_what_it_serves_now(denizen: Run, claude: LoopbackAnthropic) -> None:
    served = [{"id": "claude-sonnet-4-5"}, {"id": "claude-next", "max_input_tokens": 3_000_000}]
    claude.facts["/v1/models"] = {"data": served}
    ran = denizen("models", "anthropic")
    table = rows(ran.out)
    assert table["anthropic:claude-sonnet-4-5"].split()[1:] == ["200,000", "3.00", "15.00", "anthropic"]
    assert table["anthropic:claude-next"].split()[1:] == ["3,000,000", "anthropic"]
    assert [name for name in table if name.startswith("anthropic:")] == [
        *reversed([f"anthropic:{each['id']}" for each in served])
    ]
    assert "From the catalogue" not in ran.out
    assert json.loads(denizen("models", "anthropic", "--json").out)["source"] == "provider"


def test_a_provider_that_lists_nothing_is_shown_from_the_catalogue_and_says_so(
    denizen: Run, claude: LoopbackAnthropic
) -> None:
    out = denizen("models", "anthropic").out
    assert "anthropic:claude-haiku-4-5 " in out
    assert "From the catalogue, because the provider's own list isn't available: anthropic: " in out
    assert "From the catalogue: set MISTRAL_API_KEY" in denizen("models", "mistral").out


def test_all_providers_are_listed_without_asking_one(denizen: Run, claude: LoopbackAnthropic) -> None:
    claude.facts["/v1/models"] = {"data": [{"id": "claude-next"}]}
    assert "claude-next" not in denizen("models").out


# Trying one

USED = Usage(500, 20)
CALLS = AssistantMessage(
    [Thinking("A plum.", "c2ln"), ToolCall("t1", "echo", {"word": "plum"})], usage=USED, stop_reason="tool_calls"
)


def test_trying_a_model_says_what_works(denizen: Run, claude: LoopbackAnthropic) -> None:
    claude.say(CALLS, CALLS)
    table = rows(denizen("models", "test", "anthropic:claude-sonnet-4-5").out)
    assert [table[name].split()[1] for name in ("streaming", "tool", "thoughts", "usage")] == [
        "yes",
        "call",
        "yes",
        "yes",
    ]
    assert "500 in, 20 out, $0.001800" in table["usage"]
    tried = json.loads(denizen("models", "test", "anthropic:claude-sonnet-4-5", "--json").out)
    assert (tried["called"], tried["thoughts"], tried["usage"]["output"]) == (True, True, 20)
    assert [tool["name"] for tool in claude.requests[0].json["tools"]] == ["echo"]


def test_a_model_that_calls_no_tool_fails(denizen: Run, claude: LoopbackAnthropic) -> None:
    claude.say("A plum!")
    ran = denizen("models", "test", "anthropic:claude-sonnet-4-5")
    assert ran.status == 1
    assert "it said 'A plum!'" in rows(ran.out)["tool"]
    assert "doesn't call tools" in ran.err


def test_a_model_that_cannot_be_asked_says_why(denizen: Run, claude: LoopbackAnthropic) -> None:
    claude.fail(401, "invalid x-api-key")
    ran = denizen("models", "test", "anthropic:claude-sonnet-4-5")
    assert ran.status == 1
    assert "invalid x-api-key" in ran.err
    assert "providers.anthropic.auth_profiles" in ran.err
    assert len(claude.requests) == 1
    assert "set MISTRAL_API_KEY" in denizen("models", "test", "mistral:m").err
    assert "denizen models test m" in denizen("models", "mistral", "m").err


def test_trying_no_model_is_wrong_use(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").unlink()  # it has a provider of that name
    ran = denizen("models", "test")
    assert (ran.status, "Name the model to try: denizen models test PROVIDER:MODEL" in ran.err) == (2, True)
