"""`jobs`: lists, shows and stops the commands that run in the background."""

from denizen.messages import Text, ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.function import FunctionTool, tool
from denizen.tools.programs.jobs import Jobs


def jobs_tool(running: Jobs) -> FunctionTool:
    """The tool over the background commands that `bash` starts."""

    @tool(traits=Traits.REPEATABLE)
    async def jobs(turn: ToolContext, name: str = "", stop: bool = False) -> ToolResult:
        """List the commands running in the background, show what one has written, or stop it. All end with the session.

        Args:
            name: The one to show or stop.
            stop: End it.
        """
        if not name:
            lines = [f"{job.name}: {job.state} · {job.command}" for job in running.of(turn.session_key)]
            return ToolResult("", "", [Text("\n".join(lines) or "Nothing runs in the background.")])
        job = running.find(turn.session_key, name)
        if stop:
            await running.stop(job)
        return ToolResult("", "", [Text("\n".join([f"{name}: {job.state}", job.output]).strip())])

    return jobs
