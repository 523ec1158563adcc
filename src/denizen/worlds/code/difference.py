"""The difference to a commit, as context for a task."""

import shlex

from denizen.engine import Agent
from denizen.errors import ConfigError, ToolRefused
from denizen.messages import Text
from denizen.ports import Answer, ToolContext
from denizen.tools.git import git_tool

MOST = 200_000
"""Bytes of a difference that go with a task."""


async def difference_to(base: str, agent: Agent) -> Text:
    """What differs from the commit `base`, files that aren't committed included.

    Nothing that the repository brings along is run for it. Raises ConfigError where git knows no such commit.
    """
    turn = ToolContext(
        session_key="",
        call_id="diff",
        workspace=agent.workspace,
        clock=agent.clock,
        emit=lambda _: None,
        ask=_nobody,
    )
    try:
        answer = await git_tool(agent.environ, most=MOST).run(
            {"args": f"diff --end-of-options {shlex.quote(base)} --"}, turn
        )
    except ToolRefused as why:
        raise ConfigError(f"--diff {base}: {why}.") from why
    if answer.is_error:
        raise ConfigError(f"--diff {base}: git says: {answer.text.strip()}")
    return Text(f'\n\n<diff base="{base}">\n{answer.text}\n</diff>')


async def _nobody(_: str) -> Answer:
    raise ToolRefused("nobody is asked here")
