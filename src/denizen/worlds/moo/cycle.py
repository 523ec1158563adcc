"""One cycle of an agent: the host of its turn, and the span that a trace shows of it."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span

from denizen.events import LlmEnd, LlmStart, Notice, Retry, RunEvent, ToolEnd
from denizen.messages import Usage
from denizen.ports import Answer, Ask, Control, Stop
from denizen.worlds.moo.acting import Acting


class CycleHost:
    """The turn's host: nobody is there to be asked."""

    def __init__(self, acting: Acting, asks: Callable[[], None], tell: Callable[[str], None]) -> None:
        self._acting = acting
        self._asks = asks
        self._tell = tell

    def emit(self, event: RunEvent) -> None:
        """Pass on what matters here."""
        match event:
            case LlmStart():
                self._asks()
            case LlmEnd():
                self._acting.replied()
            case ToolEnd():
                self._acting.ran(event)
            case Notice(text=text, level="warning" | "error"):
                self._tell(text)
            case Retry():
                self._tell(f"The model: {event.words}")
            case _:
                pass

    def controls(self) -> Sequence[Control]:
        """A stop, once the cycle is to end."""
        return [Stop()] if self._acting.is_over else []

    async def ask(self, request: Ask) -> Answer:
        """No: in a world nobody sits next to the agent, and a quotation isn't run (design, rule 5)."""
        return Answer(request.call_id, allow=False, text="nobody is there to be asked", unasked=True)


@contextmanager
def cycle_span(goal: str) -> Generator[Span]:
    """The cycle in a trace, around the spans of its turn."""
    with trace.get_tracer("denizen").start_as_current_span("llm_cycle", attributes={"goal": goal}) as span:
        yield span


def record_cycle(span: Span, outcome: str, usage: Usage) -> None:
    """How it came out (dispatched, goal_only, llm_failed), and what it took."""
    span.set_attributes(
        {
            "outcome": outcome,
            "tokens": usage.context,
            "gen_ai.usage.input_tokens": usage.input or 0,
            "gen_ai.usage.output_tokens": usage.output or 0,
            "cost_usd": usage.cost_usd or 0.0,
        }
    )
