"""How much a model thinks before it answers: one wish, in the fields that each provider has for it."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from denizen.config.pattern import pattern
from denizen.models.providers import Provider
from denizen.ports import Level, Reasoning

BUDGETS: Final[Mapping[Level, int]] = {"none": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
"""The tokens of each level, where a provider wants tokens."""

MIN_BUDGET: Final = 1_024
"""Tokens of thoughts that Claude takes at least, and that are left for the answer."""

_ADAPTIVE: Final = pattern(r"claude-[a-z]+-(4-[6-9](?!\d)|[5-9])|claude-mythos|claude-fable")
_THINKS_UNASKED: Final = pattern(r"claude-[a-z]+-[5-9]|claude-mythos|claude-fable")
_THINKS_BETWEEN_TOOLS: Final = pattern(r"claude-sonnet-5-5")
"""Claude models that, to think least, do so between calls of tools only."""
_CAN_STOP: Final = pattern(r"claude-((opus|sonnet)-5(?!-\d(?!\d))|haiku-5-5)")
"""Those that think unasked, and needn't."""
_CANT_THINK: Final = pattern(r"claude-(2|instant|3-(opus|sonnet|haiku|5))")
_REFUSE_EFFORT: Final = {
    "openai": pattern(r"^(?!.*(\bo\d|gpt-[5-9]|gpt-oss|codex))"),
    "groq": pattern(r"^(?!.*(gpt-oss|qwen))"),
    "xai": pattern(r"build|code|non-reasoning|grok-(2|3(?!-mini)|4(?!\.[3-9]))"),
}
"""Models, by provider, that refuse a request with an effort."""
_GEMINI_BUDGET: Final = pattern(r"gemini-2\.5-(pro|flash-lite|flash)(?!.*(image|tts|live))")
_GEMINI_LEVEL: Final = pattern(r"gemini-([3-9]|(pro|flash|flash-lite)-latest)(?!.*(image|tts|live))")
_GEMINI_BUDGETS: Final = {"pro": (128, 32_768), "flash": (1, 24_576), "flash-lite": (512, 24_576)}
"""The least and the most tokens that Gemini 2.5 takes for thoughts; only the first can't do without."""
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high")
_LEAST_EFFORTS: Final = (
    (pattern(r"gpt-5-pro"), "high"),
    (pattern(r"gpt-5\.\d+-pro"), "medium"),
    (pattern(r"\bo\d|gpt-oss|codex"), "low"),
    (pattern(r"gpt-5(?!\.)"), "minimal"),
)
"""The least that OpenAI's models think; those that aren't here needn't."""


def budget(wish: Reasoning | None) -> int:
    """Tokens that the thoughts may take."""
    return wish if isinstance(wish, int) else BUDGETS[wish or "none"]


def room(model: str, wish: Reasoning | None) -> int:
    """Tokens that the thoughts may take on top of the answer; newer Claude models think unasked, too."""
    if budget(wish) or not _THINKS_UNASKED.search(model):
        return budget(wish)
    return BUDGETS["high" if wish is None else "low"]


def level(wish: Reasoning) -> Level:
    """The level that is nearest to a number of tokens."""
    if not isinstance(wish, int):
        return wish
    return next((name for name in get_args(Level) if wish <= BUDGETS[name]), "high")


def thinks_adaptively(model: str) -> bool:
    """Whether a Claude model chooses how much it thinks; earlier ones want a round of tools to begin with thoughts."""
    return _ADAPTIVE.search(model) is not None


def anthropic_fields(model: str, wish: Reasoning | None, max_tokens: int) -> dict[str, Any]:
    """Those of Anthropic Messages; newer models choose by themselves how much they think, others get a budget.

    Of newer models the thoughts are asked for: they keep them back otherwise.

    https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
    """
    shown = {"thinking": {"type": "adaptive", "display": "summarized"}}
    if wish is None or not budget(wish):
        if not _THINKS_UNASKED.search(model):
            return {}
        return shown if wish is None else _least_of_claude(model)
    if _CANT_THINK.search(model):
        return {}
    if _ADAPTIVE.search(model):
        return shown | {"output_config": {"effort": level(wish)}}
    tokens = min(budget(wish), max_tokens - MIN_BUDGET)
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}} if tokens >= MIN_BUDGET else {}


def _least_of_claude(model: str) -> dict[str, Any]:
    """The fields that make a model which thinks by default think as little as possible."""
    if _THINKS_BETWEEN_TOOLS.search(model):
        return {"thinking": {"type": "between_tools"}}
    return {"thinking": {"type": "disabled"}} if _CAN_STOP.search(model) else {"output_config": {"effort": "low"}}


def gemini_fields(model: str, wish: Reasoning | None) -> dict[str, Any]:
    """Those of Gemini's `thinkingConfig`: version 2.5 takes tokens, later ones a level; other models don't think.

    https://ai.google.dev/gemini-api/docs/thinking
    """
    if wish is None:
        return {}
    shown = {"includeThoughts": True} if budget(wish) else {}
    if found := _GEMINI_BUDGET.search(model):
        least, most = _GEMINI_BUDGETS[found[1]]
        off = not budget(wish) and found[1] != "pro"
        return {"thinkingBudget": 0 if off else min(max(budget(wish), least), most), **shown}
    if not _GEMINI_LEVEL.search(model):
        return {}
    least_level = "minimal" if "flash" in model else "low"
    return {"thinkingLevel": level(wish) if budget(wish) else least_level, **shown}


def openai_fields(provider: Provider, model: str, wish: Reasoning) -> dict[str, Any]:
    """Those of Chat Completions and what others made of them."""
    effort = level(wish)
    if not takes_effort(provider, model):
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
        case "effort":
            return {"reasoning_effort": effort if effort != "none" else _least_effort(provider, model)}


def responses_fields(provider: Provider, model: str, wish: Reasoning) -> dict[str, Any]:
    """Those of OpenAI's Responses; a summary of the thoughts is asked for with them.

    https://platform.openai.com/docs/guides/reasoning
    """
    if not takes_effort(provider, model):
        return {}
    wished, least = level(wish), _least_effort(provider, model)
    effort = max(wished, least, key=_EFFORTS.index)
    return {"reasoning": {"effort": effort} if wished == "none" else {"effort": effort, "summary": "auto"}}


def takes_effort(provider: Provider, model: str) -> bool:
    """Whether a request may set the effort: the model isn't known to refuse it."""
    refuses = _REFUSE_EFFORT.get(provider.name)
    return not (refuses and refuses.search(model))


def _least_effort(provider: Provider, model: str) -> str:
    """The lowest effort that a model accepts."""
    if provider.name != "openai":
        return "low" if "gpt-oss" in model else "none"
    return next((least for words, least in _LEAST_EFFORTS if words.search(model)), "none")
