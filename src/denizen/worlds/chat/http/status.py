"""The status of the gateway, for people, and its numbers, for Prometheus."""

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec
from aiohttp import web

from denizen.text.plural import counted
from denizen.worlds.chat.delivery.channel_states import ChannelState
from denizen.worlds.chat.events.metrics import labelled
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.access import ACCESS
from denizen.worlds.chat.http.requests import GATEWAY
from denizen.worlds.chat.ledger import ledger, outbound

_MAX_UNCONFIRMED = 20
HELP = {
    "denizen_turns_total": "Turns that ended, by how.",
    "denizen_model_calls_total": "Calls of the model that were answered.",
    "denizen_tokens_total": "Tokens of the model calls, by kind.",
    "denizen_cost_usd_total": "US dollars of the model calls, as far as prices are known.",
    "denizen_tool_calls_total": "Tool calls, by whether they failed.",
    "denizen_turn_seconds": "Seconds from a turn's first call of the model to its end.",
    "denizen_messages_total": "Messages that are over, by state.",
    "denizen_inbox_messages": "Messages of the inbox that aren't over, by state.",
    "denizen_outbox_messages": "Messages of the outbox that are still to be sent, by state.",
    "denizen_sends_total": "Sends to channels, by result.",
    "denizen_open_requests": "Open requests.",
    "denizen_request_seconds": "Seconds from a request to the end of its response, by route.",
}


class UnconfirmedMessage(msgspec.Struct, frozen=True):
    """A message that may have been sent; its channel can't tell."""

    channel: str
    chat: str
    id: str
    reason: str


class Status(msgspec.Struct, frozen=True):
    """`inbox` and `outbox` count messages by state; some of the `unknown` ones are `unconfirmed`."""

    model: str
    tools: list[str]
    skills: list[str]
    sessions: int
    inbox: Mapping[str, int]
    outbox: Mapping[str, int]
    last_channel: str = ""
    last_chat: str = ""
    unconfirmed: list[UnconfirmedMessage] = []
    channels: Mapping[str, ChannelState] = {}

    def lines(self) -> Iterator[str]:
        """The status in words."""
        yield f"model: {self.model}"
        yield f"{counted(len(self.tools), 'tool')}: {', '.join(self.tools)}"
        yield counted(len(self.skills), "skill") + (f": {', '.join(self.skills)}" if self.skills else "")
        yield counted(self.sessions, "session")
        yield f"inbox: {_by_state(self.inbox)}"
        yield f"outbox: {_by_state(self.outbox)}"
        yield f"last chat: {self.last_channel} {self.last_chat}" if self.last_channel else "last chat: none"
        for name, state in self.channels.items():
            yield f"channel {name}: {state.line()}"
        for each in self.unconfirmed:
            yield f"unconfirmed: {each.id} to {each.channel} {each.chat}: {each.reason}"


async def status_of(gateway: Gateway) -> Status:
    """The status of a gateway as it is now."""
    agent = gateway.agent
    counts = await gateway.database.read(ledger.counts)
    last = gateway.last_chat.now
    unknown = await gateway.database.read(partial(outbound.unconfirmed, most=_MAX_UNCONFIRMED))
    return Status(
        model=agent.record.model.name,
        tools=[tool.name for tool in agent.record.tools],
        skills=[skill.name for skill in agent.skills],
        sessions=len(await agent.record.store.list()),
        inbox=counts["inbox"],
        outbox=counts["outbox"],
        last_channel=last.last_channel,
        last_chat=last.last_chat,
        channels=gateway.channels.now,
        unconfirmed=[
            UnconfirmedMessage(row.message.channel, row.message.chat, row.message.id, row.reason) for row in unknown
        ],
    )


def _by_state(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "empty"


async def get_status(request: web.Request) -> web.Response:
    """The gateway's model, tools, skills and sessions, and how many messages wait."""
    return web.json_response(msgspec.to_builtins(await status_of(request.app[GATEWAY])))


async def get_metrics(request: web.Request) -> web.Response:
    """The gateway's numbers, for Prometheus."""
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


ROUTES = [web.get("/api/status", get_status), web.get("/metrics", get_metrics)]
