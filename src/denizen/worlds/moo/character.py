"""A running agent's character: its soul, its lessons, and the rules that answer lines for it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from denizen.errors import ConfigError
from denizen.prompt import Skill
from denizen.worlds.moo.server_text import ServerLine
from denizen.worlds.moo.session_log import read_prior_session
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.moo.soul import SoulRule, compile_rule, patch_soul, read_soul
from denizen.worlds.moo.speech import looks_spoken
from denizen.worlds.moo.tools import NAMES

RULE_PAUSE_S: Final = 5.0
"""Seconds in which a rule doesn't answer again."""
MAX_ANSWERS_PER_MINUTE: Final = 10
"""Answers of all rules together in a minute."""

_HARMLESS: Final = re.compile(r"(?:say|emote|whisper|page|look)\b[^;@]*")
"""One command; after `;` there would be another."""


class Character:
    """An agent's directory, read: its `soul` with the rules of `engagement`, and the `prior` run's last lines.

    `skills` are those that it can read.

    Raises ConfigError for a file that can't be read.
    """

    def __init__(self, folder: Path, settings: MooSettings, skills: Sequence[Skill] = ()) -> None:
        self.folder = folder
        self.skills = skills
        self.settings = settings
        self.prior = read_prior_session(folder)
        self.engagement = Engagement()
        self._read()

    @property
    def tools(self) -> Sequence[str]:
        """The names of the tools that it has, besides those that every agent has; none: all."""
        return [*self.soul.tools, *self.settings.tools]

    @property
    def problems(self) -> Sequence[str]:
        """Problems in its files and with the names of its tools, a sentence each."""
        unknown = ", ".join(name for name in self.tools if name not in NAMES)
        tools = [f"Unknown tool {unknown}; available: {', '.join(NAMES)}."] if unknown else []
        return [*self.soul.problems, *tools]

    def learn(self, directive: str, text: str) -> str:
        """Add to its soul what the model has learned, by a directive's name; what became of it, for the log."""
        try:
            learned = patch_soul(self.folder, directive, text)
            self._read()
        except ConfigError as error:
            return f"Not learned: {error}"
        return learned

    def _read(self) -> None:
        self.soul = read_soul(self.folder, use_baseline=self.settings.use_baseline)
        self.engagement.use(self.soul.rules)


class Engagement:
    """Answers lines by the first rule that matches: not too often, and what players say only with harmless words."""

    def __init__(self, rules: Sequence[SoulRule] = ()) -> None:
        self.use(rules)
        self._answered: dict[SoulRule, float] = {}
        self._times: list[float] = []

    def use(self, rules: Sequence[SoulRule]) -> None:
        """Answer by these rules from now on."""
        self._rules = [(compile_rule(rule.pattern), rule) for rule in rules]

    def answer(self, line: ServerLine, now: float) -> str:
        """The command that answers a line at `now` (seconds), or an empty string."""
        rule = next((rule for pattern, rule in self._rules if pattern.search(line.text[:500])), None)
        if rule is None:
            return ""
        may_be_said = line.may_be_said or looks_spoken(line.text)
        if may_be_said and not (rule.for_players or _HARMLESS.fullmatch(rule.command)):
            return ""
        self._times = [time for time in self._times if now - time < 60]
        if (
            now - self._answered.get(rule, now - RULE_PAUSE_S) < RULE_PAUSE_S
            or len(self._times) >= MAX_ANSWERS_PER_MINUTE
        ):
            return ""
        self._answered[rule] = now
        self._times.append(now)
        return rule.command
