"""The brain of an agent in a text world: what it sees arms a cycle; what it decides is sent when the world is quiet.

Seed 000, "The Perception-Action Loop", "The Script Queue", "One LLM Cycle", "Wakeup Modes", "Stall Detection".
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from denizen.actions.directives import BARE
from denizen.context import RollingWindow
from denizen.engine.compact import compact
from denizen.engine.loop import run_turn
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import state_of
from denizen.engine.turn import Cycle, TurnOptions
from denizen.errors import DenizenError, ModelError
from denizen.events import RunResult, ToolEnd
from denizen.messages import Text, ToolResult
from denizen.ports import Session, Tool, Toolset, WorldLine
from denizen.worlds.moo.cycle import CycleHost, cycle_span, record_cycle
from denizen.worlds.moo.kept import GOAL, PLAN, Kept
from denizen.worlds.moo.listener import Facts, Kind, Listener, Status
from denizen.worlds.moo.sending import Sender, World, is_error, is_failure
from denizen.worlds.moo.server_text import Output, ServerLine
from denizen.worlds.moo.settings import MooSettings

FULL = 10
"""Lines that the window has room for when its older half is summarised."""
QUIET = 0.3
"""Seconds without a line after which the next command is sent, or a cycle begins."""
NEAR = 10.0
"""Seconds before the timer wakes an agent that is quiet, in which it counts as sleeping."""
GOAL_ONLY = 3
"""Cycles in a row without an action for the goal, until the model is told so, once."""
OWN_CYCLES = 10
"""Cycles in a row that nothing from outside has caused."""
NUDGE = "You have a goal, and do nothing for it. Act now, with a call. If the goal is reached, call done."
EMPTY = "Your reply was empty. Act with a call, or say in a line why not."
REPEATED = "You have sent `{}` three times. Do something else, or call done."


Speaker = Literal["world", "player", "self", "operator"]
"""Who said a line."""


class Brain:
    """One agent at work, in one connection after the other. It is the actor of its tools."""

    def __init__(
        self,
        agent: AgentRecord,
        session: Session,
        settings: MooSettings,
        tools: Callable[["Brain"], Sequence[Tool]],
        listener: Listener,
    ) -> None:
        window = partial(RollingWindow, lines=settings.memory_window_lines)
        self._agent = replace(agent, tools=Toolset(tools(self)), new_context=window)
        self._session = session
        self._settings = settings
        self._listener = listener
        self._clock = agent.clock
        self._state = state_of(self._agent, session)
        self._kept = Kept(session, self._state)
        self._sender = Sender(agent.clock, settings.command_rate_per_second)
        self._awaits = settings.acting != "queued"
        self._thinks = agent.model.name != "offline"
        self._heard: asyncio.Queue[ServerLine | str] = asyncio.Queue()
        self._errands: deque[str] = deque()  # what rules and the chain send
        self._script: deque[str] = deque()  # what the model has queued
        self._armed = self._is_done = False
        self._own_cycles = self._idle_cycles = 0
        self._active_at = self._clock.monotonic()
        self._status: Status = "ready"
        self._facts = Facts()
        self._cost = 0.0
        self._cycle: asyncio.Task[None] | None = None
        self._summary: asyncio.Task[None] | None = None
        self._begin_record()

    def _begin_record(self) -> None:
        """What a cycle keeps while it runs."""
        self._host = CycleHost(asks=self._asks, replied=self._replied, ran=self._ran, tell=self._note)
        self._acted = 0
        self._asked_again = 0
        self._called: list[Sequence[str]] = []  # the calls of the last reply that came here
        self._is_doubled = False  # it has them all twice
        self._refused = 0  # how many of them were refused before they came here

    async def play(self, world: World) -> None:
        """Play until the connection is over."""
        self._sender.world = world
        self._active_at = self._clock.monotonic()
        listening = asyncio.create_task(self._listen(world))
        try:
            while not (listening.done() and self._heard.empty()):
                match await self._next():
                    case ServerLine() as line:
                        await self._take(line)
                    case str() as text:
                        self._obey(text)
                    case None:
                        await self._tick()
                if self._cycle and self._cycle.done():
                    cycle, self._cycle = self._cycle, None
                    await cycle
                self._tell_facts()
        finally:
            listening.cancel()
            await self._end_cycle()

    def instruct(self, text: str) -> None:
        """Say something to the agent as its operator."""
        self._heard.put_nowait(text)

    async def _listen(self, world: World) -> None:
        async for line in world.lines:
            self._heard.put_nowait(line)

    async def _next(self) -> ServerLine | str | None:
        """What comes next; None: it has been quiet for a while, or the cycle is over."""
        if not self._heard.empty():
            return self._heard.get_nowait()
        heard = asyncio.create_task(self._heard.get())
        waits = {heard, self._cycle} if self._cycle and not self._errands else {heard, self._quiet()}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return heard.result() if heard.done() else None
        finally:
            for each in waits - {self._cycle}:
                each.cancel()

    def _quiet(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._clock.sleep(QUIET))

    async def _end_cycle(self) -> None:
        """End what runs in the background: the next connection begins anew."""
        tasks = [task for task in (self._cycle, self._summary) if task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._cycle = None

    # What the world shows

    async def _take(self, line: ServerLine) -> None:
        self._active_at = self._clock.monotonic()
        self._own_cycles = 0
        is_said = bool(line.channel)
        self._see(line.text, "player" if is_said else "world")
        self._tell("server", line.text)
        if not self._script:
            self._arm(is_page=line.channel == "page")

    def _obey(self, text: str) -> None:
        """An instruction always reaches the model."""
        self._own_cycles, self._is_done = 0, False
        self._operator(text)
        self._armed = True
        if not self._cycle:
            self._begin_cycle()

    def _operator(self, text: str) -> None:
        self._see(text, "operator")
        self._tell("operator", text)

    def _see(self, text: str, speaker: Speaker, *, in_result: bool = False) -> None:
        self._state.observe(WorldLine(text, self._clock.now(), speaker, in_result))

    def _tell(self, kind: Kind, text: str) -> None:
        self._listener.line(kind, text)

    def _note(self, text: str) -> None:
        self._tell("system", text)

    def _tell_facts(self) -> None:
        room, plan = self._sender.room, self._kept.get(PLAN, list[str])
        facts = Facts(
            room=f"{room.name} (#{room.num})" if room else "",
            exits=[*room.exits] if room else (),
            goal=self.goal,
            plan=plan or (),
            cost_usd=self._cost,
        )
        if facts != self._facts:
            self._facts = facts
            self._listener.facts(facts)

    # When it thinks

    def _arm(self, *, is_page: bool = False) -> None:
        """Begin a cycle at the next quiet moment, unless this agent doesn't think about such things."""
        settings = self._settings
        if self._is_done or settings.timer_only:
            return
        self._armed |= bool(settings.idle_wakeup_seconds or self.goal or is_page)

    async def _tick(self) -> None:
        """The world is quiet: one thing is done."""
        if self._errands:
            await self._perform(self._errands.popleft())
        elif self._cycle:
            pass
        elif self._script:
            await self._run_script()
        elif self._armed:
            self._begin_cycle()
        else:
            await self._keep_time()

    async def _keep_time(self) -> None:
        wake = self._settings.idle_wakeup_seconds
        left = self._active_at + wake - self._clock.monotonic()
        if not wake:
            self._show_status("waiting")
        elif left > 0:
            self._show_status("sleeping" if left <= NEAR else "ready")
        else:
            await self._wake()

    async def _wake(self) -> None:
        self._active_at = self._clock.monotonic()
        self._own_cycles, self._is_done = 0, False
        await self._kept.keep(GOAL, "")
        self._begin_cycle()

    def _show_status(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            self._listener.status(status)

    @property
    def goal(self) -> str:
        """What it is about to do."""
        return self._kept.get(GOAL, str) or ""

    # One cycle

    def _begin_cycle(self) -> None:
        self._armed = False
        if not self._thinks:
            return
        if self._script:
            self._note(f"{len(self._script)} queued commands are dropped: the agent thinks anew.")
            self._script.clear()
        window = self._state.context
        if isinstance(window, RollingWindow) and len(window) >= self._settings.memory_window_lines - FULL:
            self._summary = self._summary or asyncio.create_task(self._summarise())
        self._cycle = asyncio.create_task(self._think())

    async def _summarise(self) -> None:
        """Put a summary in place of the older half of the window, while the agent goes on."""
        try:
            await compact(self._agent, self._session, self._host)
        except DenizenError as error:
            self._note(str(error))
        finally:
            self._summary = None

    async def _think(self) -> None:
        self._begin_record()
        self._show_status("thinking")
        options = TurnOptions(accept=self._complaint, channel="moo")
        began, before = self._clock.monotonic(), self.goal
        with cycle_span(before) as span:
            try:
                result = await run_turn(self._agent, self._session, Cycle(), self._host, options)
            except ModelError as error:
                self._note(f"The model failed: {error}")
                outcome, result = "llm_failed", RunResult("")
            else:
                outcome = "dispatched" if self._acted else "goal_only"
            record_cycle(span, outcome, result.usage)
        self._cost += result.usage.cost_usd or 0.0
        self._active_at = self._clock.monotonic()
        await self._apply_news()
        seconds = self._clock.monotonic() - began
        self._note(f"[Cycle] duration={seconds:.1f}s tool_calls={self._acted}")
        if outcome != "llm_failed":
            self._follow_up()
        self._show_status("ready" if self._settings.idle_wakeup_seconds else "waiting")

    def _follow_up(self) -> None:
        """Think again where there is a goal and nothing was done for it, or the model fell silent before its end."""
        self._idle_cycles = 1 if self._acted else self._idle_cycles + 1
        if (self._acted and not self._awaits) or not self.goal or self._is_done or self._settings.timer_only:
            return
        self._own_cycles += 1
        if self._own_cycles > OWN_CYCLES or self._idle_cycles > GOAL_ONLY + 1:
            return
        if self._idle_cycles == GOAL_ONLY + 1:
            self._operator(NUDGE)
        self._armed = True

    def _asks(self) -> None:
        """The model is asked: it sees all that had armed a cycle."""
        self._armed = False

    def _replied(self) -> None:
        intent = self._state.intent
        if words := intent.reply.strip():
            self._tell("thought", words)
        calls = [(call.name, call.args) for call in intent.calls]
        half = len(calls) // 2
        self._is_doubled = half > 0 and calls[:half] * 2 == calls
        self._host.stop |= not self.goal and any(call.id.startswith(BARE) for call in intent.calls)
        self._called.clear()
        self._refused = 0

    def _ran(self, event: ToolEnd) -> None:
        """A call has its result: a reply whose calls were all refused is one that can't be carried out."""
        self._refused += event.is_error and not self._called
        if self._refused == len(self._state.intent.calls):
            self._asked_again += 1
            self._host.stop |= self._asked_again > self._settings.structured_output_retries

    async def _complaint(self, text: str) -> str:
        """What is wrong with a reply that would end the cycle; empty: nothing is."""
        intent = self._state.intent
        if text.strip() or intent.calls or intent.directives:
            return ""
        if self._asked_again == self._settings.structured_output_retries:
            return ""
        self._asked_again += 1
        return EMPTY

    async def _apply_news(self) -> None:
        for entry in self._kept.news():
            if entry.name == "goal":
                self._tell("goal", f"[Goal] {entry.value}")
            elif entry.name == "done":
                self._tell("goal", f"[Done] {entry.value}")
                await self._kept.keep(GOAL, "")

    # What it does

    async def act(self, commands: Sequence[str]) -> ToolResult:
        """Carry out a call of the model's: send its commands, or queue them."""
        await self._apply_news()
        again = commands in self._called if self._is_doubled else [commands] == self._called[-1:]
        self._called.append(commands)
        if again:
            return self._result("the same call again in one reply: it is carried out once")
        self._acted += 1
        most = self._settings.tool_calls_per_cycle
        self._host.stop |= self._acted >= most
        if self._acted > most:
            return self._result(f"not run: a cycle has {most} calls")
        if self._awaits:
            return await self._carry_out(commands)
        self._script.extend(commands)
        return self._result("queued")

    def _result(self, text: str, *, is_error: bool = False) -> ToolResult:
        return ToolResult("", "", [Text(text)], is_error=is_error, ends_turn=not self._awaits)

    async def _carry_out(self, commands: Sequence[str]) -> ToolResult:
        """Send the commands of a call, until one fails."""
        lines: list[str] = []
        for number, command in enumerate(commands, 1):
            output = await self._perform(command, in_result=True)
            lines += [*output.lines, *([f"({output.problem})"] if output.problem else [])]
            if is_failure(output):
                left = len(commands) - number
                lines += [f"({left} more commands were not sent)"] if left else []
                return self._result("\n".join(lines), is_error=True)
        return self._result("\n".join(lines) or "(done; the world said nothing)")

    async def _perform(self, command: str, *, in_result: bool = False) -> Output:
        """Send a command; its output, as far as the model is to see it."""
        self._tell("action", command)
        self._see(command, "self", in_result=in_result)
        if self._sender.repeats(command):
            self._operator(REPEATED.format(command))
        output = await self._sender.send(command)
        self._active_at = self._clock.monotonic()
        for line in output.lines:
            self._tell("server_error" if is_error(line) else "server", line)
            self._see(line, "world", in_result=in_result)
        if output.problem:
            self._note(f"{command}: {output.problem}")
            self._host.stop |= not self._sender.is_connected
        return output

    async def _run_script(self) -> None:
        """Send the next queued command; where it fails, or was the last one, the model decides."""
        output = await self._perform(self._script.popleft())
        if is_failure(output):
            self._script.clear()
        if not self._script:
            self._arm(is_page=True)
