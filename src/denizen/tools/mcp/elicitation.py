"""Questions of a server to the person (elicitation), asked field by field through the host of the turn they are for."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext, TurnEnded

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

_MAX_TRIES = 3
"""Attempts at one question."""
_MAX_TEXT_CHARS = 2000
"""Characters of a server's words in a question."""
_KINDS = {"integer": "an integer", "number": "a number", "boolean": "yes or no", "array": "some, with commas between"}


@dataclass(eq=False)
class _Request:
    """A request that runs for a turn, and the question that is asked for it."""

    turn: ToolContext | None
    limit: asyncio.Timeout
    asking: "asyncio.Task[ElicitResult] | None" = None
    ended: TurnEnded | None = None


_CURRENT: ContextVar[_Request | None] = ContextVar("mcp_request", default=None)


@dataclass(eq=False)
class Elicitations:
    """A server's questions; its requests may take so many `seconds`, not counting the time while the person is asked.
    After a request, nobody is asked for it any more.
    """

    server: str
    seconds: float
    requests: list[_Request] = field(default_factory=list)

    @contextmanager
    def during(self, turn: ToolContext | None, limit: asyncio.Timeout) -> Generator[None]:
        """While a request of that turn runs, of whose time that is the limit, the person may be asked for it.

        Raises TurnEnded if the turn is parked until the answer: the server got a cancellation.
        """
        request = _Request(turn, limit)
        self.requests.append(request)
        mark = _CURRENT.set(request)
        try:
            yield
        finally:
            _CURRENT.reset(mark)
            self.requests.remove(request)
            if request.asking:
                request.asking.cancel()
            if request.ended:
                raise request.ended

    async def ask(self, context: "ClientRequestContext", params: "ElicitRequestParams") -> "ElicitResult":
        """Ask the person whose request it belongs to; if that isn't clear, nobody: it may be another's."""
        from mcp_types import ElicitResult

        request = _CURRENT.get()
        if request not in self.requests:
            sessions = {each.turn.session_key for each in self.requests if each.turn}
            request = self.requests[-1] if len(sessions) == 1 else None
        if request is None or request.turn is None or (request.asking and not request.asking.done()):
            return ElicitResult(action="cancel")
        request.limit.reschedule(None)
        asking = request.asking = asyncio.create_task(_elicit(self.server, params, request.turn))
        try:
            await asyncio.wait([asking])
        finally:
            asking.cancel()
        if asking.cancelled() or request not in self.requests:
            return ElicitResult(action="cancel")
        request.limit.reschedule(asyncio.get_running_loop().time() + self.seconds)
        try:
            return asking.result()
        except TurnEnded as ended:
            request.ended = ended
            return ElicitResult(action="cancel")


async def _elicit(server: str, params: "ElicitRequestParams", turn: ToolContext) -> "ElicitResult":
    """The person's answer. The question is cancelled if nobody is there, and declined by an empty answer."""
    from mcp_types import ElicitRequestURLParams, ElicitResult

    message = f"The MCP server {server} asks: {params.message[:_MAX_TEXT_CHARS]}"
    content: dict[str, Any] = {}
    try:
        if isinstance(params, ElicitRequestURLParams):
            given = await turn.ask(f"{message}\nIt wants you to open {params.url} and to say when you are done.")
            return ElicitResult(action=_action(given))
        fields: Mapping[str, Any] = params.requested_schema.get("properties", {})
        if not fields:
            return ElicitResult(action=_action(await turn.ask(message)), content={})
        for name, field in fields.items():
            required = name in params.requested_schema.get("required", ())
            given, value = await _ask_for(turn, message, name, field, required=required)
            if value is not None:
                content[name] = value
            elif required or given.unasked:
                return ElicitResult(action="cancel" if given.unasked else "decline")
        return ElicitResult(action="accept", content=content)
    except ToolRefused:  # nobody is there
        return ElicitResult(action="cancel")


def _action(given: Answer) -> Any:
    if given.allow:
        return "accept"
    return "cancel" if given.unasked else "decline"


async def _ask_for(
    turn: ToolContext, message: str, name: str, field: Mapping[str, Any], *, required: bool
) -> tuple[Answer, Any]:
    """The answer for a field and its value; None: there is none."""
    items = field["items"] if isinstance(field.get("items"), dict) else field
    options = items.get("oneOf") or items.get("anyOf") or ()  # servers write choices in several ways
    choices = [str(each) for each in items.get("enum") or [option.get("const") for option in options]]
    wanted = _KINDS.get(str(field.get("type")), "text") + (f": {', '.join(choices)}" if choices else "")
    about = f": {field['description'][:_MAX_TEXT_CHARS]}" if field.get("description") else ""
    asked = f"{message}\n{field.get('title') or name}{about} ({wanted}{'' if required else '; may be left empty'})"
    question = asked
    for _ in range(_MAX_TRIES):
        given = await turn.ask(question)
        text = given.text.strip()
        if not text or given.unasked:
            break
        try:
            return given, _value(text, field.get("type"), choices)
        except (ValueError, KeyError):
            question = f"{text[:100]!r} doesn't fit.\n{asked}"
    return given, None


def _value(text: str, kind: object, choices: list[str]) -> Any:
    """The text as a value of that kind. Raises ValueError or KeyError if it is none."""
    match kind:
        case "boolean":
            return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}[text.lower()]
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "array":
            return [_value(each.strip(), "string", choices) for each in text.split(",")]
        case _:
            if choices and text not in choices:
                raise ValueError(text)
            return text
