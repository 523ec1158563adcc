"""`/SERVER:PROMPT words`: the user says a prompt of an MCP server."""

import re
from typing import Final

import msgspec

from denizen.engine.session_state import IN_SIGHT, InSight, state_of
from denizen.entries import StateEntry
from denizen.messages import Text
from denizen.ports import Session
from denizen.worlds.world import AgentHandle

SERVER_PROMPT: Final = re.compile(r"/([\w-]+):([^\s/]+)(?:[^\S\n]+(.*))?")
"""The syntax; the server must be one of the agent's."""


def says_prompt(agent: AgentHandle, text: str) -> bool:
    """Whether these words say a prompt of one of the agent's servers."""
    match = SERVER_PROMPT.fullmatch(text.strip())
    return bool(match and agent.mcp and match[1] in agent.mcp.connections)


async def prompt_said(agent: AgentHandle, session: Session, text: str, message_id: str = "") -> list[Text]:
    """The prompt that these words of a message name, filled in; empty for other words.

    It counts as others' text. A message that the session has says no more. Raises ToolRefused if the server has no
    such prompt, or can't fill it in.
    """
    match = SERVER_PROMPT.fullmatch(text.strip())
    if not (match and agent.mcp and says_prompt(agent, text)):
        return []
    if message_id and message_id in state_of(agent.record, session).user_ids:
        return []
    server, name, words = match.groups("")
    said = await agent.mcp.prompt(server, name, words)
    await session.append(StateEntry(name=IN_SIGHT, value=msgspec.to_builtins(InSight(untrusted=True))))
    return [Text(f'\n\n<prompt from="{server}">\n{said}\n</prompt>')]
