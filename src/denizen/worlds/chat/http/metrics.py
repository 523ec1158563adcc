"""Numbers for Prometheus, in its text format."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from aiohttp import web

from denizen.clock import Clock
from denizen.events import Done, LlmEnd, LlmStart, RunEvent, ToolEnd
from denizen.worlds.chat import ledger
from denizen.worlds.chat.http.access import ACCESS
from denizen.worlds.chat.http.requests import GATEWAY

HELP = {
    "denizen_turns_total": "Turns that ended, by how.",
    "denizen_model_calls_total": "Answers of the model.",
    "denizen_tokens_total": "Tokens of these, by kind.",
    "denizen_cost_usd_total": "US dollars of these, as far as prices are known.",
    "denizen_tool_calls_total": "Calls of tools, by whether they failed.",
    "denizen_turn_seconds": "Seconds from a turn's first call of the model to its end.",
    "denizen_messages_total": "Messages that are over, by state.",
    "denizen_inbox_messages": "Messages of the inbox that aren't over, by state.",
    "denizen_outbox_messages": "Messages of the outbox that aren't sent, by state.",
    "denizen_sends_total": "Sends to channels, by what they said of them.",
    "denizen_open_requests": "Requests that are open.",
    "denizen_request_seconds": "Seconds from a request to the end of its response, by route.",
}
BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, float("inf"))
"""Seconds up to which a histogram counts together."""


class Metrics:
    """Counts what happens in turns since the gateway began."""

    def __init__(self, clock: Clock) -> None:
        self.counts = defaultdict[tuple[str, str], float](int)
        self._clock = clock
        self._began: dict[str, float] = {}

    def observe(self, name: str, since: float, **labels: str) -> None:
        """Count in a histogram what began at that time of the clock's stopwatch, and ends now."""
        seconds = self._clock.monotonic() - since
        for bound in BOUNDS:
            le = "+Inf" if bound == BOUNDS[-1] else f"{bound:g}"
            self.counts[f"{name}_bucket", _labels({**labels, "le": le})] += seconds <= bound
        self.counts[f"{name}_sum", _labels(labels)] += seconds
        self.counts[f"{name}_count", _labels(labels)] += 1

    def add(self, session_key: str, event: RunEvent) -> None:
        """Count an event; no name or content of any session is kept."""
        match event:
            case LlmStart():
                self._began.setdefault(session_key, self._clock.monotonic())
            case LlmEnd(message):
                usage = message.usage
                self.counts["denizen_model_calls_total", ""] += 1
                self.counts["denizen_tokens_total", _labels({"kind": "input"})] += usage.input or 0
                self.counts["denizen_tokens_total", _labels({"kind": "output"})] += usage.output or 0
                self.counts["denizen_cost_usd_total", ""] += usage.cost_usd or 0
            case ToolEnd(is_error=failed):
                self.counts["denizen_tool_calls_total", _labels({"failed": str(failed).lower()})] += 1
            case Done(result):
                self.counts["denizen_turns_total", _labels({"stop_reason": result.stop_reason})] += 1
                if (began := self._began.pop(session_key, None)) is not None:
                    self.observe("denizen_turn_seconds", began)
            case _:
                pass


METRICS = web.AppKey("metrics", Metrics)


async def get_metrics(request: web.Request) -> web.Response:
    """Numbers of the gateway, for Prometheus."""
    values, gateway = dict(request.app[METRICS].counts), request.app[GATEWAY]
    waiting = await gateway.database.read(ledger.open_counts)
    for name, states in (
        ("denizen_inbox_messages", waiting["inbox"]),
        ("denizen_outbox_messages", waiting["outbox"]),
        ("denizen_messages_total", gateway.queue.over),
        ("denizen_sends_total", gateway.outbox.sends),
    ):
        values |= {(name, _labels({"state": state})): count for state, count in states.items()}
    values["denizen_open_requests", ""] = request.app[ACCESS].open
    return web.Response(body="".join(_lines(values)), content_type="text/plain", charset="utf-8")


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""


def _lines(values: Mapping[tuple[str, str], float]) -> Iterator[str]:
    for name, text in HELP.items():
        kind = {"total": "counter", "seconds": "histogram"}.get(name.rpartition("_")[2], "gauge")
        parts = {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
        yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        yield from (f"{of}{labels} {value}\n" for (of, labels), value in values.items() if of in parts)


ROUTES = [web.get("/metrics", get_metrics)]
