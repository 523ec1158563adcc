"""A context policy: the model sees the last turns only, and the transcript keeps all of them."""

from collections.abc import Sequence

from denizen import Agent, run_agent_sync
from denizen.actions import Native
from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, ToolEntry, UserEntry
from denizen.messages import Message
from denizen.ports import ActionFormat, AskModel, View, WorldLine
from denizen.testing import ScriptedModel
from denizen.worlds.world import Profile


class LastTurns:
    """Shows what was said since the user's message `turns` ago: a call and its result are never parted there."""

    def __init__(self, actions: ActionFormat, turns: int) -> None:
        self._actions = actions
        self._turns = turns
        self._messages: list[Message] = []
        self._starts: list[int] = []

    def observe(self, item: AnyEntry | WorldLine) -> None:
        """Take in one more entry; it has no use for the lines of a world."""
        match item:
            case UserEntry(message=message):
                self._starts.append(len(self._messages))
                self._messages.append(message)
            case AssistantEntry(message=message):
                self._messages.append(message)
            case ToolEntry(message=result):
                self._messages += self._actions.report([result])

    def assemble(self, view: View) -> Sequence[Message]:
        """The messages of the next call."""
        return self._messages[self._starts[-self._turns :][0] :]

    def tokens(self, view: View) -> int:
        """It can't tell."""
        return 0

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        """It can't make less of it either."""
        return None


FORGETFUL = Profile("forgetful", Native(), lambda actions, tools: LastTurns(actions, turns=2))

if __name__ == "__main__":
    model = ScriptedModel(["Hello, Ann.", "Noon.", "I don't know."])
    agent = Agent(profile=FORGETFUL, tools=[], model=model)
    for text in ("I'm Ann.", "When do we eat?", "Who am I?"):
        run_agent_sync(text, session_key="talk", agent=agent)
    print([message.text.partition("\n\n<time>")[0] for message in model.requests[-1].messages])
