"""What the gateway has, and what waits there."""

from collections.abc import Iterator, Mapping

import msgspec
from aiohttp import web

from denizen.text.plural import counted
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.requests import GATEWAY
from denizen.worlds.chat.ledger import ledger


class Status(msgspec.Struct, frozen=True):
    """`inbox` and `outbox` count messages by state; the last chat is that of the last message from outside."""

    model: str
    tools: list[str]
    skills: list[str]
    sessions: int
    inbox: Mapping[str, int]
    outbox: Mapping[str, int]
    last_channel: str = ""
    last_chat: str = ""

    def lines(self) -> Iterator[str]:
        """It in words."""
        yield f"model: {self.model}"
        yield f"{counted(len(self.tools), 'tool')}: {', '.join(self.tools)}"
        yield counted(len(self.skills), "skill") + (f": {', '.join(self.skills)}" if self.skills else "")
        yield counted(self.sessions, "session")
        yield f"inbox: {_by_state(self.inbox)}"
        yield f"outbox: {_by_state(self.outbox)}"
        yield f"last chat: {self.last_channel} {self.last_chat}" if self.last_channel else "last chat: none"


async def status_of(gateway: Gateway) -> Status:
    """The status of a gateway as it is now."""
    agent = gateway.agent
    counts = await gateway.database.read(ledger.counts)
    last = gateway.last_chat.now
    return Status(
        model=agent.record.model.name,
        tools=[tool.name for tool in agent.record.tools],
        skills=[skill.name for skill in agent.skills],
        sessions=len(await agent.record.store.list()),
        inbox=counts["inbox"],
        outbox=counts["outbox"],
        last_channel=last.last_channel,
        last_chat=last.last_chat,
    )


def _by_state(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "empty"


async def get_status(request: web.Request) -> web.Response:
    """Its model, tools, skills and sessions, and what waits."""
    return web.json_response(msgspec.to_builtins(await status_of(request.app[GATEWAY])))


ROUTES = [web.get("/api/status", get_status)]
