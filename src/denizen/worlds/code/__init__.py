"""The code world: an agent in a project, which keeps what matters and can undo what it did."""

from denizen.actions import Shell
from denizen.context import WorkingMemory
from denizen.engine.turn import TurnOptions
from denizen.events import RunResult
from denizen.messages import UserMessage
from denizen.ports import Session, Tool, TurnIO
from denizen.prompt.texts import CODER
from denizen.tools import default_tools
from denizen.tools.subagent import subagent
from denizen.tools.task import task
from denizen.worlds.world import AgentHandle, Profile, ToolParts, World


def coding_tools(parts: ToolParts) -> list[Tool]:
    """The standard tools without `ls` and `read`, for which `view` stands in, and the coder's own."""
    from denizen.worlds.code.tools.analyze import analyze_tool
    from denizen.worlds.code.tools.ask import ask
    from denizen.worlds.code.tools.checkpoint import checkpoint_tools
    from denizen.worlds.code.tools.edit_symbol import edit_symbol
    from denizen.worlds.code.tools.package import package_tool
    from denizen.worlds.code.tools.view import view_tool
    from denizen.worlds.code.tools.working_notes import keep, note, notes

    standard = default_tools(
        parts.config, sandbox=parts.sandbox, memory=parts.memory, environ=parts.environ, jobs=parts.jobs
    )
    standard = [tool for tool in standard if tool.name not in {"ls", "read"}]
    looks = [
        view_tool(parts.home),
        analyze_tool(parts.home, parts.environ),
        package_tool(parts.config.packages.advisories),
    ]
    back = checkpoint_tools(parts.checkpoints) if parts.checkpoints else []
    return [*looks, edit_symbol, *standard, *back, ask, task, keep, note, notes, subagent]


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
