"""`remember` and `recall`: what the agent keeps beyond the session."""

from denizen.ports import Memory, Tool, Traits
from denizen.tools.function import tool


def memory_tools(memory: Memory) -> list[Tool]:
    """The two tools over a memory."""

    @tool(traits=Traits.WRITES, shell_names=("store", "memorize"))
    def remember(text: str) -> str:
        """Keep one fact for later sessions, such as what the user prefers.

        Args:
            text: A sentence that stands for itself.
        """
        return memory.remember(text)

    @tool(traits=Traits.READS | Traits.PRIVATE | Traits.REPEATABLE)
    def recall(query: str = "", limit: int = 10) -> str:
        """Find what was remembered.

        Args:
            query: Words to look for; none for the latest.
        """
        return "\n".join(f"- {fact}" for fact in memory.recall(query, limit)) or "Nothing was remembered that fits."

    return [remember, recall]
