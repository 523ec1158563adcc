"""A driver: after a change it reminds of the tests, and three rounds later it asks the person which ones to run."""

from denizen import Agent, run_agent_sync, tool
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Action, Escalate, Iteration, Proceed, Traits, View
from denizen.testing import ScriptedModel

ROUNDS = 3


class Careful:
    """Counts the rounds since the last test run; there is a new one of it for each turn."""

    def __init__(self) -> None:
        self._untested = 0

    def decide(self, view: View) -> Action:
        """Called before each model call."""
        if self._untested == 0:
            return Proceed()
        if self._untested == ROUNDS:
            return Escalate("The agent edits without testing. Which tests should it run?", otherwise="Run all tests.")
        return Proceed("Something was changed that is not tested yet.")

    def observe(self, iteration: Iteration) -> None:
        """Called once for each model call, with the calls that it asked for and their results; after a crash again."""
        names = [call.name for call in iteration.calls]
        if "test" in names:
            self._untested = 0
        elif "change" in names or self._untested:
            self._untested += 1


@tool(traits=Traits.WRITES)
def change(line: str) -> str:
    """Change a line."""
    return f"changed to {line}"


@tool(traits=Traits.EXECUTES)
def test() -> str:
    """Run the tests."""
    return "3 passed"


if __name__ == "__main__":
    script = [
        AssistantMessage([ToolCall("1", "change", {"line": "x = 1"})], stop_reason="tool_calls"),
        AssistantMessage([ToolCall("2", "test", {})], stop_reason="tool_calls"),
        "It is done, and tested.",
    ]
    model = ScriptedModel(script)
    agent = Agent(tools=[change, test], model=model, driver=Careful)
    print(run_agent_sync("Set x to 1.", agent=agent).reply)
    print([message.text for message in model.requests[1].messages][-1])
