"""The system prompt of a session: made once, kept in its transcript, so that it stays the same byte by byte."""

import platform
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from denizen.engine.feed import PROMPT, Prompt
from denizen.engine.turn import Turn
from denizen.entries import SessionEntry, StateEntry
from denizen.ports import UNTRUSTED
from denizen.prompt import PromptFile, build_prompt, read_bootstrap, scaffold

if TYPE_CHECKING:
    from denizen.engine.agent import Agent


async def prompt_for(turn: Turn) -> None:
    """Make the session's prompt where it has none, was made for something else, or the context was compacted."""
    agent = turn.agent
    wanted = [agent.clock.now().date().isoformat(), str(agent.workspace), agent.model.name, agent.tool_names]
    wanted += [agent.instructions] if agent.instructions else []
    if turn.feed.prompt_for != wanted:
        own = agent.config.agent.workspace_dir
        scaffold(own)
        files, unread = read_bootstrap(own, agent.workspace)
        for notice in (*unread, *agent.skill_notices):
            turn.notice(notice, warning=True)
        text = agent.redact(_compose(agent, files, _began(turn)))
        private = any(file.is_users for file in files)
        untrusted = any(UNTRUSTED in file.text for file in files if file.path == "MEMORY.md")
        prompt = Prompt(text, wanted, agent.actions.name, private, untrusted)
        await turn.append(StateEntry(name=PROMPT, value=msgspec.to_builtins(prompt)))


def _compose(agent: "Agent", files: Sequence[PromptFile], began: datetime) -> str:
    return build_prompt(
        files=files,
        skills=agent.skills,
        tools=agent.tool_names,
        started=began,
        platform=f"{platform.system().lower()} {platform.machine()}",
        workspace=agent.workspace,
        model=agent.model.name,
        identity=agent.profile.identity,
        instructions=agent.instructions,
        listed=not agent.actions.lists_tools,
    )


def _began(turn: Turn) -> datetime:
    header = turn.session.entries[0] if turn.session.entries else None
    return header.at if isinstance(header, SessionEntry) and header.at else turn.agent.clock.now()
