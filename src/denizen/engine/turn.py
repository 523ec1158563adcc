"""One turn while it runs: its session, its host, and what it has used so far."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from denizen.engine.feed import Feed
from denizen.engine.output import Output
from denizen.entries import AnswerEntry, AnyEntry, AssistantEntry, StateEntry, ToolEntry, UserEntry
from denizen.events import Notice, RunEvent, TurnStop
from denizen.messages import Message, Text, Usage, UserMessage
from denizen.ports import Answer, Directive, FollowUp, Interrupt, Session, Steer, Stop, Traits, TurnIO, View

if TYPE_CHECKING:
    from denizen.engine.agent import Agent


class TurnOver(Exception):
    """Ends the turn from wherever it stands."""

    def __init__(self, reason: TurnStop, note: str = "") -> None:
        super().__init__(note)
        self.reason: TurnStop = reason
        self.note = note


@dataclass(slots=True)
class Turn:
    """What the parts of the loop share."""

    agent: "Agent"
    session: Session
    io: TurnIO
    stream: bool
    feed: Feed
    output: Output | None = None
    iteration: int = 0
    usage: Usage = field(default_factory=Usage)
    last_usage: Usage | None = None
    retries: int = 0
    seen: Traits = Traits.NONE
    value: object = None
    messages: list[Message] = field(default_factory=list)
    steers: list[str] = field(default_factory=list)
    follow_ups: list[str] = field(default_factory=list)
    interrupts: list[str] = field(default_factory=list)

    def emit(self, event: RunEvent) -> None:
        """Tell the host."""
        self.io.emit(event)

    def notice(self, text: str, *, warning: bool = False) -> None:
        """Tell the user something."""
        self.emit(Notice(self.agent.redact(text), "warning" if warning else "info"))

    async def append(self, entry: AnyEntry) -> None:
        """Write it, before anything depends on it."""
        await self.session.append(entry)
        self.feed.read_on(self.session.entries)
        if isinstance(entry, (UserEntry, AssistantEntry, ToolEntry)):
            self.messages.append(entry.message)

    async def say(self, message: UserMessage) -> None:
        """Take in what the user said."""
        parts = [Text(self.agent.redact(part.text)) if isinstance(part, Text) else part for part in message.content]
        at = message.at or self.agent.clock.now()
        await self.append(UserEntry(message=UserMessage(parts, message.id, at)))

    async def apply(self, directive: Directive) -> None:
        """Keep what the model said about itself."""
        await self.append(StateEntry(name=directive.name, value=directive.value))

    def view(self) -> View:
        """What the context policy may look at."""
        agent = self.agent
        prompt = self.feed.prompt_tokens + agent.tool_tokens
        return View(self.session, agent.model, agent.config.agent.max_tokens, prompt, self.last_usage, agent.clock)

    async def hear(self) -> None:
        """Take in what the person did meanwhile; a stop ends the turn here."""
        for control in self.io.controls():
            match control:
                case Steer(text):
                    self.steers.append(text)
                case FollowUp(text):
                    self.follow_ups.append(text)
                case Interrupt(text):
                    self.interrupts.append(text)
                case Stop():
                    raise TurnOver("cancelled")
                case Answer():
                    await self.append(
                        AnswerEntry(
                            call_id=control.call_id, allow=control.allow, text=control.text, scope=control.scope
                        )
                    )

    async def pass_on(self, waiting: list[str]) -> bool:
        """Give the model what the person said meanwhile; whether there was anything."""
        said = bool(waiting)
        while waiting:
            await self.say(UserMessage([Text(waiting.pop(0))]))
        return said
