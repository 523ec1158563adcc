"""The models that a provider serves now, read from its own list, whichever provider's form that has."""

from collections.abc import Iterator
from typing import Any, Final

from denizen.models.catalogue import PricedModel, answers_chats

_WINDOW_FIELDS: Final = (
    "max_input_tokens",
    "inputTokenLimit",
    "context_length",
    "context_window",
    "max_context_length",
)
"""Fields of a model that say how much it sees: Anthropic's, Gemini's, OpenRouter's, Groq's and Mistral's."""
_CHAT_METHODS: Final = ("generateContent",)
"""The method that a chat model must support; only Gemini's list names methods."""


def models_in(answer: Any, provider: str) -> Iterator[PricedModel]:
    """The models of a list that chat, with what the list says of each; nothing if it isn't a list."""
    listed = answer.get("data") or answer.get("models") if isinstance(answer, dict) else answer
    for each in listed if isinstance(listed, list) else ():
        name = each.get("id") or each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str) or "generateContent" not in each.get("supportedGenerationMethods", _CHAT_METHODS):
            continue
        name = name.removeprefix("models/")
        if each.get("lifecycle") == "retired" or not answers_chats(provider, name):
            continue
        window = next((each[field] for field in _WINDOW_FIELDS if isinstance(each.get(field), int)), 0)
        yield PricedModel(name, window, *_prices(each.get("pricing")))


def _prices(pricing: Any) -> tuple[float | None, float | None]:
    """US dollars per million tokens, of what is sent and of what comes back."""
    match pricing:
        case {"prompt": str(sent), "completion": str(answered)}:  # OpenRouter: dollars per token
            return _million(sent), _million(answered)
        case {"input": int() | float() as sent, "output": int() | float() as answered}:  # Together
            return float(sent), float(answered)
    return None, None


def _million(dollars: str) -> float | None:
    try:
        price = float(dollars) * 1e6
    except ValueError:
        return None
    return price if price >= 0 else None  # a router's own choice of models has none
