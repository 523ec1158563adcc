"""How an agent acts: its calls are sent and awaited, or queued until the world is quiet."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from denizen.actions.directives import BARE
from denizen.context import as_shown
from denizen.errors import ToolRefused
from denizen.events import ToolEnd
from denizen.messages import Text, ToolResult
from denizen.worlds.moo.chain import CRITICAL, NOTHING, done_refusal, pass_on, process_command, process_unsent
from denizen.worlds.moo.character_state import CharacterState
from denizen.worlds.moo.command_sender import CommandSender, is_error, is_failure
from denizen.worlds.moo.server_text import CommandOutput, ServerLine
from denizen.worlds.moo.settings import MooSettings

EMPTY = "Your reply was empty. Act with a call, or say in a line why not."
REPEATED = "You have sent `{}` three times. Do something else, or call done."


class ToolActor:
    """The actor of an agent's tools. `acted` counts the calls of a cycle, `is_over` says that it is to end."""

    def __init__(
        self, state: CharacterState, sender: CommandSender, settings: MooSettings, *, calls_natively: bool
    ) -> None:
        self.awaits = settings.acting == "awaited" or (calls_natively and not settings.acting)
        self.script: deque[str] = deque()
        self._state = state
        self._sender = sender
        self._settings = settings
        self.begin_cycle()

    def begin_cycle(self) -> None:
        """Begin to count; what is still queued is dropped, as the model thinks anew."""
        if self.script:
            self._state.note(f"Dropped from the queue: {' | '.join(self.script)}")
            self.script.clear()
        self.acted = 0
        self.is_over = False
        self._had_token = self._state.chain.token.holds
        self._last_words: str | None = None
        self._asked_again = 0
        self._begin_reply(())

    def _begin_reply(self, calls: Sequence[object]) -> None:
        half = len(calls) // 2
        self._is_doubled = half > 0 and [*calls[:half]] * 2 == [*calls]
        self._called: list[Sequence[str]] = []
        self._refused = 0

    # The model's replies

    def replied(self) -> None:
        """The model has replied."""
        intent = self._state.session_state.read_reply()
        aloud = [str(call.args.get("text", "")) for call in intent.calls if call.name == "respond"]
        for words in filter(None, map(str.strip, (intent.reply, *aloud))):
            self._state.tell("thought", words)
        self._begin_reply([(call.name, call.args) for call in intent.calls])
        if not self._state.goal and any(call.id.startswith(BARE) for call in intent.calls):
            self.is_over = True  # mere words, and nothing to do

    def ran(self, event: ToolEnd) -> None:
        """A call has its result; a reply whose calls were all refused unseen can't be carried out."""
        self._refused += event.is_error and not self._called
        if self._refused == len(self._state.session_state.read_reply().calls):
            self._asked_again += 1
            self.is_over |= self._asked_again > self._settings.structured_output_retries

    async def complaint(self, text: str) -> str:
        """The complaint about a reply that would end the cycle; empty if it is fine."""
        intent = self._state.session_state.read_reply()
        may_ask = self._asked_again < self._settings.structured_output_retries
        if text.strip() or intent.calls or intent.directives or not may_ask:
            return ""
        self._asked_again += 1
        return EMPTY

    # Its calls

    async def act(self, commands: Sequence[str]) -> ToolResult:
        """Carry out a call: send its commands, or queue them."""
        again = commands in self._called if self._is_doubled else [commands] == self._called[-1:]
        self._called.append(commands)
        if again:
            return self.result("not run: the same call again in one reply")
        self.acted += 1
        most = self._settings.tool_calls_per_cycle
        self.is_over |= self.acted >= most
        if self.acted > most:
            return self.result(f"not run: a cycle has at most {most} calls")
        if self.awaits:
            return await self._carry_out(commands)
        self.script.extend(commands)
        return self.result("queued")

    def result(self, text: str, *, is_error: bool = False) -> ToolResult:
        """The result of a call, which ends the cycle if commands are queued."""
        return ToolResult("", "", [Text(text)], is_error=is_error, ends_turn=not self.awaits)

    async def finish(self, summary: str) -> ToolResult:
        """End the work, when the queue is sent, until it is woken. Raises ToolRefused while it holds the token."""
        self._called.append([summary])
        if self.script:
            self._last_words = summary
            return self.result("queued")
        if refusal := done_refusal(self._state.chain):
            await self._state.set_goal(refusal)
            raise ToolRefused(refusal)
        self._state.is_done = self.is_over = True
        self._state.is_awake = False
        self._state.tell("goal", f"[Done] {summary}")
        await self._state.set_goal("")
        return ToolResult("", "", [Text("done")], ends_turn=True)

    async def end_script(self) -> None:
        """All that was queued is sent; a page that was missing for the model's DONE may have been."""
        if self._state.goal.startswith(CRITICAL.partition("{")[0]) and not done_refusal(self._state.chain):
            self._last_words = self._last_words or ""
        if self._last_words is not None:
            with suppress(ToolRefused):  # its reason is the goal now
                await self.finish(self._last_words)
        await self.pass_on()

    async def pass_on(self) -> None:
        """End the turn of who had the token, where the cycle has used up its calls and all of them are sent."""
        is_used_up = self.acted >= self._settings.tool_calls_per_cycle and not self.script
        if is_used_up and (self._had_token or self._state.chain.token.holds):
            await self._state.step(pass_on(self._state.chain))
            await self._state.set_goal("")
            self._state.is_done = True

    async def _carry_out(self, commands: Sequence[str]) -> ToolResult:
        """Send the commands of a call, until one fails."""
        lines: list[str] = []
        for number, command in enumerate(commands, 1):
            output = await self.perform(command, in_result=True)
            lines += [as_shown(self._state.cut(line)) for line in output.lines]
            lines += [f"({output.problem})"] if output.problem else []
            if is_failure(output):
                left = len(commands) - number
                lines += [f"({left} more commands were not sent)"] if left else []
                return self.result("\n".join(lines), is_error=True)
        return self.result("\n".join(lines) or "(done; the world said nothing)")

    async def perform(self, command: str, *, in_result: bool = False) -> CommandOutput:
        """Send a command of the model's, unless it would pass the token."""
        try:
            chain, command = process_command(self._state.chain, command)
        except ToolRefused as why:
            self._state.note(f"{command}: not sent: {why}")
            self._state.see(f"Not sent: `{command}`: {why}", "world", in_result=in_result)
            return CommandOutput(command, problem=f"not sent: {why}")
        await self._state.step((chain, NOTHING))
        if self._sender.repeats(command):
            self._state.operator(REPEATED.format(command))
        return await self.send(command, in_result=in_result)

    async def send(self, command: str, *, in_result: bool = False) -> CommandOutput:
        """Send a command; returns the output that the model may see."""
        state = self._state
        state.tell("action", command)
        state.see(command, "self", in_result=in_result)
        output = await self._sender.send(command)
        await state.plans.advance(output)
        lines = [line for line in output.lines if await state.hear(ServerLine(line), command)]
        for line in lines:
            state.tell("server_error" if is_error(line) else "server", line)
            state.see(line, "world" if self._sender.names_talkers else "player", in_result=in_result)
        if output.problem:
            await state.step((process_unsent(state.chain, command), NOTHING))
            state.note(f"{command}: {output.problem}")
            self.is_over |= not self._sender.is_connected
        return CommandOutput(command, lines, output.problem)
