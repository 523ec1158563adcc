"""Samples, tables and goals, and how they are printed."""

import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Samples:
    """One figure, measured several times."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        """The median, and where there were several, the least and the most."""
        if len(self.values) == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(min(self.values))}–{number(max(self.values))})"

    def over(self, base: "Samples") -> str:
        """How many times `base` this is, median over median."""
        return f"{self.median / base.median:.2f} ×"

    def beside(self, base: "Samples") -> float:
        """How many times `base` this is, round by round: the median, which a machine that drifts changes little."""
        return statistics.median(value / other for value, other in zip(self.values, base.values, strict=True))


def number(value: float) -> str:
    """Three figures, no exponent."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Goal:
    """What was promised of a figure: at most `limit`."""

    what: str
    limit: float
    got: float
    unit: str = "×"

    @property
    def held(self) -> bool:
        return self.got <= self.limit


@dataclass(slots=True)
class Table:
    """One table: `note` says what was measured and what the ratios are over."""

    title: str
    note: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """A row; its cells become text, a missing end stays empty."""
        texts = [str(cell) for cell in cells]
        self.rows.append(texts + [""] * (len(self.columns) - len(texts)))

    def markdown(self) -> str:
        lines = [list(self.columns), ["---"] + ["--:"] * (len(self.columns) - 1), *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"## {self.title}\n\n{self.note}\n\n{body}\n"


def goals_table(tables: Sequence[Table]) -> Table:
    """Every goal of every table, held or missed."""
    table = Table("Goals", "What the tables below were asked to hold.", ("goal", "at most", "measured", "held"))
    for goal in (goal for each in tables for goal in each.goals):
        limit, got = f"{number(goal.limit)} {goal.unit}", f"{number(goal.got)} {goal.unit}"
        table.add(goal.what, limit, got, "yes" if goal.held else "**no**")
    return table


def placeless(text: str) -> str:
    """A message without the paths and addresses in it: results name no places."""
    return re.sub(r"\S*/\S*", "…", text)


def machine() -> str:
    """The machine as far as the figures need it: processor, memory, Python."""
    cpu = _first_value("/proc/cpuinfo", "model name") or "unknown processor"
    memory = round(int((_first_value("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20)
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{cpu}, {memory} GB of memory, Python {version}"


def _first_value(path: str, key: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None
