"""One task in a project: the turn, the checks that its changes must pass, and the rollback if they don't."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from denizen.checkpoints import Shadow
from denizen.engine import Resume, TurnOptions, run_turn
from denizen.engine.resume import question_of, unfinished
from denizen.engine.snapshots import take_snapshot
from denizen.engine.undo import take_back
from denizen.entries import AnyEntry, EndEntry, StateEntry, SystemEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import UserMessage
from denizen.ports import Answer, Ask, Session, TurnIO
from denizen.ports.checkpoints import AFTER, BEFORE, CheckpointSpan, span_of
from denizen.worlds.code.validators import Verdict, validate
from denizen.worlds.world import AgentHandle

TASK = "task"
"""The state entry that says how a task is to be done, and names the snapshot of the files when it began."""

FAILED_BEFORE = "failed before"
"""The state entry that holds the checks that failed before a task began, and their outputs."""

FIX = "Fix the cause. Don't weaken the check."
FIX_OR_LEAVE = (
    "It failed in the same way before the task began. If fixing that is part of the task, do it. "
    "Otherwise leave it, and give your answer again."
)
TAKEN_BACK = "The task failed, and its file changes were undone."


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task is done, also when it is continued later.

    Its changes must pass the `validators`, within `tries`; those that are the project's `own` may fail as they did
    before the task. `rollback`: a failure undoes the changes. `shadow`: it is done in a copy. `commits`: it ends in a
    commit to `repository`, where the project was when the task began.
    """

    role: str = ""
    validators: list[str] = []
    own: list[str] = []
    tries: int = 3
    rollback: bool = False
    shadow: bool = False
    commits: bool = False
    repository: str = ""


@dataclass(frozen=True, slots=True)
class CodeTask:
    """A task to do, or to go on with (`message` None): who does it, in which session, how, and who hears of it."""

    agent: AgentHandle
    session: Session
    message: UserMessage | None
    io: TurnIO
    spec: TaskSpec
    options: TurnOptions

    async def snapshot(self, label: str) -> None:
        """Keep the files as they are now, under that label."""
        await take_snapshot(self.agent.record, self.session, self.io, label)

    async def check(self, command: str) -> Verdict:
        """Run one check of the project; its output comes without secrets."""
        self.io.emit(Notice(f"checking: {command}"))
        agent = self.agent
        network = agent.config.sandbox.network
        verdict = await validate(command, sandbox=agent.record.sandbox, workspace=agent.workspace, network=network)
        return replace(verdict, output=agent.record.redact(verdict.output))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a task ended: the turn's result, the check that failed last, and the paths that the agent changed, where the
    task ends in a commit or was done in a copy.
    """

    result: RunResult
    failed: Verdict | None = None
    rolled_back: bool = False
    changed: Sequence[str] = ()

    @property
    def done(self) -> bool:
        """Whether the task was answered, and its changes passed."""
        return self.result.stop_reason == "answered" and self.failed is None


@dataclass(slots=True)
class Checks:
    """Runs the validators on a reply that would end the turn; the agent gets what failed, `tries` times.

    `before`: the outputs of the project's own checks that failed before the task began. The agent hears once that they
    still fail; after that they are excused.
    """

    task: CodeTask
    tries: int
    before: Mapping[str, str]
    failed: Verdict | None = field(default=None, init=False)
    excused: set[str] = field(default_factory=set[str], init=False)

    async def __call__(self, reply: str) -> str:
        """What failed, for the model; empty: nothing did, or it has tried often enough."""
        self.tries -= 1
        await self.task.snapshot(BEFORE)
        self.failed = await self._first_failure()
        await self.task.snapshot(AFTER)
        if self.failed is None:
            self.task.io.emit(Notice("no other check fails" if self.excused else "the checks pass"))
        if self.failed is None or self.tries <= 0:
            return ""
        advice = FIX
        if self._failed_before(self.failed):
            self.excused.add(self.failed.command)
            advice = FIX_OR_LEAVE
        self.task.io.emit(Notice(f"{self.failed.command} fails; the agent gets its output", "warning"))
        return f"The work isn't done: `{self.failed.command}` fails.\n{self.failed.shown}\n{advice}"

    async def _first_failure(self) -> Verdict | None:
        """The first check that fails and isn't excused; the later ones aren't run."""
        for command in self.task.spec.validators:
            verdict = await self.task.check(command)
            if verdict.passed:
                self.excused.discard(command)
            elif self._failed_before(verdict) and (command in self.excused or self.tries <= 0):
                self.excused.add(command)
                self.task.io.emit(Notice(f"{command} fails as it did before the task began", "warning"))
            else:
                return verdict
        return None

    def _failed_before(self, verdict: Verdict) -> bool:
        return verdict.command in self.before and verdict.repeats(self.before[verdict.command])


async def work(task: CodeTask) -> Outcome:
    """Do the task, or go on with one that was left unfinished.

    Raises what `run_turn` raises, after the files were brought back where the spec says so, and DenizenError where its
    validators may not run.
    """
    await prepare(task)
    spec, checkpoints = task.spec, task.agent.checkpoints
    stays = False
    try:
        outcome = await attempt(task)
        stays = outcome.done or outcome.result.stop_reason == "parked"
    finally:
        rolled_back = not stays and spec.rollback and await _roll_back(task)
    paths = await changed(checkpoints, task.session) if spec.commits and checkpoints else ()
    return replace(outcome, rolled_back=rolled_back, changed=paths)


async def prepare(task: CodeTask) -> None:
    """Get the user's leave for the checks where no sandbox confines them, and record how a new task is to be done.

    Where the spec depends on it, the files are snapshotted now: otherwise that waits for the first call that may change
    some. Raises DenizenError if the checks may not run, or the files can't be snapshotted.
    """
    spec, checkpoints = task.spec, task.agent.checkpoints
    if spec.validators and not task.agent.record.sandbox.confines:
        commands = ", ".join(spec.validators)
        ask = Ask("", f"Allow {commands} to check the work? This machine has no sandbox: it runs with all your rights.")
        answer = await task.io.ask(ask)
        if not isinstance(answer, Answer) or not answer.allow:
            raise DenizenError(
                "The checks may not run without a sandbox, so the work can't be checked. --yes allows them."
            )
    if task.message and not question_of(task.session.entries):
        needs_snapshot = spec.rollback or spec.shadow or spec.commits
        began = await checkpoints.snapshot() if checkpoints and needs_snapshot else ""
        await task.session.append(StateEntry(name=TASK, value=msgspec.to_builtins(_Task(began, spec))))


async def attempt(task: CodeTask) -> Outcome:
    """Run the turn with its checks. Raises what `run_turn` raises."""
    session, spec = task.session, task.spec
    if task.message and spec.own and not question_of(session.entries):
        # Record which checks fail already, and let the model know
        await task.snapshot(BEFORE)
        verdicts = [await task.check(command) for command in spec.own]
        await task.snapshot(AFTER)
        failed = [verdict for verdict in verdicts if not verdict.passed]
        await session.append(StateEntry(name=FAILED_BEFORE, value={each.command: each.output for each in failed}))
        for verdict in failed:
            ending = " ".join(verdict.output.splitlines()[-2:])
            task.io.emit(Notice(f"{verdict.command} fails already, before the task: {ending}", "warning"))
            text = f"`{verdict.command}` fails already, before the task:\n{verdict.shown}"
            await session.append(SystemEntry(text=text))
    _, since = _last_task(session.entries)
    states = (entry for entry in since if isinstance(entry, StateEntry) and entry.name == FAILED_BEFORE)
    before = next((found for entry in states if (found := entry.read(dict[str, str]))), {})
    checks = Checks(task, spec.tries, before)
    is_over = task.message is None and not unfinished(session.entries)
    options = replace(task.options, accept=checks if spec.validators else None)
    result = await run_turn(task.agent.record, session, task.message or Resume(), task.io, options)
    if is_over and spec.validators:  # the process ended before the verdict was recorded
        await checks(result.reply)
    return Outcome(result=result, failed=checks.failed)


def last_task_spec(entries: Sequence[AnyEntry]) -> TaskSpec | None:
    """How the session's last task was to be done."""
    task, _ = _last_task(entries)
    return task.spec if task else None


