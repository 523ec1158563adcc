"""The conformance suite of turn queues: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from denizen.ports.host import Answer, Control, FollowUp, Interrupt, Parked, Steer, Stop
from denizen.ports.queue import InboundMessage, OutboundMessage, ParkedTurn, QueuedTurn, TurnQueue

NewQueue = Callable[[], TurnQueue]
YES = Answer("call-1", allow=True)
Outcome = OutboundMessage | InboundMessage | Parked | None


def message(content: str, session: str = "ann", *, channel: str = "irc") -> InboundMessage:
    """A message to a session; its id is its content."""
    return InboundMessage(channel, session, session, content, session_key(session), id=content)


def session_key(session: str) -> str:
    """The key of that session."""
    return f"agent:main:channel:irc:account:default:peer:direct:{session}"


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that runs until the test says how it ends."""

    turn: QueuedTurn
    outcome: asyncio.Future[Outcome]

    @property
    def content(self) -> str:
        """The text of its message."""
        return self.turn.message.content

    def end(self, outcome: Outcome | Exception = None) -> None:
        """It is over, with a reply or a message or neither, or it is parked, or it raises."""
        if isinstance(outcome, Exception):
            self.outcome.set_exception(outcome)
        else:
            self.outcome.set_result(outcome)


@dataclass(frozen=True, slots=True)
class QueueWorker:
    """Serves a queue; the test ends each turn. A wait of more than `patience` seconds fails."""

    queue: TurnQueue
    patience: float
    begun: asyncio.Queue[RunningTurn] = field(default_factory=asyncio.Queue)

    async def handle(self, turn: QueuedTurn) -> Outcome:
        """Run a turn as the test says."""
        running = RunningTurn(turn, asyncio.get_running_loop().create_future())
        self.begun.put_nowait(running)
        return await running.outcome

    async def put(self, *contents: str) -> None:
        """Put messages to one session, in this order."""
        for content in contents:
            await self.queue.put(message(content))

    async def next(self) -> RunningTurn:
        """The turn that begins next."""
        return await asyncio.wait_for(self.begun.get(), self.patience)

    async def finish_all(self, count: int) -> list[str]:
        """The contents of the next messages, whose turns end at once."""
        contents: list[str] = []
        for _ in range(count):
            turn = await self.next()
            contents.append(turn.content)
            turn.end()
        return contents

    async def expect_nothing_but(self, marker: str) -> None:
        """None was ready: no turn begins before the one of a message that another session gets now."""
        await self.queue.put(message(marker, marker))
        assert await self.finish_all(1) == [marker]

    async def controls_of(self, running: RunningTurn, count: int = 1) -> list[Control]:
        """The next controls that reach a turn."""
        arrived: list[Control] = []
        async with asyncio.timeout(self.patience):
            while len(arrived) < count:
                await running.turn.changed()
                arrived += running.turn.controls()
        return arrived


