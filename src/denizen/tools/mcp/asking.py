"""Questions of a server to the person (elicitation), asked field by field through the turn's host."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

_TRIES = 3
"""How often one question is asked, at most."""
_MOST_FIELDS = 20
_LONGEST = 2000
"""Characters of a server's words in a question."""
_KINDS = {"integer": "an integer", "number": "a number", "boolean": "yes or no", "array": "some, with commas between"}


async def elicit(server: str, params: "ElicitRequestParams", turn: ToolContext) -> "ElicitResult":
    """What the person answers a server. Nobody being there cancels the question, an empty answer declines it."""
    from mcp_types import ElicitRequestURLParams, ElicitResult

    message = f"The MCP server {server} asks: {params.message[:_LONGEST]}"
    try:
        if isinstance(params, ElicitRequestURLParams):
            given = await turn.ask(f"{message}\nIt wants you to open {params.url} and to say when you are done.")
            return ElicitResult(action=_action(given))
        fields: Mapping[str, Any] = params.requested_schema.get("properties", {})
        required = params.requested_schema.get("required", ())
        if len(fields) > _MOST_FIELDS:
            return ElicitResult(action="decline")
        if not fields:
            return ElicitResult(action=_action(await turn.ask(message)), content={})
        content: dict[str, Any] = {}
        for name, field in fields.items():
            given, value = await _field(turn, message, name, field, required=name in required)
            if value is not None:
                content[name] = value
            elif name in required or given.unasked:
                return ElicitResult(action="cancel" if given.unasked else "decline")
        return ElicitResult(action="accept", content=content)
    except ToolRefused:  # nobody is there
        return ElicitResult(action="cancel")


def _action(given: Answer) -> Any:
    return "accept" if given.allow else "cancel" if given.unasked else "decline"


async def _field(
    turn: ToolContext, message: str, name: str, field: Mapping[str, Any], *, required: bool
) -> tuple[Answer, Any]:
    """The answer for a field and its value; None: there is none."""
    about = str(field.get("description") or "")[:_LONGEST]
    choices = _choices(field)
    wanted = [f"one of {', '.join(choices)}"] if choices and field.get("type") != "array" else []
    wanted += [f"of {', '.join(choices)}"] if choices and not wanted else []
    wanted += [_KINDS[kind] for kind in [field.get("type")] if kind in _KINDS]
    wanted += [] if required else ["may be left empty"]
    question = f"{message}\n{field.get('title') or name}{f': {about}' if about else ''} ({'; '.join(wanted) or 'text'})"
    given, wrong = await turn.ask(question), 0
    while (text := given.text.strip()) and not given.unasked:
        try:
            return given, _value(text, field, choices)
        except (ValueError, KeyError):
            wrong += 1
            if wrong == _TRIES:
                break
        given = await turn.ask(f"{text[:100]!r} doesn't fit.\n{question}")
    return given, None


def _choices(field: Mapping[str, Any]) -> list[str]:
    """The values to choose from; servers write them in several ways."""
    items = field.get("items", field)
    if not isinstance(items, dict):
        return []
    options = items.get("oneOf") or items.get("anyOf") or ()
    return [str(each) for each in items.get("enum") or [option.get("const") for option in options]]


def _value(text: str, field: Mapping[str, Any], choices: list[str]) -> Any:
    """The text as the field's type. Raises ValueError or KeyError where it isn't that."""
    match field.get("type"):
        case "boolean":
            return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}[text.lower()]
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "array":
            return [_chosen(each.strip(), choices) for each in text.split(",")]
        case _:
            return _chosen(text, choices)


def _chosen(text: str, choices: list[str]) -> str:
    if choices and text not in choices:
        raise ValueError(text)
    return text
