"""The providers we know: where each one listens, where its key is, and how it differs from the format that it speaks.

A new one is one line in `PROVIDERS`, which has them in the order in which keys and local servers are looked for.
A provider that isn't here works too, by its `base_url`, as plain OpenAI format.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NEW_LIMIT = "max_completion_tokens"
"""What OpenAI calls the limit of an answer since its models think."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, and its quirks as data. Each default is what most of them do."""

    name: str
    base_url: str = ""
    key_variable: str = ""
    """The environment variable that usually holds the key; empty: it needs none."""
    console: str = ""
    """The page on which a person looks after keys and money."""
    local: bool = False
    """It runs on the user's machine: its calls cost nothing."""
    start: str = ""
    """The command that starts it."""
    api: Literal["anthropic", "openai"] = "openai"
    """The wire format."""
    max_tokens: str = "max_tokens"
    """What the field is called that limits the answer."""
    stream_usage: bool = True
    """A stream tells its usage only when asked to by `stream_options`."""
    json_schema: Literal["never", "object", "alone", "always"] = "alone"
    """When the schema of the answer may be sent: never, not itself but that JSON is wanted, in requests without tools,
    in all.
    """
    thoughts_back: str = ""
    """The field in which it wants the thoughts back that led to a tool call; empty: it doesn't."""
    short_ids: bool = False
    """Ids of tool calls must be nine letters and digits."""
    heard_between: bool = False
    """Between the results of tools and what the user says there must be an answer."""
    thoughts_extra: bool = False
    """The tokens of thoughts aren't part of the tokens of the answer in its usage."""
    reasoning: Literal["effort", "object", "switch", "template"] = "effort"
    """How it is told how much to think: `reasoning_effort`, an object `reasoning`, a switch `thinking`, or by the
    model's own template.
    """
    cache_on_request: str = ""
    """Models, by the beginning of their names, whose prompts are cached only if the request asks for it."""


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            console="https://console.anthropic.com",
            api="anthropic",
        ),
        Provider(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            console="https://platform.openai.com",
            max_tokens=NEW_LIMIT,
            json_schema="always",
        ),
        Provider(
            "openrouter",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
            console="https://openrouter.ai/settings",
            reasoning="object",
            cache_on_request="anthropic/",
        ),
        Provider(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            console="https://aistudio.google.com",
        ),
        Provider(
            "mistral",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            console="https://console.mistral.ai",
            stream_usage=False,
            short_ids=True,
            heard_between=True,
        ),
        Provider(
            "deepseek",
            "https://api.deepseek.com",
            "DEEPSEEK_API_KEY",
            console="https://platform.deepseek.com",
            json_schema="object",
            thoughts_back="reasoning_content",
            reasoning="switch",
        ),
        Provider(
            "xai",
            "https://api.x.ai/v1",
            "XAI_API_KEY",
            console="https://console.x.ai",
            json_schema="always",
            thoughts_extra=True,
        ),
        Provider(
            "groq",
            "https://api.groq.com/openai/v1",
            "GROQ_API_KEY",
            console="https://console.groq.com",
            max_tokens=NEW_LIMIT,
        ),
        Provider(
            "together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", console="https://api.together.ai/settings"
        ),
        Provider(
            "ollama",
            "http://127.0.0.1:11434/v1",
            local=True,
            start="OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
        ),
        Provider("lmstudio", "http://127.0.0.1:1234/v1", local=True, start="lms server start"),
        Provider(
            "vllm",
            "http://127.0.0.1:8000/v1",
            local=True,
            start="vllm serve MODEL",
            reasoning="template",
        ),
        Provider(
            "llamacpp",
            "http://127.0.0.1:8080/v1",
            local=True,
            start="llama-server -m FILE",
            reasoning="template",
        ),
    )
}


def provider_named(name: str) -> Provider:
    """The provider of that name; an unknown one speaks plain OpenAI format. `llama.cpp` is `llamacpp`."""
    return PROVIDERS.get(name.replace(".", "")) or Provider(name)
