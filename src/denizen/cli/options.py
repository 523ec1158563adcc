"""The options that commands share which run turns, and the agent and the host that they describe."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec.structs import replace

from denizen.cli.home import is_ours, store, workspace_option
from denizen.cli.host import JsonHost, TerminalLines, terminal_lines
from denizen.cli.output import is_interactive
from denizen.cli.terminal import Terminal
from denizen.config.home import places
from denizen.config.load import Loaded, load
from denizen.engine import TurnOptions
from denizen.engine.output import OutputType
from denizen.errors import ConfigError
from denizen.memory import LongTermMemory
from denizen.ports import Budget, Level, Model, Reasoning, SessionStore
from denizen.runtime.clock import SystemClock
from denizen.sessions import new_name
from denizen.sessions.index import each_session
from denizen.worlds.assemble import Agent
from denizen.worlds.world import Profile, worlds

if TYPE_CHECKING:
    from denizen.cli.live import LivePrompt


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
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
        return not (self.json or self.yes or self.non_interactive) and is_interactive()

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
        if self.reasoning is None:
            return loaded
        tables = {  # what they say of one model's or provider's reasoning gives way to the option
            name: {key: replace(each, reasoning=None) for key, each in getattr(loaded.config, name).items()}
            for name in ("models", "providers")
        }
        return dataclasses.replace(loaded, config=replace(loaded.config, **tables))

    def agent(
        self,
        loaded: Loaded,
        model: Model | None = None,
        profile: Profile | None = None,
        *,
        store: SessionStore | None = None,
        memory: LongTermMemory | None = None,
        budget: Budget | None = None,
    ) -> Agent:
        """The agent to run turns with; what is given stands in for what is named. Raises ConfigError."""
        return Agent(
            loaded.config,
            environ=loaded.environ,
            profile=profile or self.profile or self.usual_profile,
            model=model,
            store=store,
            memory=memory,
            budget=budget,
            read_only=self.read_only,
        )

    def turn(self, agent: Agent, output: OutputType | None = None) -> TurnOptions:
        """What holds for one turn of the agent."""
        stream = not self.no_stream and output is None
        return TurnOptions(stream=stream, output=output, read_only=agent.read_only)

    def host(
        self,
        commands: list[str] | None = None,
        live: "LivePrompt | None" = None,
        lines: TerminalLines | None = None,
        outputs: list[str] | None = None,
    ) -> Terminal | JsonHost:
        """Where a turn is shown and who is asked: at the prompt that is there while the agent works, if one is.

        `commands` is for those that are typed meanwhile, `outputs` for tool outputs that are shown in part.
        """
        if self.json:
            return JsonHost(yes=self.yes, refuse=self.non_interactive)
        return Terminal(
            SystemClock(),
            live or lines or terminal_lines(),
            yes=self.yes,
            refuse=self.non_interactive,
            commands=commands,
            quiet=self.quiet,
            verbose=self.verbose,
            progress=live,
            outputs=outputs,
        )

    async def with_session(self, loaded: Loaded, *, begun: bool) -> "CommandOptions":
        """These options with the name of the session, and the profile that it began with unless another is named.

        It is the session of `--session`, else the one of `--continue`, else a new one. Raises ConfigError if there
        is none to continue, or must be one that has `begun` and isn't.
        """
        info = store().info(self.session) if self.session else None
        if self.continue_ and not self.session:
            _, workspace = places(loaded.config)
            async for each in each_session(store()):
                if each.workspace == str(workspace) and is_ours(each.key):
                    info = each
                    break
            if info is None:
                raise ConfigError(f"There is no session to continue in {workspace}. Start one without --continue.")
        if begun and info is None:
            raise ConfigError(f"There is no session {self.session}. Give a message to start it.")
        name = self.session or (info.key if info else new_name(SystemClock()))
        known = info and any(world.profile.name == info.profile for world in worlds())
        began = info.profile if info and known else None
        return dataclasses.replace(self, session=name, profile=self.profile or began)


def _reasoning(_: click.Context, __: click.Parameter, value: str | None) -> Reasoning | None:
    """How much a model thinks: a level, or a number of tokens."""
    if value is None or value in get_args(Level):
        return value  # pyrefly: ignore[bad-return]
    if value.isdecimal():
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a level nor a number of tokens.")


Option = Callable[[Callable[..., Any]], Callable[..., Any]]

SESSION: tuple[Option, ...] = (
    click.option("--session", default="", metavar="NAME", help="The session to continue, or to create."),
    click.option(
        "--continue", "--resume", "continue_", is_flag=True, help="Continue the last session in this workspace."
    ),
)
"""Which session a turn belongs to."""

MODEL: tuple[Option, ...] = (
    click.option(
        "--model", default="", metavar="PROVIDER:MODEL", help="The model to use; `denizen models` lists them."
    ),
    click.option(
        "--reasoning",
        metavar="LEVEL",
        callback=_reasoning,
        help="How much the model thinks first: none, low, medium, high, or a number of tokens.",
    ),
    click.option(
        "--max-iterations", "--max-turns", type=click.IntRange(1), metavar="N", help="Maximum number of model calls."
    ),
    click.option("--max-cost", type=click.FloatRange(0), metavar="USD", help="Maximum cost in US dollars."),
    click.option(
        "--auto-approve",
        type=click.Choice(["low", "medium", "high"]),
        help="Ask only about edits and commands above this risk (default: policy.auto_approve).",
    ),
    click.option("--read-only", is_flag=True, help="Refuse everything but reading."),
)
"""Which model, and how far it may go."""

WORKPLACE: tuple[Option, ...] = (
    workspace_option,
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read this file instead of the home's denizen.toml.",
    ),
    click.option(
        "--actions", type=click.Choice(["native", "shell"]), help="Structured calls, or $(cmd) in text (agent.actions)."
    ),
    click.option(
        "--driver",
        default="",
        metavar="NAME",
        help="The driver that steers turns: simple, planning, reflective, or a Python file.",
    ),
)
"""Where the agent works, and how."""

TERMINAL: tuple[Option, ...] = (
    click.option("--json", is_flag=True, help="Print every event as a line of JSON; the last is `done`."),
    click.option("--no-stream", is_flag=True, help="Don't stream: wait for whole answers."),
    click.option("--yes", is_flag=True, help="Approve every tool call, except for quotations."),
    click.option("--non-interactive", is_flag=True, help="Never ask: refuse calls that need an approval."),
    click.option("--quiet", is_flag=True, help="Print the reply alone."),
    click.option("--verbose", is_flag=True, help="Show tool outputs whole, not just their first lines."),
)
"""What is printed, and what is asked."""


def command_options(
    groups: Sequence[tuple[Option, ...]] = (SESSION, MODEL, WORKPLACE, TERMINAL), *, profile: str = "assistant"
) -> Option:
    """Give a command the options of these groups and the profile, as one argument `options`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            ours = {field.name: given.pop(field.name) for field in fields(CommandOptions) if field.name in given}
            options = CommandOptions(usual_profile=profile, **ours)
            if options.quiet and options.verbose:
                raise click.UsageError("--quiet and --verbose contradict each other: use one of them.")
            if options.yes and options.non_interactive:
                raise click.UsageError("--yes and --non-interactive contradict each other: use one of them.")
            return command(options=options, **given)

        what = f"The agent's profile (default: the session's, else {profile})."
        chosen = click.option("--profile", metavar="NAME", help=what)
        for option in reversed((*(option for group in groups for option in group), chosen)):
            with_options = option(with_options)
        return with_options

    return decorate
