"""The options that commands share which run turns, and the agent and the host that they describe."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec.structs import replace

from denizen.cli.approval import Person
from denizen.cli.asking import somebody_there
from denizen.cli.home import is_ours, store
from denizen.cli.json_lines import JsonLines
from denizen.cli.lines import Lines, terminal_lines
from denizen.cli.terminal import Terminal
from denizen.clock import SystemClock
from denizen.config import Config
from denizen.config.home import places
from denizen.config.load import Loaded, load
from denizen.engine import Agent
from denizen.engine.profiles import PROFILES
from denizen.errors import ConfigError
from denizen.ports import Level, Model, Reasoning, SessionInfo
from denizen.sessions import new_name

if TYPE_CHECKING:
    from denizen.cli.live import Live


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """What the command line said."""

    usual_profile: str
    profile: str | None = None
    session: str = ""
    continue_: bool = False
    model: str = ""
    reasoning: str | int | None = None
    max_iterations: int | None = None
    max_cost: float | None = None
    auto_approve: str | None = None
    read_only: bool = False
    workspace: Path | None = None
    config: Path | None = None
    actions: str | None = None
    driver: str = ""
    json: bool = False
    no_stream: bool = False
    yes: bool = False
    non_interactive: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def interactive(self) -> bool:
        """Whether there is a person who can be asked before the turn."""
        return not (self.json or self.yes or self.non_interactive) and somebody_there()

    def load(self) -> Loaded:
        """The configuration with these options over it. Raises ConfigError."""
        driver = str(Path(self.driver).absolute()) if self.driver.endswith(".py") else self.driver
        given = {
            "reasoning": self.reasoning,
            "max_iterations": self.max_iterations,
            "max_cost_usd": self.max_cost,
            "actions": self.actions,
            "driver": driver or None,
        }
        overrides: dict[str, Any] = {"agent": {name: value for name, value in given.items() if value is not None}}
        if self.model:
            overrides["model"] = self.model
        if self.auto_approve:
            overrides["policy"] = {"auto_approve": self.auto_approve}
        loaded = load(self.config, workspace=self.workspace, overrides=overrides)
        return loaded if self.reasoning is None else dataclasses.replace(loaded, config=_for_all(loaded.config))

    def agent(self, loaded: Loaded, model: Model | None = None) -> Agent:
        """The agent to run turns with; `model` stands in for the configured one. Raises ConfigError."""
        profile = self.profile or self.usual_profile
        return Agent(loaded.config, environ=loaded.environ, profile=profile, model=model, read_only=self.read_only)

    def host(
        self,
        commands: list[str] | None = None,
        live: "Live | None" = None,
        lines: Lines | None = None,
        outputs: list[str] | None = None,
    ) -> Terminal | JsonLines:
        """Where a turn is shown and who is asked: at the prompt that is there while the agent works, if one is.

        `commands` is for those that are typed meanwhile, `outputs` for what tools gave and is shown in part.
        """
        asked = live or (None if self.json else lines or terminal_lines())
        person = Person(asked, yes=self.yes, refuse=self.non_interactive, commands=commands)
        return (
            JsonLines(person)
            if self.json
            else Terminal(
                SystemClock(),
                person,
                quiet=self.quiet,
                verbose=self.verbose,
                status=live,
                in_chat=commands is not None,
                outputs=outputs,
            )
        )

    async def at_session(self, loaded: Loaded, *, begun: bool) -> "TurnOptions":
        """These options with the name of the session, and the profile that it began with unless another is named.

        It is the session of `--session`, else the one of `--continue`, else a new one. Raises ConfigError where there
        is none to continue, or must be one that has `begun` and isn't.
        """
        info = store().info(self.session) if self.session else None
        if self.continue_ and not self.session:
            _, workspace = places(loaded.config)
            info = await _last(workspace)
        if begun and info is None:
            raise ConfigError(f"There is no session {self.session}. Give a message, and it begins.")
        name = self.session or (info.key if info else new_name(SystemClock()))
        began = info.profile if info and info.profile in PROFILES else None
        return dataclasses.replace(self, session=name, profile=self.profile or began)


async def _last(workspace: Path) -> SessionInfo:
    for info in await store().list():
        if info.workspace == str(workspace) and is_ours(info.key):
            return info
    raise ConfigError(f"There is no session to continue in {workspace}. Begin one without --continue.")


Group = tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]
"""Options that belong together."""


class Thinking(click.ParamType[Reasoning]):
    """How much a model thinks: a level or tokens."""

    name = "LEVEL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reasoning:
        """The level, or the number."""
        if isinstance(value, str) and value.isdecimal():
            return int(value)
        return value if value in get_args(Level) else self.fail(f"{value!r} is neither a level nor a number of tokens.")


def _for_all(config: Config) -> Config:
    """The configuration without what it says of the reasoning of one model or provider: the option counts for all."""
    tables = {
        name: {key: replace(each, reasoning=None) for key, each in getattr(config, name).items()}
        for name in ("models", "providers")
    }
    return replace(config, **tables)


SESSION: Group = (
    click.option("--session", default="", metavar="NAME", help="The conversation to go on with, or to begin."),
    click.option(
        "--continue", "--resume", "continue_", is_flag=True, help="Go on with the last one in this workspace."
    ),
)
"""Which session it is about."""

MODEL: Group = (
    click.option("--model", default="", metavar="PROVIDER:MODEL", help="Who thinks; `denizen models` lists them."),
    click.option("--reasoning", type=Thinking(), help="How much it thinks first: none, low, medium, high, or tokens."),
    click.option("--max-iterations", "--max-turns", type=click.IntRange(1), metavar="N", help="Model calls at most."),
    click.option("--max-cost", type=click.FloatRange(0), metavar="USD", help="US dollars at most."),
    click.option(
        "--auto-approve",
        type=click.Choice(["low", "medium", "high"]),
        help="Edits and commands up to this risk run without asking (policy.auto_approve; else high: all).",
    ),
    click.option("--read-only", is_flag=True, help="Refuse everything but reading."),
)
"""Who thinks, and how far that may go."""

WORKPLACE: Group = (
    click.option(
        "--workspace",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="The folder to work in. Otherwise: this git repository, else the agent's own folder.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read this file in place of the home's denizen.toml.",
    ),
    click.option(
        "--actions", type=click.Choice(["native", "shell"]), help="Structured calls, or $(cmd) in text (agent.actions)."
    ),
    click.option("--driver", default="", metavar="NAME", help="What steers: simple, planning, reflective, a file."),
)
"""Where the agent works, and how."""

TERMINAL: Group = (
    click.option("--json", is_flag=True, help="Print every event as a line of JSON; the last is `done`."),
    click.option("--no-stream", is_flag=True, help="Wait for whole answers."),
    click.option("--yes", is_flag=True, help="Answer every question about a tool with yes, but for quotations."),
    click.option("--non-interactive", is_flag=True, help="Ask nothing: what needs a question is refused."),
    click.option("--quiet", is_flag=True, help="Print the reply alone."),
    click.option("--verbose", is_flag=True, help="Show all that tools give, not just the first lines."),
)
"""What is printed, and what is asked."""


def turn_options(
    groups: Sequence[Group] = (SESSION, MODEL, WORKPLACE, TERMINAL), *, profile: str = "assistant"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of these groups and the profile, as one argument `options`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            ours = {field.name: given.pop(field.name) for field in fields(TurnOptions) if field.name in given}
            options = TurnOptions(usual_profile=profile, **ours)
            _check(options)
            return command(options=options, **given)

        what = f"What the agent sees and how it acts ({profile}, unless the session began with another)."
        chosen = click.option("--profile", metavar="NAME", help=what)
        for option in reversed((*(option for group in groups for option in group), chosen)):
            with_options = option(with_options)
        return with_options

    return decorate


def _check(options: TurnOptions) -> None:
    if options.quiet and options.verbose:
        raise click.UsageError("--quiet and --verbose contradict each other: use one of them.")
    if options.yes and options.non_interactive:
        raise click.UsageError("--yes and --non-interactive contradict each other: use one of them.")
