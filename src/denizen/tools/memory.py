"""`remember`, `recall` and `forget`: what the agent keeps from one session to the next."""

from typing import Annotated

from msgspec import Meta

from denizen.ports import Memory, Scope, Tool, ToolContext, Traits
from denizen.tools.function import tool


def memory_tools(memory: Memory) -> list[Tool]:
    """The three tools over a memory."""

    @tool(traits=Traits.WRITES, shell_names=("store", "memorize"))
    async def remember(
        text: str,
        turn: ToolContext,
        context: str = "",
        weight: Annotated[float, Meta(ge=0, le=1)] = 0.5,
        scope: Scope = "project",
    ) -> str:
        """Keep one fact for later sessions, such as what the user prefers.

        Args:
            text: A sentence that stands for itself.
            context: What it is about
            weight: How much it matters
            scope: `user`: it holds outside this project, too; `today`: it's for today's note
        """
        untrusted = Traits.UNTRUSTED in turn.in_sight and not turn.said_by_user(f"{text} {context}")
        return await memory.remember(
            text, context=context, weight=weight, scope=scope, source=turn.session_key, untrusted=untrusted
        )

    @tool(traits=Traits.READS | Traits.PRIVATE | Traits.REPEATABLE)
    async def recall(query: str = "", limit: int = 10) -> str:
        """Find what was remembered.

        Args:
            query: Words to look for; none for the latest.
        """
        facts = await memory.recall(query, limit)
        lines: list[str] = []
        for fact in facts:
            day = f"{fact.at:%Y-%m-%d}: " if fact.at else ""
            notes = ", ".join(filter(None, [fact.context, fact.id]))
            lines.append(f"- {day}{fact.marked}" + (f" ({notes})" if notes else ""))
        return "\n".join(lines) or "Nothing is remembered that matches."

    @tool(traits=Traits.WRITES)
    async def forget(what: str) -> str:
        """Forget something that was remembered.

        Args:
            what: Its id (`p12`) or text, or words only it has
        """
        return await memory.forget(what)

    return [remember, recall, forget]
