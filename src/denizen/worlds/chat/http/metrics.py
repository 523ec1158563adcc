"""Numbers for Prometheus, in its text format."""

from collections.abc import Iterator, Mapping

from aiohttp import web

from denizen.worlds.chat.events.metrics import labelled
from denizen.worlds.chat.http.access import ACCESS
from denizen.worlds.chat.http.requests import GATEWAY
from denizen.worlds.chat.ledger import ledger

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


async def get_metrics(request: web.Request) -> web.Response:
    """Numbers of the gateway, for Prometheus."""
    gateway = request.app[GATEWAY]
    values = dict(gateway.metrics.counts)
    waiting = await gateway.database.read(ledger.open_counts)
    for name, states in (
        ("denizen_inbox_messages", waiting["inbox"]),
        ("denizen_outbox_messages", waiting["outbox"]),
        ("denizen_sends_total", gateway.outbox.sends),
    ):
        values |= {(name, labelled({"state": state})): count for state, count in states.items()}
    values["denizen_open_requests", ""] = request.app[ACCESS].open
    return web.Response(body="".join(_lines(values)), content_type="text/plain", charset="utf-8")


def _lines(values: Mapping[tuple[str, str], float]) -> Iterator[str]:
    for name, text in HELP.items():
        kind = {"total": "counter", "seconds": "histogram"}.get(name.rpartition("_")[2], "gauge")
        parts = {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
        yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        yield from (f"{of}{labels} {value}\n" for (of, labels), value in values.items() if of in parts)


ROUTES = [web.get("/metrics", get_metrics)]
