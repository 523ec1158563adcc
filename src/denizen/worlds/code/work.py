"""One task in a project: the turn, the checks that its changes must pass, and the way back where they don't."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from denizen.engine import Agent, run_turn
from denizen.entries import CheckpointEntry, StateEntry
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import UserMessage
from denizen.ports import Answer, Ask, Session, TurnIO
from denizen.worlds.code.validators import Verdict, validate

TASK = "task"
"""The state entry that holds what the files were when a task began, and the role it was given to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How a task is done: the `validators` that must pass, how often the agent may try, and whether a failure takes
    its changes back.
    """

    role: str = ""
    validators: Sequence[str] = ()
    tries: int = 3
    rollback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a task: the turn's result, the check that failed last, what changed since `began` (a snapshot)."""

    result: RunResult
    failed: Verdict | None = None
    rolled_back: bool = False
    began: str = ""
    changed: Sequence[str] = ()

    @property
    def done(self) -> bool:
        """Whether the task was answered, and its changes passed."""
        return self.result.stop_reason == "answered" and self.failed is None


@dataclass(slots=True)
class Checks:
    """Runs the validators on what would be the last word of a turn; the agent gets what failed, `tries` times."""

    agent: Agent
    io: TurnIO
    commands: Sequence[str]
    tries: int
    failed: Verdict | None = field(default=None, init=False)

    async def __call__(self, reply: str) -> str:
        """What failed, for the model; empty: nothing did, or it has tried often enough."""
        agent = self.agent
        for command in self.commands:
            self.io.emit(Notice(f"checking: {command}"))
        network = agent.config.sandbox.network
        verdicts = await validate(self.commands, sandbox=agent.sandbox, workspace=agent.workspace, network=network)
        self.failed = next((_redacted(agent, verdict) for verdict in verdicts if not verdict.passed), None)
        if self.failed is None:
            return ""
        self.tries -= 1
        if self.tries <= 0:
            return ""
        return (
            f"The work isn't done: `{self.failed.command}` fails.\n{self.failed.output}\n"
            "Mend the cause. Don't weaken the check."
        )


async def work(
    agent: Agent, session: Session, message: UserMessage | None, io: TurnIO, job: Job, *, stream: bool = True
) -> Outcome:
    """Do the task, or go on with one that was left unfinished (`message` None).

    Raises what `run_turn` raises, after the files were brought back where the job says so.
    """
    began = await _begin(agent, session, job) if message else _began(session)
    checks = Checks(agent, io, await _allowed(agent, io, job.validators), job.tries)
    answered = False
    try:
        accept = checks if checks.commands else None
        result = await run_turn(agent, session, message, io, stream=stream, accept=accept)
        answered = (result.stop_reason == "answered" and checks.failed is None) or result.stop_reason == "parked"
    finally:
        rolled_back = not answered and job.rollback and await _roll_back(agent, session, io, began)
    changed = (await agent.checkpoints.diff(began)).paths if agent.checkpoints and began and not rolled_back else ()
    return Outcome(result=result, failed=checks.failed, rolled_back=rolled_back, began=began, changed=changed)


async def work_aside(
    agent: Agent,
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    job: Job,
    *,
    beside: Callable[[Path], Agent],
) -> Outcome:
    """Do the task in a copy of the project, and bring its changes into the project only if they pass.

    `beside` makes the agent that works in the copy; what git ignores is there as links. Raises what `work` raises, and
    DenizenError where the user has changed the same files meanwhile: then nothing is touched.
    """
    if agent.checkpoints is None:
        raise DenizenError("This agent keeps no checkpoints, so there is no copy to work in.")
    began = await agent.checkpoints.snapshot()
    async with agent.checkpoints.worktree(began) as copy, beside(copy.path) as other:
        other.read_only = agent.read_only
        outcome = await work(other, session, message, io, job)
        if outcome.done:
            await agent.checkpoints.apply(copy)
            changed = (await agent.checkpoints.diff(began)).paths
            io.emit(Notice(f"The changes passed and are applied: {', '.join(changed) or 'none'}."))
            return replace(outcome, began=began, changed=changed)
    io.emit(Notice("The project is as it was: the changes in the copy did not pass.", "warning"))
    return replace(outcome, began=began, changed=())


async def _begin(agent: Agent, session: Session, job: Job) -> str:
    began = await agent.checkpoints.snapshot() if agent.checkpoints else ""
    await session.append(StateEntry(name=TASK, value={"began": began, "role": job.role}))
    return began


def _began(session: Session) -> str:
    for entry in reversed(session.entries):
        if isinstance(entry, StateEntry) and entry.name == TASK:
            return str(entry.value["began"])
    return ""


def role_of(entries: Sequence[object]) -> str:
    """The role that the session's last task was given to; empty: none."""
    for entry in reversed(entries):
        if isinstance(entry, StateEntry) and entry.name == TASK:
            return str(entry.value["role"])
    return ""


async def _allowed(agent: Agent, io: TurnIO, commands: Sequence[str]) -> Sequence[str]:
    """The commands, where the person lets them run: in a sandbox nobody need ask."""
    if agent.sandbox.confines or not commands:
        return commands
    asked = Ask("", f"There is no sandbox here: may {', '.join(commands)} run with all your rights to check the work?")
    answer = await io.ask(asked)
    if isinstance(answer, Answer) and answer.allow:
        return commands
    io.emit(Notice("The work isn't checked: the checks may not run without a sandbox.", "warning"))
    return ()


def _redacted(agent: Agent, verdict: Verdict) -> Verdict:
    return replace(verdict, output=agent.redact(verdict.output))


async def _roll_back(agent: Agent, session: Session, io: TurnIO, began: str) -> bool:
    if not (agent.checkpoints and began):
        io.emit(Notice("There is no checkpoint to go back to; the files stay as they are.", "warning"))
        return False
    kept = (entry.snapshot for entry in reversed(session.entries) if isinstance(entry, CheckpointEntry))
    last = next(kept, began)
    try:
        await agent.checkpoints.restore(began, expect=last)
    except DenizenError as why:
        io.emit(Notice(f"The files could not be brought back: {why}", "error"))
        return False
    io.emit(Notice("The task failed; the files are what they were before it."))
    return True
