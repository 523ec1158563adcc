"""Hand-over: the front desk passes a conversation to the agent whose subject it is, which sees all of it."""

import asyncio

from denizen import Agent, RunResult, tool
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult
from denizen.ports import ToolContext
from denizen.testing import ScriptedModel


@tool
def hand_over(desk: str, turn: ToolContext) -> ToolResult:
    """Pass the conversation to another desk.

    Args:
        desk: billing or repairs
    """
    return ToolResult(turn.call_id, "hand_over", [Text(f"passed to {desk}")], ends_turn=True, details={"desk": desk})


class Reception:
    """Sends each message to the desk that has its conversation: at first the front desk."""

    def __init__(self, **desks: Agent) -> None:
        self._desks = desks
        self._in_charge: dict[str, str] = {}

    async def answer(self, customer: str, text: str) -> str:
        """The reply of the desk in charge, after any hand-over."""
        desk = self._in_charge.get(customer, "front")
        result = await self._desks[desk].run(text, session_key=customer)
        if to := handed_to(result):
            self._in_charge[customer] = to
            result = await self._desks[to].run("[The front desk has passed this to you.]", session_key=customer)
        return result.reply


def handed_to(result: RunResult) -> str:
    """The desk that a turn ended with, or nothing."""
    last = result.messages[-1]
    return last.details["desk"] if isinstance(last, ToolResult) and last.name == "hand_over" and last.details else ""


async def main() -> None:
    """Play a conversation."""
    passing = AssistantMessage([ToolCall("1", "hand_over", {"desk": "billing"})], stop_reason="tool_calls")
    billing = ScriptedModel(["Invoice 7 is paid twice; you get 40 € back.", "Tomorrow."])
    reception = Reception(
        front=Agent(
            instructions="You find out what a customer needs.", tools=[hand_over], model=ScriptedModel([passing])
        ),
        billing=Agent(instructions="You answer questions on invoices.", tools=[], model=billing),
    )
    print(await reception.answer("ann", "I paid invoice 7 twice"))
    print(await reception.answer("ann", "When?"))
    print([message.text.partition("\n")[0] for message in billing.requests[0].messages])
    print("invoices" in billing.requests[0].system)


if __name__ == "__main__":
    asyncio.run(main())
