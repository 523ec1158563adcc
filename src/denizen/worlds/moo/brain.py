"""The brain of an agent in a text world: what it sees arms a cycle; what it decides is sent when the world is quiet.

Decisions, "One thing at a time", "Directives", "Who wakes a character", "Token chain".
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from opentelemetry import trace

from denizen.context import RollingWindow
from denizen.engine import conventions
from denizen.engine.callback_host import CallbackHost
from denizen.engine.compact import compact
from denizen.engine.loop import run_turn
from denizen.engine.record import AgentRecord
from denizen.engine.resume import unfinished
from denizen.engine.turn import Cycle, Resume, TurnOptions
from denizen.errors import DenizenError, ModelError
from denizen.events import RunResult
from denizen.messages import ToolResult
from denizen.ports import Session, Tool, Toolset
from denizen.sessions.request_socket import SessionRequest
from denizen.worlds.moo.chain import check_stall, process_sign_in
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.character_state import CharacterState
from denizen.worlds.moo.command_sender import CommandSender, WorldConnection, is_error, is_failure
from denizen.worlds.moo.cycle import CycleHost
from denizen.worlds.moo.folder import folder_of
from denizen.worlds.moo.listener import CharacterListener, Facts, Status, Tally
from denizen.worlds.moo.operator_answers import CUT_OFF, PAGE_CUT_OFF, PAGE_LATER, page_outcome
from denizen.worlds.moo.prompt import CharacterPrompt
from denizen.worlds.moo.server_text import ServerLine
from denizen.worlds.moo.session_log import CycleAge, cycle_age
from denizen.worlds.moo.session_values import CLEAR, RUN, SUMMARY, TODO
from denizen.worlds.moo.speech import is_page
from denizen.worlds.moo.tool_actor import ToolActor
from denizen.worlds.moo.tools import page

QUIET_S = 0.3
"""Seconds without a line after which the next command is sent, or a cycle begins."""
SLEEPING_BELOW_S = 10.0
"""Seconds before the timer wakes an agent that is quiet, in which it counts as sleeping."""
MODEL_RETRY_DELAY_S = 60.0
"""Seconds until a model that has failed is asked again."""
STALL_CHECK_INTERVAL_S = 30.0
"""The interval at which the token's holder is checked and lost pages are resent."""
SUMMARY_MARGIN_LINES = 10
"""Lines that the window has room for when its older half is summarised."""
MAX_GOAL_ONLY_CYCLES = 3
"""Consecutive cycles without an action for the goal, after which the model is reminded once."""
MAX_OWN_CYCLES = 10
"""Cycles in a row that nothing from outside has caused."""
HOUR_S = 3600.0
"""Seconds in which the cycles that the world has caused are counted."""
BUDGET_ADVICE = (
    "The agent stays in the world, but doesn't think. Raise the limit and start again; days end at midnight UTC."
)
UNPROVEN_PAGES = (
    "This server doesn't prove who sends a page, so pages about the token don't count: the chain needs a chain_secret, "
    "the same for all of it (in group.toml, or [moo] of each agent)."
)
NO_MODEL = "It follows no instructions: its model is `offline`. Set a model in its denizen.toml."
NUDGE = "You have a goal, and do nothing for it. Act now, with a call. If the goal is reached, call done."


