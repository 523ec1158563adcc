"""Whether a call may run: the policy decides, or asks the person."""

from typing import Any, NoReturn

import msgspec

from denizen.engine.session_state import APPROVED
from denizen.engine.turn import Turn
from denizen.engine.turn_over import TurnOver
from denizen.entries import AnswerEntry, ParkedEntry, StateEntry
from denizen.errors import ConfigError, ToolRefused
from denizen.events import TurnParked
from denizen.messages import ToolCall
from denizen.ports import INVALID_JSON, MISUSED, Answer, Ask, CheckedTool, Parked, Tool, ToolContext, Traits, only_reads

QUOTATION = "Allow this call of {name}? It repeats what the agent has read and you didn't write."
QUOTED = "this call is a quotation: it repeats what you have read and the user didn't write; "


async def permit(turn: Turn, call: ToolCall) -> str:
    """Why the call may not run, for the model; empty: it may.

    Parks the turn if a person must answer and nobody is there.
    """
    if MISUSED in call.args:
        return str(call.args[MISUSED])
    agent, tools = turn.agent, turn.agent.tools
    tool = tools.get(call.name)
    if tool is None:
        nearest = tools.nearest(call.name)
        return f"unknown tool {call.name!r}" + (f"; did you mean {nearest!r}?" if nearest else "")
    if INVALID_JSON in call.args:
        return f"not run: the arguments of {call.name} are not a JSON object; make the call again with one"
    in_sight = Traits.NONE if turn.state.user_words.covers(call) else turn.state.in_sight
    decision = agent.policy.decide(
        call,
        tool,
        in_sight,
        approved=turn.state.approved,
        read_only=turn.options.read_only,
        chat=(turn.options.channel, turn.options.chat),
    )
    if decision.verdict == "deny":
        return f"not run: {decision.reason}"
    quotation = call.id in turn.state.read_reply().quoted and not only_reads(tool)
    said = decision.unless_said and turn.state.user_words.hold_all(call.args)
    asks = (decision.verdict == "ask" and not said) or quotation
    try:
        args = agent.policy.arguments(call, tool, approved=turn.state.approved)
        if asks and isinstance(tool, CheckedTool):
            tool.check(call.args)
    except ToolRefused as why:
        return f"not run: {why}"
    if not asks:
        return ""
    question = QUOTATION.format(name=call.name) if quotation else decision.reason
    diff = await preview(turn, tool, args)
    answer = await answer_to(turn, Ask(call.id, question, call.name, call.args, quotation, diff))
    if not answer.allow:
        why = _refusal(answer)
        return f"not run: {QUOTED}{why}" if quotation else f"not run: {why}"
    if not quotation:  # a yes for longer doesn't answer the next one
        await _keep_approval(turn, call, tool, in_sight, answer)
    return ""


async def preview(turn: Turn, tool: Tool, args: dict[str, Any]) -> str:
    """The diff that a call would make to files, without secrets."""
    agent = turn.agent

    async def nobody(_: str) -> Answer:
        return Answer("", allow=False)

    context = ToolContext(
        session_key=turn.session.key,
        call_id="",
        workspace=agent.workspace,
        clock=agent.clock,
        emit=lambda _: None,
        ask=nobody,
        restricted=agent.restricted,
        private=agent.home,
        denied=agent.policy.denied_paths(tool),
    )
    return agent.redact(await agent.policy.preview(tool, args, context))


async def answer_to(turn: Turn, request: Ask) -> AnswerEntry:
    """The person's answer, given now or earlier; parks the turn if nobody is there."""
    if given := turn.state.answers.get(request.call_id):
        return given
    parked = turn.state.parked.get(request.call_id)
    if parked and parked.until and turn.agent.clock.now() >= parked.until:
        return AnswerEntry(call_id=request.call_id, allow=False, text="nobody answered in time", unasked=True)
    answer = await turn.io.ask(request)
    if isinstance(answer, Parked):
        await park(turn, request)
    return await turn.keep_answer(msgspec.structs.replace(answer, call_id=request.call_id))


async def park(turn: Turn, request: Ask) -> NoReturn:
    """End the turn as parked until somebody has answered."""
    call_id, question = request.call_id, request.question
    if call_id not in turn.state.parked:
        until = turn.agent.clock.now() + turn.agent.park_time
        entry = ParkedEntry(call_id=call_id, question=question, until=until, name=request.tool_name, args=request.args)
        await turn.append(entry)
    turn.emit(TurnParked(turn.session.key, call_id, question))
    raise TurnOver("parked", question)


def _refusal(answer: AnswerEntry) -> str:
    if answer.unasked:
        return f"it needs the user's approval, and {answer.text}; do without it, or say what you need"
    return "the user said no" + (f": {answer.text}" if answer.text else "")


async def _keep_approval(turn: Turn, call: ToolCall, tool: Tool, in_sight: Traits, answer: AnswerEntry) -> None:
    """Keep an approval that holds longer than this call."""
    if answer.scope == "once":
        return
    rule = turn.agent.policy.rule_for(call, tool, in_sight)
    await turn.append(StateEntry(name=APPROVED, value=msgspec.to_builtins(rule)))
    if answer.scope == "always":
        try:
            turn.agent.policy.keep(rule)
        except ConfigError as error:
            turn.notice(f"It holds for this session only. {error}", warning=True)
