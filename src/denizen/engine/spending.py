"""The money of a turn: what it has spent with the turns that it began, and whether it can pay for another call."""

from collections.abc import Iterator, Sequence

from denizen.engine.record import AgentRecord
from denizen.engine.turn import Turn
from denizen.engine.turn_over import TurnOver
from denizen.messages import AssistantMessage, Message, ToolResult
from denizen.ports import Traits


def begin_spending(turn: Turn) -> None:
    """Count what the turn had spent before it was left unfinished."""
    turn.spent_elsewhere_usd += spent_by_subagents(turn.agent, turn.account.messages)
    _add_to_those_around(turn, spent_usd(turn))


def spent_usd(turn: Turn) -> float:
    """US dollars spent by the turn and its subagents."""
    return (turn.account.usage.cost_usd or 0.0) + turn.spent_elsewhere_usd


def spent_by_subagents(agent: AgentRecord, messages: Sequence[Message]) -> float:
    """US dollars spent by the subagents whose results are among these messages."""
    spent = 0.0
    for message in messages:
        if isinstance(message, ToolResult) and (tool := agent.tools.get(message.name)):
            usd = message.details.get("spent_usd") if isinstance(message.details, dict) else None
            if Traits.DELEGATES in tool.traits and isinstance(usd, int | float):
                spent += max(usd, 0.0)
    return spent


async def check_budgets(turn: Turn) -> None:
    """End the turn if it, or one around it, can't pay for another call; local models cost nothing."""
    if turn.agent.model.local:
        return
    turns = [*_with_those_around(turn)]
    for each in turns:
        if why := await each.agent.budget.check(_payer(turns[-1]), spent_usd(each)):
            raise TurnOver("budget", why)


async def charge(turn: Turn, answer: AssistantMessage) -> None:
    """Count what a call cost: once, however many turns are around this one."""
    cost, model = answer.usage.cost_usd, turn.agent.model
    if cost is None and model.local:
        return
    _add_to_those_around(turn, cost or 0.0)
    *_, outermost = _with_those_around(turn)
    if problem := await outermost.agent.budget.charge(_payer(outermost), cost, answer.model or model.name):
        turn.notice(problem, warning=True)


def _payer(outermost: Turn) -> str:
    """The session whose budget pays."""
    return outermost.options.payer or outermost.session.key


def _with_those_around(turn: Turn) -> Iterator[Turn]:
    """The turn and those around it; the session of the last one pays."""
    around: Turn | None = turn
    while around:
        yield around
        around = around.options.parent


def _add_to_those_around(turn: Turn, usd: float) -> None:
    _, *around = _with_those_around(turn)
    for each in around:
        each.spent_elsewhere_usd += usd