def unfinished_task_spec(entries: Sequence[AnyEntry]) -> TaskSpec | None:
    """How to do the task that the session is in the middle of; None if it is in none."""
    said = ended = False
    for entry in reversed(entries):
        match entry:
            case StateEntry(name=name) if said and name == TASK:
                return last_task_spec(entries)
            case UserEntry() if not ended:
                said = True
            case EndEntry() if said:
                ended = True  # of an earlier turn that was cut off when the task began
            case UserEntry() | EndEntry():
                return None
    return None


def message_of_task(entries: Sequence[AnyEntry]) -> UserMessage | None:
    """What the user said to begin the session's last task."""
    _, since = _last_task(entries)
    return next((entry.message for entry in since if isinstance(entry, UserEntry)), None)


class _Task(msgspec.Struct, frozen=True):
    """The value of a `task`: the snapshot that it began with (empty: its spec needs none), and how it is done."""

    began: str
    spec: TaskSpec = msgspec.field(name="job")


def _last_task(entries: Sequence[AnyEntry]) -> tuple[_Task | None, Sequence[AnyEntry]]:
    """The last task as it was recorded, and the entries since it began."""
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        if isinstance(entry, StateEntry) and entry.name == TASK and (task := entry.read(_Task)):
            return task, entries[at:]
    return None, ()


def _checkpoints_of_task(session: Session) -> CheckpointSpan:
    """The checkpoints since the last task began."""
    task, since = _last_task(session.entries)
    return span_of(since, task.began if task else "")


async def changed(checkpoints: Shadow, session: Session) -> Sequence[str]:
    """What the agent changed since the task began, and is still so; what the user did meanwhile is not the task's."""
    span = _checkpoints_of_task(session)
    ours = await checkpoints.touched(span.ours)
    return [path for path in (await checkpoints.diff(span.first)).paths if path in ours] if ours else []


def edited(entries: Sequence[AnyEntry]) -> set[str]:
    """The paths that edits changed since the last task began; what commands did isn't in it."""
    _, since = _last_task(entries)
    return {file["path"] for entry in since if isinstance(entry, ToolEntry) for file in entry.message.edits}


async def _roll_back(task: CodeTask) -> bool:
    span = _checkpoints_of_task(task.session)
    if not span.ours:
        return False
    try:
        await take_back(task.agent.checkpoints, task.session, span, to=task.session.head, told=TAKEN_BACK)
    except DenizenError as why:
        task.io.emit(Notice(f"The files couldn't be restored: {why}", "error"))
        return False
    task.io.emit(Notice("The task failed, and its file changes were undone. In a chat, /redo restores them."))
    return True
