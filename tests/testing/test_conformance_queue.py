"""The queue in memory passes the suite for turn queues, which fails for each queue that breaks a rule."""

from collections.abc import Awaitable, Callable
from inspect import signature

import pytest
from msgspec.structs import replace

from denizen.ports import Control, InboundMessage, OutboundMessage, Parked, QueuedTurn, TurnHandler, TurnQueue
from denizen.testing import MemoryQueue, TurnQueueConformance
from denizen.testing.conformance_queue import YES, NewQueue, Outcome, QueueWorker

SUITE = TurnQueueConformance


class TestMemoryQueue(SUITE):
    @pytest.fixture
    def new_queue(self) -> NewQueue:
        queue = MemoryQueue()
        return lambda: queue

    async def outbox(self, queue: TurnQueue) -> list[OutboundMessage]:
        return outbox_of(queue)


def outbox_of(queue: TurnQueue) -> list[OutboundMessage]:
    assert isinstance(queue, MemoryQueue)
    return [*queue.outbox.values()]


class ForgetsIds(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        self._accepted.clear()
        return await super().put(message)


class MixesUpChannels(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        return await super().put(replace(message, channel="any"))


class LosesMetadata(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        return await super().put(replace(message, metadata={}))


class RunsTheLatestFirst(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        new = await super().put(message)
        self._sessions[message.session_key].messages.rotate()
        return new


class RunsAllAtOnce(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        return await super().put(replace(message, session_key=message.id))


class RunsOneAtATime(MemoryQueue):
    async def put(self, message: InboundMessage) -> bool:
        return await super().put(replace(message, session_key="all"))


class SharesNoLock(MemoryQueue):
    """Each worker sees the messages, and not what the others run."""

    async def put(self, message: InboundMessage) -> bool:
        for worker in self.workers:
            await worker.put(message)
        return await super().put(message)

    async def serve(self, handler: TurnHandler) -> None:
        self.workers.append(MemoryQueue())
        await self.workers[-1].serve(handler)

    def __init__(self) -> None:
        super().__init__()
        self.workers: list[MemoryQueue] = []


class DropsControls(MemoryQueue):
    async def control(self, session_key: str, control: Control) -> bool:
        return True


class TellsEverySession(MemoryQueue):
    async def control(self, session_key: str, control: Control) -> bool:
        for key in self._sessions:
            await super().control(key, control)
        return True


class TellsLaterTurns(MemoryQueue):
    """Keeps controls for whichever turn asks for them."""

    async def control(self, session_key: str, control: Control) -> bool:
        await super().control(session_key, control)
        for later in [*self._sessions[session_key].messages][1:]:
            self._sessions[session_key].messages.remove(later)
            await super().put(replace(later, session_key="later", id=f"{later.id} again"))
            await super().control("later", control)
        return True


class IgnoresParking(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        async def handle(turn: QueuedTurn) -> Parked | None:
            await handler(turn)

        await super().serve(handle)


class HearsNobodyBeforeParking(MemoryQueue):
    async def control(self, session_key: str, control: Control) -> bool:
        return self._sessions[session_key].parked and await super().control(session_key, control)


class ForgetsThatItParked(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        for session in self._sessions.values():
            session.parked = False
        await super().serve(handler)


class WaitsForEver(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        async def handle(turn: QueuedTurn) -> Outcome:
            outcome = await handler(turn)
            return Parked() if isinstance(outcome, Parked) else outcome

        await super().serve(handle)


class DropsReplies(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        async def handle(turn: QueuedTurn) -> Parked | None:
            outcome = await handler(turn)
            return outcome if isinstance(outcome, Parked) else None

        await super().serve(handle)


class DropsWhatWasCancelled(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        for session in self._sessions.values():
            session.messages.popleft()
        await super().serve(handler)


class DropsAnswersThatWereTaken(MemoryQueue):
    async def serve(self, handler: TurnHandler) -> None:
        for session in self._sessions.values():
            session.controls.clear()
        await super().serve(handler)


def stubborn() -> MemoryQueue:
    return MemoryQueue(attempts=1000)


async def reaches(suite: TurnQueueConformance, new_queue: NewQueue) -> None:
    await suite.test_control_reaches_the_running_turn_ahead_of_messages(new_queue, YES)


async def holds(suite: TurnQueueConformance, worker: QueueWorker) -> None:
    await suite.test_parked_turn_holds_its_session_until_an_answer(worker, YES)


def hasty() -> MemoryQueue:
    return MemoryQueue(attempts=1)


Test = Callable[..., Awaitable[None]]


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (ForgetsIds, SUITE.test_message_is_accepted_once_by_its_id),
        (MixesUpChannels, SUITE.test_same_id_on_another_channel_is_another_message),
        (LosesMetadata, SUITE.test_handler_gets_the_message_as_it_was_put),
        (RunsTheLatestFirst, SUITE.test_one_turn_at_a_time_per_session_in_order),
        (RunsAllAtOnce, SUITE.test_one_turn_at_a_time_per_session_in_order),
        (RunsOneAtATime, SUITE.test_sessions_run_concurrently),
        (SharesNoLock, SUITE.test_several_workers_share_the_sessions),
        (DropsControls, reaches),
        (TellsEverySession, SUITE.test_control_stays_in_its_session),
        (TellsLaterTurns, SUITE.test_control_of_a_turn_that_is_over_reaches_no_other),
        (IgnoresParking, holds),
        (HearsNobodyBeforeParking, SUITE.test_answer_that_comes_before_the_turn_is_parked_is_not_lost),
        (ForgetsThatItParked, SUITE.test_parked_turn_stays_parked_when_another_worker_serves),
        (WaitsForEver, SUITE.test_parked_turn_goes_on_when_its_time_is_up),
        (DropsReplies, SUITE.test_questions_and_replies_are_kept_once_by_their_ids),
        (DropsReplies, SUITE.test_message_that_a_turn_ends_with_gets_a_turn_in_its_session_once),
        (DropsWhatWasCancelled, SUITE.test_turn_that_was_cancelled_is_handled_again_before_later_ones),
        (DropsAnswersThatWereTaken, SUITE.test_answer_is_not_lost_with_the_attempt_that_took_it),
        (stubborn, SUITE.test_message_whose_handler_keeps_failing_is_given_up),
        (hasty, SUITE.test_message_whose_handler_keeps_failing_is_given_up),
    ],
)
async def test_suite_fails_for_a_queue_that_breaks_the_rule(wrong: NewQueue, test: Test) -> None:
    suite, queue = TestMemoryQueue(), wrong()
    suite.patience = 0.1
    with pytest.raises((AssertionError, TimeoutError)):
        await play(suite, queue, test)


async def play(suite: TurnQueueConformance, queue: TurnQueue, test: Test) -> None:
    if "worker" in signature(test).parameters:
        async with suite.serving(queue) as worker:
            await test(suite, worker)
    else:
        await test(suite, lambda: queue)
