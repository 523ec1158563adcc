"""Numbers for Prometheus, in its text format."""

from collections import Counter
from collections.abc import Iterator

from aiohttp import web

from denizen.events import Done, LlmEnd, RunEvent, ToolEnd
from denizen.worlds.chat import ledger
from denizen.worlds.chat.http.access import ACCESS
from denizen.worlds.chat.http.requests import GATEWAY

HELP = {
    "denizen_turns_total": "Turns that ended, by how.",
    "denizen_model_calls_total": "Answers of the model.",
    "denizen_tokens_total": "Tokens of these, by kind.",
    "denizen_cost_usd_total": "US dollars of these, as far as prices are known.",
    "denizen_tool_calls_total": "Calls of tools, by whether they failed.",
    "denizen_inbox_messages": "Messages of the inbox, by state.",
    "denizen_outbox_messages": "Messages of the outbox, by state.",
    "denizen_open_requests": "Requests that are open.",
}


class Metrics:
    """Counts what happens in turns since the gateway began."""

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, str]]()

    def add(self, _: str, event: RunEvent) -> None:
        """Count an event; no name or content of any session is kept."""
        match event:
            case LlmEnd(message):
                usage = message.usage
                self.counts["denizen_model_calls_total", ""] += 1
                self.counts["denizen_tokens_total", '{kind="input"}'] += usage.input or 0
                self.counts["denizen_tokens_total", '{kind="output"}'] += usage.output or 0
                self.counts["denizen_cost_usd_total", ""] += usage.cost_usd or 0  # pyrefly: ignore[unsupported-operation]
            case ToolEnd(is_error=failed):
                self.counts["denizen_tool_calls_total", f'{{failed="{str(failed).lower()}"}}'] += 1
            case Done(result):
                self.counts["denizen_turns_total", f'{{stop_reason="{result.stop_reason}"}}'] += 1
            case _:
                pass


METRICS = web.AppKey("metrics", Metrics)


async def get_metrics(request: web.Request) -> web.Response:
    """Numbers of the gateway, for Prometheus."""
    values = dict(request.app[METRICS].counts)
    for table, states in (await request.app[GATEWAY].database.run(ledger.counts)).items():
        values |= {(f"denizen_{table}_messages", f'{{state="{state}"}}'): count for state, count in states.items()}
    values["denizen_open_requests", ""] = request.app[ACCESS].open
    return web.Response(body="".join(_lines(values)), content_type="text/plain", charset="utf-8")


def _lines(values: dict[tuple[str, str], int]) -> Iterator[str]:
    for name, text in HELP.items():
        yield f"# HELP {name} {text}\n# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"
        yield from (f"{name}{labels} {value}\n" for (of, labels), value in sorted(values.items()) if of == name)


ROUTES = [web.get("/metrics", get_metrics)]
