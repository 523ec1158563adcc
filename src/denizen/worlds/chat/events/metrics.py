"""Counters and histograms of turns, messages and requests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from denizen.events import Done, LlmEnd, LlmStart, RunEvent, ToolEnd
from denizen.runtime.clock import Clock

BUCKET_BOUNDS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, float("inf"))
"""The upper bounds of a histogram's buckets, in seconds."""
Count = tuple[str, str, float]
"""A name, its labels, and a value."""


class Metrics:
    """The counts of this process since it started, by name and labels."""

    def __init__(self, clock: Clock) -> None:
        self.counts = defaultdict[tuple[str, str], float](int)
        self._clock = clock
        self._began: dict[str, float] = {}

    def count(self, name: str, value: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        self.counts[name, labelled(labels)] += value

    def observe(self, name: str, since: float, **labels: str) -> None:
        """Add the time since `since`, by the clock's stopwatch, to a histogram."""
        seconds = self._clock.monotonic() - since
        for bound, bucket in _buckets(name, labelled(labels)):
            self.counts[bucket] += seconds <= bound
        self.count(f"{name}_sum", seconds, **labels)
        self.count(f"{name}_count", 1, **labels)

    def add(self, session_key: str, event: RunEvent) -> None:
        """Count an event. No session's name or content is kept."""
        match event:
            case LlmStart():
                self._began.setdefault(session_key, self._clock.monotonic())
            case LlmEnd(message):
                usage = message.usage
                self.count("denizen_model_calls_total")
                self.count("denizen_tokens_total", usage.input or 0, kind="input")
                self.count("denizen_tokens_total", usage.output or 0, kind="output")
                self.count("denizen_cost_usd_total", usage.cost_usd or 0)
            case ToolEnd(is_error=failed):
                self.count("denizen_tool_calls_total", failed=str(failed).lower())
            case Done(result):
                self.count("denizen_turns_total", stop_reason=result.stop_reason)
                if (began := self._began.pop(session_key, None)) is not None:
                    self.observe("denizen_turn_seconds", began)

    def take(self) -> list[Count]:
        """Remove and return the counts since the last call."""
        taken = [(*of, value) for of, value in self.counts.items()]
        self.counts.clear()
        return taken

    def add_counts(self, counts: Iterable[Count]) -> None:
        """Add the counts of another process."""
        for name, labels, value in counts:
            self.counts[name, labels] += value


@cache
def _buckets(name: str, labels: str) -> list[tuple[float, tuple[str, str]]]:
    """The names of a histogram's buckets in `Metrics.counts`, by bound; cached, because each request needs all."""
    others = f"{labels[1:-1]}," if labels else ""
    names = (*(f"{bound:g}" for bound in BUCKET_BOUNDS_S[:-1]), "+Inf")
    return [
        (bound, (f"{name}_bucket", f'{{{others}le="{le}"}}')) for bound, le in zip(BUCKET_BOUNDS_S, names, strict=True)
    ]


def labelled(labels: Mapping[str, str]) -> str:
    """Labels as Prometheus writes them."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
