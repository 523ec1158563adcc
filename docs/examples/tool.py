"""Two tools: one that reads, one that sends and so is asked about."""

from denizen import run_agent_sync, tool
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import ToolContext, Traits
from denizen.testing import ScriptedModel

STOCK = {"lamp": 7, "desk": 0}


@tool(traits=Traits.READS | Traits.REPEATABLE)
def stock(article: str) -> str:
    """How many of an article are in stock.

    Args:
        article: Its name, in the singular
    """
    if article not in STOCK:
        raise ToolRefused(f"there is no article {article!r}; available: {', '.join(STOCK)}")
    return f"{STOCK[article]} in stock"


@tool(traits=Traits.SENDS)
async def order(article: str, turn: ToolContext, count: int = 1) -> str:
    """Order more of an article from the supplier."""
    turn.emit(f"ordering {count} × {article}")
    return f"ordered under the number {turn.call_id}"


TOOLS = [stock, order]

if __name__ == "__main__":
    script = [
        AssistantMessage([ToolCall("1", "stock", {"article": "sofa"})], stop_reason="tool_calls"),
        AssistantMessage([ToolCall("2", "stock", {"article": "lamp"})], stop_reason="tool_calls"),
        "We have no sofas, but seven lamps.",
    ]
    result = run_agent_sync("Sofas? Lamps?", tools=TOOLS, model=ScriptedModel(script))
    for message in result.messages:
        print(type(message).__name__, "·", message.text)
