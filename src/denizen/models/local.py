"""Model servers on this machine: whether one answers, and which models it has."""

import http.client
import json
import socket
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 0.3
"""Seconds that a server on this machine gets to say what it has."""

MOST = 1_000_000
"""Bytes of its answer that are read."""


def served_models(base_url: str) -> list[str]:
    """The chat models of the server at `base_url` (`http://127.0.0.1:11434/v1`) in its order; none where none answers.

    A port on which nobody listens costs a fraction of a millisecond. Blocks for `PATIENCE` at most.
    """
    where = urlsplit(base_url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    try:
        with closing(kind(where.hostname or "", where.port, timeout=PATIENCE)) as connection:
            connection.request("GET", f"{where.path.rstrip('/')}/models", headers={"Accept": "application/json"})
            return _chat_models(json.loads(connection.getresponse().read(MOST)))
    except (OSError, ValueError, RecursionError, http.client.HTTPException):  # nobody there, or no model server
        return []


def somebody_listens(base_url: str) -> bool:
    """Whether something on this machine takes connections there. Blocks for `PATIENCE` at most."""
    where = urlsplit(base_url)
    default = 443 if where.scheme == "https" else 80
    with suppress(OSError), socket.create_connection((where.hostname or "", where.port or default), PATIENCE):
        return True
    return False


def _chat_models(answer: Any) -> list[str]:
    match answer:
        case {"data": [*models]}:
            names = [str(model["id"]) for model in models if isinstance(model, dict) and model.get("id")]
            return [name for name in names if "embed" not in name.lower()]
    return []
