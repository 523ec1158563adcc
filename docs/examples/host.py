"""A host: what happens is shown where the host wants it, and questions go to whom it wants."""

import asyncio
from collections.abc import Sequence

from denizen import run_agent_sync, tool
from denizen.events import Done, RunEvent, ToolEnd
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Answer, Ask, Control, FollowUp, Parked, Traits
from denizen.testing import ScriptedModel


class HelpDesk:
    """Lets a colleague decide while there is one, else parks the turn; what comes in meanwhile is a follow-up."""

    def __init__(self, *, staffed: bool) -> None:
        self.staffed = staffed
        self._inbox: list[str] = []
        self._has_mail = asyncio.Event()

    def write(self, text: str) -> None:
        """Say something to the turn that runs."""
        self._inbox.append(text)
        self._has_mail.set()

    def emit(self, event: RunEvent) -> None:
        """Show it."""
        match event:
            case ToolEnd(tool_name=name, summary=summary):
                print(f"{name}: {summary}")
            case Done(result=result):
                print(f"{result.stop_reason}: {result.reply}")
            case _:
                pass

    def controls(self) -> Sequence[Control]:
        """Heard between calls, and while the model or a tool works: also Steer, Interrupt and Stop."""
        waiting = [FollowUp(text) for text in self._inbox]
        self._inbox.clear()
        self._has_mail.clear()
        return waiting

    async def changed(self) -> None:
        """Return once there is something that `controls` hasn't handed over."""
        await self._has_mail.wait()

    async def ask(self, request: Ask) -> Answer | Parked:
        """Whether the call may run."""
        print(request.question)
        return Answer(request.call_id, allow=True, scope="session") if self.staffed else Parked()


@tool(traits=Traits.SENDS)
def refund(order: int) -> str:
    """Pay an order back."""
    return f"order {order} is paid back"


if __name__ == "__main__":
    call = AssistantMessage([ToolCall("1", "refund", {"order": 7})], stop_reason="tool_calls")
    desk = HelpDesk(staffed=True)
    run_agent_sync("I want my money back.", io=desk, tools=[refund], model=ScriptedModel([call, "Done."]))
