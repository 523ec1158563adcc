"""What a turn used, in words."""

from denizen.events import RunResult
from denizen.messages import Usage
from denizen.plural import counted


def usage_line(result: RunResult, seconds: float) -> str:
    """How the turn ended, what it used, and how long it took."""
    parts = [result.stop_reason.replace("_", " "), counted(result.iterations, "iteration"), *usage_parts(result.usage)]
    if result.retries:
        parts.append(counted(result.retries, "retry"))
    return " · ".join([*parts, duration(seconds)])


def usage_parts(usage: Usage) -> list[str]:
    """Tokens and cost, as far as they are known."""
    parts = []
    if usage.input is not None or usage.output is not None:
        parts.append(f"{usage.input or 0:,} in + {usage.output or 0:,} out")
    if usage.cache_read:
        parts.append(f"{usage.cache_read:,} cached")
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd:.4f}")
    return parts


def duration(seconds: float) -> str:
    """A time in words: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"
