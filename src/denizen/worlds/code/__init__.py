"""The code world: an agent in a project, which keeps what matters and can undo what it did."""

from denizen.actions import Shell
from denizen.context import WorkingMemory
from denizen.engine.turn import TurnOptions
from denizen.events import RunResult
from denizen.messages import UserMessage
from denizen.ports import Session, Tool, TurnIO
from denizen.prompt.texts import CODER
from denizen.tools import code_tools
from denizen.tools.subagent import subagent
from denizen.worlds.world import AgentHandle, Profile, ToolParts, World


def coding_tools(parts: ToolParts) -> list[Tool]:
    """Those for work in a project, which answer in place of dumping."""
    tools = code_tools(
        parts.config,
        sandbox=parts.sandbox,
        memory=parts.memory,
        environ=parts.environ,
        home=parts.home,
        checkpoints=parts.checkpoints,
        jobs=parts.jobs,
    )
    return [*tools, subagent]


async def _go_on(
    agent: AgentHandle, session: Session, message: UserMessage | None, io: TurnIO, options: TurnOptions
) -> RunResult | None:
    from denizen.worlds.code.carry_out import go_on

    return await go_on(agent, session, message, io, options)


WORLD = World(
    "code",
    Profile("coder", Shell(), WorkingMemory, coding_tools, CODER, checkpoints=True, recalls=True),
    go_on=_go_on,
)
