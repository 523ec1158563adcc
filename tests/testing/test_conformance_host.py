"""Our hosts pass the suite, which fails for each host that breaks a rule."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest

from denizen.cli.host import JsonHost
from denizen.cli.terminal import Terminal
from denizen.engine.callback_host import CallbackHost
from denizen.events import RunEvent, ToolEnd
from denizen.ports import Answer, Ask, Control, Parked, Steer, Stop, TurnIO
from denizen.testing import FakeClock, HostConformance, conformance_host
from denizen.testing.conformance_host import QUESTIONS

SUITE = HostConformance


class TestListener(SUITE):
    @pytest.fixture
    def parrot(self) -> "Parrot":
        return Parrot()

    @pytest.fixture
    def host(self, parrot: "Parrot") -> TurnIO:
        return CallbackHost(lambda event: None, parrot)

    @pytest.fixture
    def speak(self, parrot: "Parrot") -> Callable[[], None]:
        return parrot.speak

    @pytest.fixture
    def unattended(self) -> TurnIO:
        return CallbackHost()


ABSENT = pytest.mark.parametrize("allowed", [{}, {"yes": True}, {"refuse": True}], ids=["parks", "yes", "refuse"])


@ABSENT
class TestTerminal(SUITE):
    @pytest.fixture
    def host(self, allowed: dict[str, bool]) -> TurnIO:
        return Terminal(FakeClock(), **allowed)  # pyrefly: ignore[bad-argument-type]

    unattended = host


@ABSENT
class TestJsonHost(SUITE):
    @pytest.fixture
    def host(self, allowed: dict[str, bool]) -> TurnIO:
        return JsonHost(**allowed)  # pyrefly: ignore[bad-argument-type]

    unattended = host


class Parrot:
    """A host that does what it should; somebody spoke once."""

    def __init__(self) -> None:
        self.said: list[Control] = [Steer("be short")]
        self.arrived = asyncio.Event()

    def speak(self) -> None:
        self.said.append(Stop())
        self.arrived.set()

    def emit(self, event: RunEvent) -> None:
        pass

    def controls(self) -> Sequence[Control]:
        said, self.said = self.said, list[Control]()
        self.arrived.clear()
        return said

    async def changed(self) -> None:
        await self.arrived.wait()

    async def ask(self, request: Ask) -> Answer | Parked:
        return Parked()


class KnowsNoFailures(Parrot):
    def emit(self, event: RunEvent) -> None:
        assert not (isinstance(event, ToolEnd) and event.is_error)


class RepeatsItself(Parrot):
    def controls(self) -> Sequence[Control]:
        return self.said


class AnswersAnother(Parrot):
    async def ask(self, request: Ask) -> Answer | Parked:
        return Answer("call-0", allow=True)


class RefusesInThePersonsName(Parrot):
    async def ask(self, request: Ask) -> Answer | Parked:
        return Answer(request.call_id, allow=False)


class SaysYesToAll(Parrot):
    async def ask(self, request: Ask) -> Answer | Parked:
        return Answer(request.call_id, allow=True)


class IsAlwaysChanged(Parrot):
    async def changed(self) -> None:
        pass


class IsNeverChanged(Parrot):
    async def changed(self) -> None:
        await asyncio.Event().wait()


async def hears(suite: SUITE, host: TurnIO) -> None:
    await suite.test_changed_returns_once_a_control_arrives(host, cast("Parrot", host).speak)


async def answers(suite: SUITE, host: TurnIO) -> None:
    await suite.test_answer_is_to_the_question_that_was_asked(host, QUESTIONS[0])


async def refuses(suite: SUITE, host: TurnIO) -> None:
    await suite.test_refusal_by_nobody_says_so(host, QUESTIONS[0])


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (KnowsNoFailures, SUITE.test_every_event_is_taken),
        (RepeatsItself, SUITE.test_control_is_handed_out_once),
        (IsAlwaysChanged, SUITE.test_changed_waits_while_no_control_does),
        (IsNeverChanged, hears),
        (AnswersAnother, answers),
        (RefusesInThePersonsName, refuses),
        (SaysYesToAll, SUITE.test_quotation_is_allowed_by_nobody),
    ],
)
async def test_suite_fails_for_a_host_that_breaks_the_rule(
    wrong: Callable[[], TurnIO], test: Callable[[SUITE, TurnIO], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance_host, "_PATIENCE_S", 0.0)
    with pytest.raises((AssertionError, TimeoutError)):
        await test(SUITE(), wrong())
