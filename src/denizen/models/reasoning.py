"""How much a model thinks before it answers: one wish, in the fields that each provider has for it."""

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from denizen.models.providers import Provider
from denizen.ports import Level, Reasoning

BUDGETS: Final[Mapping[Level, int]] = {"none": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
"""The tokens of each level, where a provider wants tokens."""

LEAST_BUDGET: Final = 1_024
"""Tokens of thoughts that Claude takes at least, and that are left for the answer."""

_ADAPTIVE: Final = re.compile(r"claude-[a-z]+-(4-[6-9](?!\d)|[5-9])|claude-mythos|claude-fable")
_NO_THOUGHTS: Final = re.compile(r"claude-(2|instant|3-(opus|sonnet|haiku|5))")
_REFUSE_EFFORT: Final = {
    "openai": re.compile(r"^(?!.*(\bo\d|gpt-[5-9]|gpt-oss|codex))"),
    "groq": re.compile(r"^(?!.*(gpt-oss|qwen))"),
    "xai": re.compile(r"build|code|non-reasoning|grok-(2|3(?!-mini)|4(?!\.[3-9]))"),
}
"""Models, by provider, that refuse a request with an effort."""


def budget(wish: Reasoning | None) -> int:
    """Tokens that the thoughts may take."""
    return wish if isinstance(wish, int) else BUDGETS[wish or "none"]


def level(wish: Reasoning) -> Level:
    """The level that is nearest to a number of tokens."""
    if not isinstance(wish, int):
        return wish
    return next((name for name in get_args(Level) if wish <= BUDGETS[name]), "high")


def anthropic_fields(model: str, wish: Reasoning, max_tokens: int) -> dict[str, Any]:
    """Those of Anthropic Messages; newer models choose by themselves how much they think, others get a budget.

    https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
    """
    tokens = min(budget(wish), max_tokens - LEAST_BUDGET)
    if not budget(wish) or _NO_THOUGHTS.search(model):
        return {}
    if _ADAPTIVE.search(model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level(wish)}}
    if tokens < LEAST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def openai_fields(provider: Provider, model: str, wish: Reasoning) -> dict[str, Any]:
    """Those of Chat Completions and what others made of them."""
    effort = level(wish)
    if (refuses := _REFUSE_EFFORT.get(provider.name)) and refuses.search(model):
        return {}
    match provider.reasoning:
        case "object":  # https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
            return {"reasoning": {"max_tokens": wish} if isinstance(wish, int) and wish else {"effort": effort}}
        case "switch":  # https://api-docs.deepseek.com/guides/thinking_mode
            if effort == "none":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled"}, "reasoning_effort": effort}
        case "template":  # https://docs.vllm.ai/en/latest/features/reasoning_outputs
            thinks = {"chat_template_kwargs": {"enable_thinking": effort != "none"}}
            return thinks if effort == "none" else {"reasoning_effort": effort, **thinks}
        case "effort" if effort == "none":  # the least, of models that can't do without
            if provider.name == "openai" and (found := re.search(r"\b(o\d|gpt-5(?!\.)|gpt-oss)", model)):
                return {"reasoning_effort": "minimal" if found[1] == "gpt-5" else "low"}
            return {"reasoning_effort": "low" if "gpt-oss" in model else "none"}
        case "effort":
            return {"reasoning_effort": effort}