class TurnQueueConformance:
    """Subclass it as `Test…` and fill in the fixture `new_queue`; tests are `async`, for pytest-asyncio's auto mode.

    `patience` is how many seconds a turn may take to begin.
    """

    patience = 30.0

    @pytest.fixture
    def new_queue(self) -> NewQueue:
        """Makes a queue; all those of one test share their messages, of which there are none at first."""
        raise NotImplementedError

    async def outbox(self, queue: TurnQueue) -> Sequence[OutboundMessage] | None:
        """The queued outgoing messages, oldest first; None if the queue doesn't expose them, which skips a test."""
        return None

    @asynccontextmanager
    async def serving(self, *queues: TurnQueue) -> AsyncGenerator[QueueWorker]:
        """A worker for all these queues, which is cancelled at the end of the block."""
        worker = QueueWorker(queues[0], self.patience)
        tasks = [asyncio.create_task(queue.serve(worker.handle)) for queue in queues]
        try:
            yield worker
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    @pytest.fixture
    async def worker(self, new_queue: NewQueue) -> AsyncGenerator[QueueWorker]:
        """One that serves a queue."""
        async with self.serving(new_queue()) as worker:
            yield worker

    # Accepting

    async def test_message_is_accepted_once_by_its_id(self, new_queue: NewQueue) -> None:
        queue = new_queue()
        assert await queue.put(message("1"))
        assert not await queue.put(message("1"))
        assert not await new_queue().put(message("1"))
        async with self.serving(queue) as worker:
            assert await worker.finish_all(1) == ["1"]
            await worker.expect_nothing_but("a")
            assert not await queue.put(message("1")), "its turn is over, and its id still known"
            await worker.expect_nothing_but("b")

    async def test_same_id_on_another_channel_is_another_message(self, new_queue: NewQueue) -> None:
        queue = new_queue()
        assert await queue.put(message("1"))
        assert await queue.put(message("1", channel="mail"))

    async def test_handler_gets_the_message_as_it_was_put(self, worker: QueueWorker) -> None:
        rich = InboundMessage("irc", "#den", "ann", "ä\n", "k", ("a.png",), {"n": [1, None]}, "7")
        await worker.queue.put(rich)
        turn = (await worker.next()).turn
        assert (turn.message, turn.attempt) == (rich, 1)

    # Order

    async def test_one_turn_at_a_time_per_session_in_order(self, worker: QueueWorker) -> None:
        await worker.put("1", "2", "3")
        for content in ("1", "2", "3"):
            running = await worker.next()
            assert running.content == content
            await worker.expect_nothing_but(f"next to {content}")
            running.end()

    async def test_sessions_run_concurrently(self, worker: QueueWorker) -> None:
        for session in ("ann", "ben", "cleo"):
            await worker.queue.put(message(session, session))
        assert {(await worker.next()).content for _ in range(3)} == {"ann", "ben", "cleo"}

    async def test_several_workers_share_the_sessions(self, new_queue: NewQueue) -> None:
        queue = new_queue()
        async with self.serving(queue, new_queue()) as worker:
            await worker.put("1", "2")
            running = await worker.next()
            await worker.expect_nothing_but("next to 1")
            running.end()
            assert await worker.finish_all(1) == ["2"]
            await worker.expect_nothing_but("next to 2")

    # Controls

    @pytest.mark.parametrize("control", [Steer("left"), FollowUp("then"), Stop(), YES])
    async def test_control_reaches_the_running_turn_ahead_of_messages(
        self, new_queue: NewQueue, control: Control
    ) -> None:
        queue = new_queue()
        async with self.serving(queue) as worker:
            await queue.put(message("1"))
            running = await worker.next()
            await queue.put(message("2"))
            await new_queue().control(session_key("ann"), control)
            assert await worker.controls_of(running) == [control]
            assert not running.turn.controls(), "it is handed out once"

    async def test_control_stays_in_its_session(self, worker: QueueWorker) -> None:
        await worker.queue.put(message("ann"))
        await worker.queue.put(message("ben", "ben"))
        turns = [await worker.next(), await worker.next()]
        ann, ben = sorted(turns, key=lambda running: running.content)
        await worker.queue.control(session_key("ben"), Stop())
        assert await worker.controls_of(ben) == [Stop()]
        assert not ann.turn.controls()

    async def test_control_of_a_turn_that_is_over_reaches_no_other(self, worker: QueueWorker) -> None:
        await worker.queue.put(message("1"))
        running = await worker.next()
        await worker.queue.put(message("2"))
        await worker.queue.control(session_key("ann"), Stop())
        running.end()
        assert not (await worker.next()).turn.controls()

    # Parking

    @pytest.mark.parametrize("control", [YES, Answer("call-1", allow=False), Stop(), Interrupt("no")])
    async def test_parked_turn_holds_its_session_until_an_answer(self, worker: QueueWorker, control: Control) -> None:
        await worker.put("1", "2")
        (await worker.next()).end(Parked())
        await worker.expect_nothing_but("a")
        await worker.queue.control(session_key("ann"), Steer("hurry"))
        await worker.expect_nothing_but("b")
        await worker.queue.control(session_key("ann"), control)
        running = await worker.next()
        assert (running.content, running.turn.attempt) == ("1", 2)
        assert await worker.controls_of(running, 2) == [Steer("hurry"), control]
        running.end()
        assert await worker.finish_all(1) == ["2"]

    async def test_answer_that_comes_before_the_turn_is_parked_is_not_lost(self, worker: QueueWorker) -> None:
        await worker.queue.put(message("1"))
        running = await worker.next()
        await worker.queue.control(session_key("ann"), YES)
        running.end(Parked())
        assert await worker.controls_of(await worker.next()) == [YES]

    async def test_parked_turn_stays_parked_when_another_worker_serves(self, new_queue: NewQueue) -> None:
        async with self.serving(new_queue()) as worker:
            await worker.queue.put(message("1"))
            (await worker.next()).end(Parked())
            await worker.expect_nothing_but("a")
        async with self.serving(new_queue()) as worker:
            await worker.expect_nothing_but("b")
            await worker.queue.control(session_key("ann"), YES)
            assert await worker.controls_of(await worker.next()) == [YES]

    async def test_parked_turn_goes_on_when_its_time_is_up(self, worker: QueueWorker) -> None:
        await worker.put("1", "2")
        (await worker.next()).end(ParkedTurn(until=datetime(2020, 1, 1, tzinfo=UTC)))
        running = await worker.next()
        assert (running.content, running.turn.attempt) == ("1", 2)
        running.end()
        assert await worker.finish_all(1) == ["2"]

    async def test_questions_and_replies_are_kept_once_by_their_ids(self, worker: QueueWorker) -> None:
        question, reply = (OutboundMessage("irc", "ann", each, id=each) for each in ("may I?", "done"))
        await worker.put("1", "2", "3")
        (await worker.next()).end(ParkedTurn(question, datetime(2020, 1, 1, tzinfo=UTC)))
        for outcome in (ParkedTurn(question, datetime(2020, 1, 1, tzinfo=UTC)), reply, reply):
            (await worker.next()).end(outcome)
        assert (await worker.next()).content == "3"
        kept = await self.outbox(worker.queue)
        if kept is None:
            pytest.skip("the queue doesn't say what it keeps to be sent")
        assert [*kept] == [question, reply]

    async def test_message_that_a_turn_ends_with_gets_a_turn_in_its_session_once(self, worker: QueueWorker) -> None:
        await worker.queue.put(message("1"))
        (await worker.next()).end(message("for ben", "ben"))
        assert await worker.finish_all(1) == ["for ben"]
        await worker.queue.put(message("2"))
        (await worker.next()).end(message("for ben", "ben"))
        await worker.expect_nothing_but("3")

    # Failures

    async def test_turn_that_was_cancelled_is_handled_again_before_later_ones(self, new_queue: NewQueue) -> None:
        async with self.serving(new_queue()) as worker:
            await worker.put("1", "2")
            assert (await worker.next()).content == "1"
        async with self.serving(new_queue()) as worker:
            running = await worker.next()
            assert (running.content, running.turn.attempt) == ("1", 2)
            running.end()
            assert await worker.finish_all(1) == ["2"]

    async def test_answer_is_not_lost_with_the_attempt_that_took_it(self, new_queue: NewQueue) -> None:
        async with self.serving(new_queue()) as worker:
            await worker.queue.put(message("1"))
            running = await worker.next()
            await worker.queue.control(session_key("ann"), Steer("hurry"))
            await worker.queue.control(session_key("ann"), YES)
            assert await worker.controls_of(running, 2) == [Steer("hurry"), YES]
        async with self.serving(new_queue()) as worker:
            assert await worker.controls_of(await worker.next()) == [YES]

    async def test_message_whose_handler_keeps_failing_is_given_up(self, worker: QueueWorker) -> None:
        await worker.put("1", "2")
        contents: list[str] = []
        while (running := await worker.next()).content == "1":
            contents.append(running.content)
            assert running.turn.attempt == len(contents) <= 100
            running.end(RuntimeError("no turn can be made of it"))
        assert running.content == "2"
        assert len(contents) > 1, "a failure may pass"
        assert not await worker.queue.put(message("1")), "it isn't accepted again"
