"""`ask`: a question to the user."""

from denizen.errors import ToolRefused
from denizen.ports import ToolContext, Traits
from denizen.tools.function import tool


@tool(traits=Traits.REPEATABLE)
async def ask(question: str, turn: ToolContext) -> str:
    """Ask the user, when only they can know, and what you would assume may be wrong and costly.

    Args:
        question: One question, with the choices that you see.
    """
    answer = await turn.ask(question)
    if answer.unasked:
        raise ToolRefused(f"{answer.text}; go on without, and say what you assumed")
    return f"The user answers: {answer.text or ('yes' if answer.allow else 'no')}"
