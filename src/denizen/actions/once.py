"""Reading a reply once, however many ask what it means."""

from denizen.messages import AssistantMessage
from denizen.ports import NOTHING_SEEN, ActionFormat, Intent, SeenText, Toolset


class Once:
    """An action format that remembers what the last reply meant: the loop, the context and the driver each ask."""

    def __init__(self, actions: ActionFormat) -> None:
        self.format = actions
        self._last: tuple[AssistantMessage, Toolset, SeenText, Intent] | None = None
        self.name = actions.name
        self.lists_tools = actions.lists_tools
        self.extra_tools = actions.extra_tools
        self.prepare = actions.prepare
        self.stream_filter = actions.stream_filter
        self.report = actions.report
        self.show = actions.show

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """What the reply asks for."""
        last = self._last
        if last is None or last[0] is not message or last[1] is not tools or last[2] is not seen:
            self._last = last = (message, tools, seen, self.format.read(message, tools, seen))
        return last[3]
