"""A model server with a window: it counts four bytes as a token, and refuses what doesn't fit, as vLLM does."""

import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from denizen.messages import AssistantMessage, Text
from denizen.testing.wire import OPENAI

REFUSAL = (
    "This model's maximum context length is {window} tokens. However, you requested {asked} tokens ({prompt} in the "
    "messages, {answer} in the completion). Please reduce the length of the messages or completion."
)


class SmallServer:
    """Answers requests with `script`, in order, and those without tools with a summary.

    `requests` are those that it answered from the script, `refused` how many it refused, in the words of `refusal`.
    `facts` are what it says of itself, by path.
    """

    def __init__(self, window: int, script: Sequence[AssistantMessage], refusal: str = REFUSAL) -> None:
        self.window = window
        self.script = [*script]
        self.refusal = refusal
        self.facts: dict[str, Any] = {}
        self.requests: list[dict[str, Any]] = []
        self.refused = 0
        self.base_url = ""

    def answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        """The status and the body."""
        prompt = len(json.dumps([request["messages"], request.get("tools")])) // 4
        answer = request["max_tokens"]
        if prompt + answer > self.window:
            self.refused += 1
            told = self.refusal.format(window=self.window, asked=prompt + answer, prompt=prompt, answer=answer)
            return 400, json.dumps({"error": {"message": told, "type": "BadRequestError", "code": 400}}).encode()
        if not request.get("tools"):
            return 200, OPENAI.whole(AssistantMessage([Text("They read files.")]))
        self.requests.append(request)
        return 200, OPENAI.whole(self.script.pop(0))


@contextmanager
def serving(server: SmallServer) -> Generator[SmallServer]:
    """The server, listening on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.reply(*server.answer(body) if "messages" in body else self.fact())

        def do_GET(self) -> None:
            self.reply(*self.fact())

        def fact(self) -> tuple[int, bytes]:
            fact = server.facts.get(self.path)
            return (404, b"{}") if fact is None else (200, json.dumps(fact).encode())

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.base_url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        http.shutdown()