class Brain:
    """One agent at work, in one connection after the other. It is the actor of its tools."""

    def __init__(
        self,
        agent: AgentRecord,
        session: Session,
        character: Character,
        tools: Callable[["Brain"], Sequence[Tool]],
        listener: CharacterListener,
    ) -> None:
        settings = character.settings
        self._agent = replace(
            agent,
            prompt=CharacterPrompt(character),
            tools=Toolset(tools(self)),
            new_context=partial(
                RollingWindow, lines=settings.memory_window_lines, tokens=settings.memory_window_tokens
            ),
            limits=replace(
                agent.limits,
                iterations=settings.tool_calls_per_cycle + 1,
                answer_tokens=settings.max_tokens,
                result_chars=min(agent.limits.result_chars, settings.memory_window_tokens * 3),
            ),
            options={**agent.options, **settings.sampling},
        )
        self._session = session
        self._settings = settings
        self._listener = listener
        self._clock = agent.clock
        self._sender = CommandSender(agent.clock, settings.command_rate_per_second)
        self._state = CharacterState(self._agent, session, character, listener)
        self._actor = ToolActor(self._state, self._sender, settings, calls_natively="native" in agent.actions.name)
        self._host = CycleHost(self._actor, self._asks, self._state.note)
        self._heard: asyncio.Queue[ServerLine | SessionRequest | str | None] = asyncio.Queue()
        self._armed = self._is_instructed = False
        self._armed_by_world = self._is_for_world = False
        self._for_world: deque[float] = deque(maxlen=settings.world_cycles_per_hour)
        self._told = set[str]()
        self._rests_until = 0.0
        self._own_cycles = self._idle_cycles = self._wakeups = 0
        self._active_at = self._looked_at = self._clock.monotonic()
        self._status: Status = "ready"
        self._facts = Facts()
        self._tally = Tally()
        self._cycle: asyncio.Task[None] | None = None
        self._summary: asyncio.Task[None] | None = None

    @property
    def goal(self) -> str:
        """The current goal; empty if there is none."""
        return self._state.goal

    async def act(self, commands: Sequence[str]) -> ToolResult:
        """Carry out a call of the model's."""
        await self._state.apply_news()
        return await self._actor.act(commands)

    async def finish(self, summary: str) -> ToolResult:
        """The model says that its work is done; a worker who holds the token must have passed it on."""
        return await self._actor.finish(summary)

    async def keep_todo(self, items: Sequence[str]) -> ToolResult:
        """Keep the list of what is to be done, which outlives the window."""
        await self._state.values.keep(TODO, [*items])
        return self._actor.result("kept")

    def instruct(self, text: str) -> None:
        """Say something to the agent as its operator."""
        self._heard.put_nowait(text)

    async def answer(self, request: SessionRequest) -> str:
        """Instruct the agent as its operator, or page a player, once per id. Returns the answer, or `Sent`."""
        answers = self._state.answers_to_operator
        if request.page and not self._sender.is_connected:
            return PAGE_LATER
        if not request.page and self._agent.model.name == "offline":
            return NO_MODEL
        if await answers.is_new(request.id):
            self._heard.put_nowait(request)
        answer = await answers.answer(request.id)
        return self._agent.redact(answer or (PAGE_CUT_OFF if request.page else CUT_OFF))

    async def begin(self) -> None:
        """Begin anew, or continue after a crash, with `resume` after any stop; a worker then waits for the token."""
        actor, state = self._actor, self._state
        for problem in state.character.problems:
            state.note(problem)
        if unfinished(self._session.entries):
            actor.is_over = True  # what was called then isn't run now: the agent is elsewhere
            await run_turn(self._agent, self._session, Resume(), self._host)
        continues = state.values.get(RUN, str) in (("begun", "ended") if self._settings.resume else ("begun",))
        await state.values.keep(RUN, "begun")
        is_timed = self._settings.idle_wakeup_seconds > 0
        if continues and state.goal and not state.chain.chain.is_worker:
            self._armed = True
            if not is_timed:  # what is past would let it skip what it begins each time with
                await state.remember(state.character.prior)
            return
        await state.set_goal("")
        if not continues:
            await state.values.keep(SUMMARY, "")
            await state.plans.begin(visits=is_timed)

    def note(self, text: str) -> None:
        """Log a note about the agent."""
        self._state.note(text)

    async def end(self) -> None:
        """Note that this isn't a crash."""
        await self._state.values.keep(RUN, "ended")

    async def play(self, world: WorldConnection) -> None:
        """Play until the connection is over."""
        self._sender.world = world
        self._status = "away"
        self._active_at = self._clock.monotonic()
        chain = self._state.chain.chain
        if chain.members and not (chain.secret or world.names_talkers):
            self._report_once("chain", UNPROVEN_PAGES)
        await self._state.step(process_sign_in(self._state.chain, self._state.now))
        listening = asyncio.create_task(self._listen(world))
        try:
            while not (listening.done() and self._heard.empty()):
                match await self._next():
                    case ServerLine() as line:
                        await self._take(line)
                    case str() as text:
                        self._take_instruction(text)
                    case SessionRequest(request_id, text, page=""):
                        self._state.answers_to_operator.add_to_window(request_id)
                        self._take_instruction(text)
                    case SessionRequest() as request:
                        await self._page(request)
                    case None if not listening.done():
                        await self._tick()
                    case None:
                        pass
                if self._cycle and self._cycle.done():
                    cycle, self._cycle = self._cycle, None
                    await cycle
                await self._check_stall()
                self._publish_facts()
        finally:
            listening.cancel()
            await self._end_cycle()
            self._show_status("away")

    async def _listen(self, world: WorldConnection) -> None:
        async for line in world.lines:
            self._heard.put_nowait(line)
        self._heard.put_nowait(None)

    async def _next(self) -> ServerLine | SessionRequest | str | None:
        """The next line or instruction; None after a quiet while, or at the end of the cycle or connection."""
        if not self._heard.empty():
            return self._heard.get_nowait()
        heard = asyncio.create_task(self._heard.get())
        waits: set[asyncio.Task[Any]] = {heard}
        if self._cycle:
            waits.add(self._cycle)
        if not self._cycle or self._state.errands or self._state.answers or self._watches_token:
            waits.add(asyncio.create_task(self._clock.sleep(QUIET_S)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return heard.result() if heard.done() else None
        finally:
            for each in waits - {self._cycle}:
                each.cancel()

    async def _end_cycle(self) -> None:
        """End what runs in the background: the next connection begins anew."""
        tasks = [task for task in (self._cycle, self._summary) if task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._armed |= self._cycle is not None
        self._cycle = None

    # What the world shows

    async def _take(self, line: ServerLine) -> None:
        self._active_at = self._clock.monotonic()
        self._own_cycles = self._wakeups = 0
        may_see = await self._state.hear(line)
        if not may_see:
            return
        self._state.see(line.text, "player" if line.may_be_said else "world")
        failed = not line.channel and is_error(line.text)
        self._state.tell("server_error" if failed else "server", line.text)
        if failed:
            self._actor.script.clear()
        if answer := self._state.character.engagement.answer(line, self._active_at):
            self._state.answers.append(answer)
        elif not self._actor.script:
            if is_page(line) and self._waits_for_pages:
                self._state.is_done = False
            self._arm(is_page=is_page(line), by_world=True)

    def _take_instruction(self, text: str) -> None:
        """An instruction always reaches the model."""
        self._wakeups = 0
        self._state.operator(text)
        self._is_instructed = True
        if not self._cycle:
            self._begin_cycle()

    async def _page(self, request: SessionRequest) -> None:
        sent = page_outcome(await self._actor.send(*page(request.page, request.text)))
        answer = msgspec.json.encode(sent).decode()
        await self._state.answers_to_operator.save_answer(request.id, answer, is_final=sent.state != "later")

    def _publish_facts(self) -> None:
        room = self._sender.room
        facts = Facts(
            room=f"{room.name} (#{room.num})" if room else "",
            exits=[*room.exits] if room else (),
            goal=self._state.goal,
            plan=self._state.plans.rooms,
            token=self._state.token_holder,
            tally=self._tally,
        )
        if facts != self._facts:
            self._facts = facts
            self._listener.facts(facts)

    # When it thinks

    @property
    def _is_to_think(self) -> bool:
        """Whether something is to begin a cycle; after a failure and when all is done, not any line."""
        may_think = not self._state.is_done and self._clock.monotonic() >= self._rests_until
        return self._is_instructed or self._state.is_awake or (self._armed and may_think)

    @property
    def _only_by_timer(self) -> bool:
        """Whether what it sees and does never makes it think: the chain's foreman passes the token without."""
        return self._settings.timer_only or self._state.chain.chain.is_orchestrator

    @property
    def _waits_for_pages(self) -> bool:
        """Whether anybody's page is all that can wake it; a worker's chain does that by itself."""
        return not (self._settings.idle_wakeup_seconds or self._state.chain.chain.is_worker)

    def _arm(self, *, is_page: bool = False, by_world: bool = False) -> None:
        """Begin a cycle at the next quiet moment, unless this agent doesn't think about such things."""
        thinks = self._settings.idle_wakeup_seconds or self._state.goal or is_page
        if not thinks or self._state.is_done or self._only_by_timer or (by_world and self._used_up_world_cycles):
            return
        self._armed_by_world = by_world and (self._armed_by_world or not self._armed)
        self._armed = True

    @property
    def _used_up_world_cycles(self) -> bool:
        """Whether the world has caused all the cycles that it may in an hour: strangers don't set the bill."""
        times, now = self._for_world, self._clock.monotonic()
        is_used_up = len(times) == times.maxlen and now - times[0] < HOUR_S
        if not is_used_up:
            self._told.discard("share")
        else:
            self._report_once(
                "share",
                f"The world's lines have started {len(times)} cycles within an hour and start no more for now: "
                "moo.world_cycles_per_hour sets the limit.",
            )
        return is_used_up

    def _report_once(self, what: str, text: str) -> None:
        """Report what keeps it from thinking, once while it lasts."""
        if what not in self._told:
            self._told.add(what)
            self._state.note(text)

    async def _tick(self) -> None:
        """The world is quiet: one thing is done."""
        state = self._state
        if state.errands:
            await self._actor.send(state.errands.popleft())
        elif state.answers:
            await self._actor.perform(state.answers.popleft())
        elif self._cycle:
            pass
        elif self._actor.script:
            await self._run_script()
        elif self._is_to_think:
            self._begin_cycle()
        else:
            await self._keep_time()

    async def _run_script(self) -> None:
        """Send the next queued command; where it fails, or was the last one, the model decides."""
        script = self._actor.script
        if is_failure(await self._actor.perform(script.popleft())):
            script.clear()
        elif not script:
            await self._actor.end_script()
        self._active_at = self._clock.monotonic()
        if not script:
            self._arm(is_page=True)

    async def _keep_time(self) -> None:
        wake = self._settings.idle_wakeup_seconds
        left = self._active_at + wake - self._clock.monotonic()
        if not wake or (self._state.plans.is_built and not self._state.goal):
            self._show_status("waiting")
        elif left > 0:
            self._show_status("sleeping" if left <= SLEEPING_BELOW_S else "ready")
        else:
            await self._wake()

    async def _wake(self) -> None:
        self._active_at = self._clock.monotonic()
        self._state.is_awake = True
        await self._state.set_goal("")
        if self._settings.clear_window_on_wakeup:
            await self._state.values.keep(CLEAR, self._state.now)
        self._wakeups += 1
        idle = self._settings.idle_wakeup_seconds
        self._state.see(f"Woken after {idle:g} s of quiet (wake-up {self._wakeups} since the last event).", "world")
        self._begin_cycle()

    def _show_status(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            self._listener.status(status)

    @property
    def _watches_token(self) -> bool:
        chain, token = self._state.chain.chain, self._state.chain.token
        return token.is_away or (chain.is_orchestrator and chain.stall_seconds > 0)

    async def _check_stall(self) -> None:
        """Remind the token's holder, unless its log shows that it may still be thinking."""
        now = self._clock.monotonic()
        is_time = now - self._looked_at >= STALL_CHECK_INTERVAL_S
        if is_time or not self._watches_token:
            self._looked_at = now
        if not (is_time and self._watches_token):
            return
        state = self._state
        folder = folder_of(state.character.folder.parent, state.token_holder)
        age = cycle_age(folder, state.now) if folder else CycleAge()
        stall = check_stall(state.chain, state.now, since_written=age.since_acted, slow_cycle=age.slow_cycle)
        await state.step(stall)

    # One cycle

    def _begin_cycle(self) -> None:
        is_called = self._is_instructed or self._state.is_awake
        self._is_for_world = not is_called and (self._armed_by_world or self._is_for_world)
        self._asks()
        if self._agent.model.name == "offline":
            return
        if self._is_for_world:
            self._for_world.append(self._clock.monotonic())
        window = self._state.session_state.context
        if isinstance(window, RollingWindow) and not window.has_room(SUMMARY_MARGIN_LINES):
            self._summary = self._summary or asyncio.create_task(self._summarise())
        self._actor.begin_cycle()
        self._cycle = asyncio.create_task(self._think())

    async def _summarise(self) -> None:
        """Replace the older half of the window with a summary, in the background."""
        try:
            await compact(self._agent, self._session, CallbackHost(self._host.emit))
        except DenizenError as error:
            self._report_once("budget", str(error))
        finally:
            self._summary = None

    async def _think(self) -> None:
        self._show_status("thinking")
        began, actor, problem = self._clock.monotonic(), self._actor, ""
        options = TurnOptions(accept=actor.complaint, channel="moo")
        about = {"goal": self._state.goal}
        with trace.get_tracer("denizen").start_as_current_span("llm_cycle", attributes=about) as span:
            try:
                result = await run_turn(self._agent, self._session, Cycle(), self._host, options)
            except ModelError as error:
                problem = f"The model failed: {error}"
                self._state.note(problem)
                outcome, result = "llm_failed", RunResult("")
            else:
                outcome = "dispatched" if actor.acted else "goal_only"
                if result.stop_reason == "budget":
                    outcome = "no_budget"
                    problem = f"{result.error.replace('budget.session', 'moo.session')} {BUDGET_ADVICE}"
                    self._report_once("budget", problem)
                else:
                    self._told.discard("budget")
            usage = result.usage
            counts = {conventions.INPUT_TOKENS: usage.input or 0, conventions.OUTPUT_TOKENS: usage.output or 0}
            whole = {"outcome": outcome, "tokens": usage.context, "cost_usd": usage.cost_usd or 0.0}
            span.set_attributes(whole | counts)
        await self._state.apply_news()
        self._active_at = self._clock.monotonic()
        seconds = self._active_at - began
        self._tally = self._tally.after(outcome, usage.context, usage.cost_usd or 0.0, seconds, self._state.now)
        if outcome != "no_budget":
            self._state.note(f"[Cycle] duration={seconds:.1f}s tool_calls={actor.acted}")
        await actor.pass_on()
        await self._state.answers_to_operator.end_cycle(problem)
        if outcome in {"llm_failed", "no_budget"}:
            self._armed, self._rests_until = True, self._active_at + MODEL_RETRY_DELAY_S
        else:
            self._follow_up()
        self._show_status("ready" if self._settings.idle_wakeup_seconds else "waiting")

    def _follow_up(self) -> None:
        """Think again where there is a goal and nothing was done for it, or the model fell silent before its end."""
        acted = self._actor.acted > 0
        self._idle_cycles = (1 if acted else self._idle_cycles + 1) if self._state.goal else 0
        goes_on = acted and not self._actor.awaits  # its queue does
        if goes_on or not self._state.goal or self._state.is_done or self._only_by_timer:
            return
        self._own_cycles += 1
        if self._own_cycles > MAX_OWN_CYCLES or self._idle_cycles > MAX_GOAL_ONLY_CYCLES + 1:
            return
        if self._is_for_world and self._used_up_world_cycles:
            return
        if self._idle_cycles == MAX_GOAL_ONLY_CYCLES + 1:
            self._state.operator(NUDGE)
        self._armed = True

    def _asks(self) -> None:
        """The model is asked: it sees all that was to begin a cycle."""
        self._state.answers_to_operator.mark_seen()
        if self._is_instructed or self._state.is_awake:
            self._own_cycles = self._idle_cycles = 0
            self._state.is_done = False
        self._armed = self._armed_by_world = self._is_instructed = self._state.is_awake = False
