"""The user's hooks during a turn."""

from typing import Any

from denizen.engine.turn import Turn
from denizen.events import Notice
from denizen.ports import HookEvent, Hooks


async def call_hooks(turn: Turn, event: HookEvent, tool: str = "", **data: Any) -> str:
    """Call the user's hooks for earlier notices and for an event; the reason of a refusal, or empty."""
    hooks = turn.agent.hooks
    if hooks is None:
        return ""
    about = {
        "session": turn.session.key,
        "workspace": str(turn.agent.workspace),
        "channel": turn.options.channel,
        "chat": turn.options.chat,
    }
    while turn.unhooked:
        notice = turn.unhooked.pop(0)
        await _call(turn, hooks, "notice", {**about, "level": notice.level, "text": notice.text})
    if tool:
        about["tool"] = tool
    return await _call(turn, hooks, event, {**about, **data}, tool)


async def _call(turn: Turn, hooks: Hooks, event: HookEvent, data: dict[str, Any], tool: str = "") -> str:
    answer = await hooks.call(event, data, tool)
    for problem in answer.problems:  # to the host alone: a hook that fails on notices would never end
        turn.emit(Notice(turn.agent.redact(problem), "warning"))
    return turn.agent.redact(answer.refusal)
