"""`spawn`: a subagent that works in the background; its result reaches its parent's session, once."""

from collections.abc import Callable
from functools import partial

import msgspec

from denizen.engine import TurnOptions, run_turn
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import InSight
from denizen.engine.subagents import link, result_in_time, subagent_key, task_id
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult, UserMessage
from denizen.ports import InboundMessage, OutboundMessage, Session, ToolContext, Traits, TurnIO
from denizen.tools.function import FunctionTool, tool
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database

MAX_RUNNING = 5
"""Background subagents of one session."""
_SPAWNED = "denizen.spawned"


class Spawned(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parent of a subagent: its session, the call, what it had in sight, and what its turn had spent."""

    parent: str
    call_id: str
    agent: str = ""
    in_sight: InSight = InSight()
    spent_usd: float = 0.0


def spawned_by(message: InboundMessage) -> Spawned | None:
    """The parent of the message's subagent; None: the message isn't a subagent's."""
    given = message.metadata.get(_SPAWNED)
    return msgspec.convert(given, Spawned) if given else None


def spawn_tool(database: Database) -> FunctionTool:
    """The tool; its subagents' messages go to this inbox."""

    @tool(traits=Traits.REPEATABLE | Traits.DELEGATES)  # a call that runs again after a crash has the same id
    async def spawn(task: str, turn: ToolContext, agent: str = "") -> ToolResult:
        """Let a subagent work in the background. Its result reaches you with a later message; you go on now.

        Args:
            task: All that it must know; what the user is to hear at once, it sends itself
            agent: Who does it; by default one like you
        """
        if turn.depth:
            raise ToolRefused(
                "a subagent has none in the background, because nobody would take the result: use `subagent`"
            )
        work = task_id(turn.entries, turn.call_id)
        made = Spawned(turn.session_key, turn.call_id, agent, InSight.of(turn.in_sight), turn.spent_usd)
        message = InboundMessage(
            turn.channel,
            turn.chat,
            "spawn",
            task,
            subagent_key(turn.session_key, work),
            metadata={
                ledger.ORIGIN: f"a subagent of {ledger.origin_of(turn.session_key, turn.channel, turn.chat)}",
                _SPAWNED: msgspec.to_builtins(made),
            },
            id=f"{turn.session_key}:{work}",
        )
        if not await database.run(partial(ledger.put_few, message=message, parent=turn.session_key, most=MAX_RUNNING)):
            raise ToolRefused(f"{MAX_RUNNING} of your subagents work in the background; wait until one is done")
        database.ring()
        return ToolResult(
            "", "", [Text("The subagent works in the background. Its result will arrive in this chat.")], is_async=True
        )

    return spawn


async def work(
    agent: AgentRecord,
    session: Session,
    message: InboundMessage,
    spawned: Spawned,
    io: TurnIO,
    *,
    stop: Callable[[], None],
    read_only: bool,
) -> ToolResult:
    """Run a subagent's turn; its result. `stop` tells its host that its time is over."""
    try:
        agent = agent.subagent(agent, spawned.agent)
    except ToolRefused as why:
        return ToolResult("", "", [Text(f"The subagent didn't begin: {why}.")], is_error=True, details={})
    await link(session, spawned.parent, spawned.call_id, spawned.in_sight.traits)
    said = UserMessage([Text(message.content)], message.id)
    options = TurnOptions(
        stream=False,
        read_only=read_only,
        channel=message.channel,
        chat=message.chat,
        payer=spawned.parent,
        spent_usd=spawned.spent_usd,
        depth=1,
        resumes=True,
    )
    return await result_in_time(agent, session, run_turn(agent, session, said, io, options), stop)


def apology(message: InboundMessage, why: str) -> InboundMessage | OutboundMessage:
    """The apology for a message that is given up, to its chat or to the subagent's parent."""
    if spawned := spawned_by(message):
        words = f"The subagent failed, and isn't tried again. {why}"
        return report(message, spawned, ToolResult("", "", [Text(words)], is_error=True, details={}))
    return outbound.apology(message, why)


def report(message: InboundMessage, spawned: Spawned, result: ToolResult) -> InboundMessage:
    """The result for the parent's session; its id is the same however often it is made."""
    seen = {name: result.details.get(name) is True for name in ("private", "untrusted")}
    task = message.content.partition("\n")[0][:200]
    return InboundMessage(
        ledger.SYSTEM,
        message.chat,
        message.session_key,
        f"The subagent that you spawned (call {spawned.call_id}: {task}) reports:\n{result.text}",
        spawned.parent,
        metadata={ledger.IN_SIGHT: seen},
        id=f"{message.id}:result",
    )
