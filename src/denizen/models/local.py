"""Model servers on this machine: whether one answers, and which models it has."""

import http.client
import json
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 0.3
"""Seconds that a server on this machine gets to say what it has."""

MAX_ANSWER_BYTES = 1_000_000
"""Bytes of its answer that are read."""


def served_models(base_url: str) -> list[str]:
    """The chat models of the server at `base_url` (`http://127.0.0.1:11434/v1`) in its order; none if none answers.

    A port on which nobody listens costs a fraction of a millisecond. Blocks for `TIMEOUT_S` at most.
    """
    match _Server(base_url).get("/models"):
        case {"data": [*models]}:
            names = [str(model["id"]) for model in models if isinstance(model, dict) and model.get("id")]
            return [name for name in names if "embed" not in name.lower()]
    return []


def served_window(base_url: str, model: str, provider: str = "", api_key: str = "") -> int:
    """Tokens that the server at `base_url` says the model sees; 0: it doesn't say. Blocks while it is asked.

    A server of no known `provider` is asked in each of their ways.
    """
    server = _Server(base_url, api_key)
    ways = [_WINDOWS[provider]] if provider in _WINDOWS else _WINDOWS.values()
    return next((window for way in ways if (window := way(server, model))), 0)


def is_listening(base_url: str) -> bool:
    """Whether something on this machine takes connections there. Blocks for `TIMEOUT_S` at most."""
    where = urlsplit(base_url)
    default = 443 if where.scheme == "https" else 80
    with suppress(OSError), socket.create_connection((where.hostname or "", where.port or default), TIMEOUT_S):
        return True
    return False


class _Server:
    """A server that is asked about itself; an answer that is missing or isn't JSON is None."""

    def __init__(self, base_url: str, api_key: str = "") -> None:
        self._where = urlsplit(base_url)
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})

    def get(self, path: str, body: Any = None, *, under: str | None = None) -> Any:
        """GET what is at `path`, or POST `body` to it; `under` is put in place of the path of the base URL."""
        where = self._where
        kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
        target = (where.path.rstrip("/") if under is None else under) + path + (where.query and f"?{where.query}")
        sent = None if body is None else json.dumps(body).encode()
        try:
            with closing(kind(where.hostname or "", where.port, timeout=TIMEOUT_S)) as connection:
                connection.request("POST" if sent else "GET", target, sent, self._headers)
                return json.loads(connection.getresponse().read(MAX_ANSWER_BYTES))
        except (OSError, ValueError, RecursionError, http.client.HTTPException):  # nobody there, or no model server
            return None

    def root(self, path: str, body: Any = None) -> Any:
        """The same, next to the folder of the API."""
        return self.get(path, body, under=self._where.path.rstrip("/").removesuffix("/v1"))


def _listed(answer: Any, model: str) -> int:
    """The window of a model in a list of them: as it is loaded, else at most (vLLM, LM Studio, many gateways)."""
    models = answer.get("data") if isinstance(answer, dict) else None
    for each in models if isinstance(models, list) else ():
        if isinstance(each, dict) and each.get("id") == model:
            return next(filter(None, map(_tokens, map(each.get, _WINDOW_FIELDS))), 0)
    return 0


def _llamacpp(server: _Server, _: str) -> int:
    """The window of each of its slots.

    https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    """
    match server.root("/props"):
        case {"default_generation_settings": {"n_ctx": tokens}} | {"n_ctx": tokens}:
            return _tokens(tokens)
    return 0


def _ollama(server: _Server, model: str) -> int:
    """The window of the model as it is loaded, else as its own file sets it, else at most.

    https://docs.ollama.com/api/ps, https://docs.ollama.com/api-reference/show-model-details
    """
    match server.root("/api/ps"):
        case {"models": [*loaded]}:
            for each in loaded:
                if isinstance(each, dict) and model in {
                    each.get("name"),
                    str(each.get("name")).removesuffix(":latest"),
                }:
                    return _tokens(each.get("context_length"))
    shown = server.root("/api/show", {"model": model})
    if not isinstance(shown, dict):
        return 0
    if found := re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters")), re.MULTILINE):
        return int(found[1])
    info = shown.get("model_info")
    sizes = (
        [value for name, value in info.items() if name.endswith(".context_length")] if isinstance(info, dict) else ()
    )
    return next(map(_tokens, sizes), 0)


def _tokens(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_WINDOW_FIELDS = ("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length")
"""Fields of a model in a list that say how much it sees."""

_WINDOWS: Mapping[str, Callable[[_Server, str], int]] = {
    "vllm": lambda server, model: _listed(server.get("/models"), model),
    "llamacpp": _llamacpp,
    "lmstudio": lambda server, model: _listed(server.root("/api/v0/models"), model),
    "ollama": _ollama,
}
"""Functions that ask a provider's server for the window of a model."""
