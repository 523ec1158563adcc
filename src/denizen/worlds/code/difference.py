"""The difference to a commit, as context for a task."""

import shlex

from denizen.errors import ConfigError, ToolRefused
from denizen.messages import Text
from denizen.ports import Answer, ToolContext
from denizen.tools.git import git_tool
from denizen.worlds.world import AgentHandle

MOST = 200_000
"""Bytes of a difference that go with a task."""


async def difference_to(base: str, agent: AgentHandle) -> Text:
    """What differs from the commit `base`, what isn't committed included; new files that git doesn't know by name.

    Nothing that the repository brings along is run for it. Raises ConfigError where git knows no such commit.
    """
    turn = ToolContext(
        session_key="",
        call_id="diff",
        workspace=agent.workspace,
        clock=agent.record.clock,
        emit=lambda _: None,
        ask=_nobody,
    )
    git = git_tool(agent.record.environ, most=MOST)
    try:
        answer = await git.run({"args": f"diff --end-of-options {shlex.quote(base)} --"}, turn)
        status = await git.run({"args": "status --porcelain --untracked-files=all"}, turn)
    except ToolRefused as why:
        raise ConfigError(f"--diff {base}: {why}.") from why
    if answer.is_error:
        raise ConfigError(f"--diff {base}: git says: {answer.text.partition('[exit code')[0].strip()}")
    new = [line for line in status.text.splitlines() if line.startswith("?? ")]
    unknown = "\n".join(["\nNot known to git yet:", *new]) if new else ""
    return Text(f'\n\n<diff base="{base}">\n{answer.text}{unknown}\n</diff>')


async def _nobody(_: str) -> Answer:
    raise ToolRefused("nobody is asked here")
