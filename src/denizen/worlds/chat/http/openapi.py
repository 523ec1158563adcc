"""The description of all routes, made of what they read."""

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import msgspec
from aiohttp import hdrs, web

from denizen.sessions.search_index import UsageBy
from denizen.worlds.chat.http import history
from denizen.worlds.chat.http.access import OPEN_ROUTES, SignInRequest, post_sign_in
from denizen.worlds.chat.http.completions import ChatRequest, post_completion
from denizen.worlds.chat.http.controls import ControlRequest, post_control
from denizen.worlds.chat.http.conversation import MESSAGE_HEADER, SESSION_HEADER
from denizen.worlds.chat.http.events import EventFrame, EventGapFrame, get_events
from denizen.worlds.chat.http.jobs import post_job
from denizen.worlds.chat.http.messages import MAX_REPLIES, MAX_WAIT_S, NewMessage, get_replies, post_message
from denizen.worlds.chat.http.page_files import PAGE_ROUTES
from denizen.worlds.chat.http.pairings import PairingRequest, post_pairing
from denizen.worlds.chat.http.responses import ResponseRequest, post_response
from denizen.worlds.chat.http.search import MAX_DAYS, MAX_FOUND, UsageReport, get_search, get_usage
from denizen.worlds.chat.http.session_queue import QueueChange, post_queue
from denizen.worlds.chat.http.sessions import MAX_ENTRIES, PAGE, get_session, get_sessions
from denizen.worlds.chat.timers.cron import JobRequest


class ErrorDetail(msgspec.Struct):
    """What is wrong, and what to do."""

    message: str


class ErrorResponse(msgspec.Struct):
    """A refusal."""

    error: ErrorDetail


_BODIES: dict[Callable[..., Any], type[msgspec.Struct]] = {
    post_message: NewMessage,
    post_control: ControlRequest,
    post_pairing: PairingRequest,
    post_job: JobRequest,
    post_completion: ChatRequest,
    post_response: ResponseRequest,
    post_sign_in: SignInRequest,
    post_queue: QueueChange,
    history.post_fork: history.ForkRequest,
    history.post_undo: history.UndoRequest,
    history.post_redo: history.UndoRequest,
}
_MORE = (EventFrame, EventGapFrame, UsageReport)
"""Messages of the WebSocket, and the response of a route that also has another format."""
_ACCEPTED = frozenset({post_message, post_control})
_AFTER = {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 2**53}}
_SESSION = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in (SESSION_HEADER, MESSAGE_HEADER)]
_PARAMETERS: dict[Callable[..., Any], list[dict[str, Any]]] = {
    get_replies: [
        {"name": "chat", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}},
        {"name": "channel", "in": "query", "schema": {"enum": ["http", "cli"]}},
        _AFTER,
        {"name": "last", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": MAX_REPLIES}},
        {"name": "wait", "in": "query", "schema": {"type": "number", "minimum": 0, "maximum": MAX_WAIT_S}},
    ],
    get_sessions: [
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": PAGE}},
        {"name": "before", "in": "query", "schema": {"type": "number", "minimum": 0, "maximum": 2**53}},
        _AFTER | {"deprecated": True},
        *({"name": name, "in": "query", "schema": {"type": "string"}} for name in ("channel", "profile", "ended")),
    ],
    get_session: [
        _AFTER,
        _AFTER | {"name": "before"},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": MAX_ENTRIES}},
    ],
    history.get_diff: [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("from", "to")],
    history.get_context: [{"name": "at", "in": "query", "schema": {"type": "string"}}],
    get_search: [
        {"name": "q", "in": "query", "schema": {"type": "string"}},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": MAX_FOUND}},
    ],
    get_usage: [
        {"name": "by", "in": "query", "schema": {"enum": [*get_args(UsageBy)]}},
        {"name": "days", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": MAX_DAYS}},
        {"name": "format", "in": "query", "schema": {"enum": ["json", "csv"]}},
    ],
    get_events: [_AFTER],
    post_completion: _SESSION,
    post_response: _SESSION,
}


async def get_openapi(request: web.Request) -> web.Response:
    """This description."""
    return web.json_response(describe(request.app))


def describe(app: web.Application) -> dict[str, Any]:
    """The routes of an application, as OpenAPI 3.1."""
    routes = [(route, inspect.unwrap(route.handler)) for route in app.router.routes()]
    answers = [answer for _, handler in routes if (answer := _answer_of(handler))]
    structs = [*dict.fromkeys([ErrorResponse, *_BODIES.values(), *answers, *_MORE])]
    made, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(structs, made, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route, handler in routes:
        path = route.resource.canonical if route.resource else ""
        if route.method != hdrs.METH_HEAD and path not in PAGE_ROUTES:
            paths.setdefault(path, {})[route.method.lower()] = _operation(path, handler, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Denizen's gateway", "version": "1"},
        "security": [{"token": []}, {"browser": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "browser": {"type": "apiKey", "in": "cookie", "name": "denizen-PORT"},
            },
        },
    }


def _answer_of(handler: Callable[..., Any]) -> type[msgspec.Struct] | None:
    """The struct that a handler answers with, if any."""
    answer = get_type_hints(handler).get("return", web.StreamResponse)
    return answer if issubclass(answer, msgspec.Struct) else None


def _operation(path: str, handler: Callable[..., Any], schemas: dict[Any, Any]) -> dict[str, Any]:
    parameters = [*_PARAMETERS.get(handler, [])]
    parameters += [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in ("key", "id")
        if f"{{{name}}}" in path
    ]
    text = inspect.getdoc(handler) or ""
    refused = {"description": "A refusal.", "content": _json(schemas[ErrorResponse])}
    status = "202" if handler in _ACCEPTED else "101" if handler is get_events else "200"
    done: dict[str, Any] = {"description": "Done."}
    if answer := _answer_of(handler):
        done["content"] = _json(schemas[answer])
    operation: dict[str, Any] = {
        "summary": text.partition("\n")[0],
        "description": text,
        "parameters": parameters,
        "responses": {status: done, "default": refused},
    }
    if body := _BODIES.get(handler):
        operation["requestBody"] = {"required": True, "content": _json(schemas[body])}
    if path in OPEN_ROUTES:
        operation["security"] = list[dict[str, list[str]]]()
    return operation


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


ROUTES = [web.get("/openapi.json", get_openapi)]
