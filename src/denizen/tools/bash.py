"""`bash` runs commands in the workspace, in the sandbox; `jobs` lists, shows and stops those in the background."""

import asyncio
import dataclasses
import os
import re
import signal
from typing import Annotated

import msgspec

from denizen.messages import Text, ToolResult
from denizen.ports import Sandbox, Schema, ToolContext, Traits
from denizen.tools.function import FunctionTool, tool
from denizen.tools.programs.jobs import Jobs
from denizen.tools.programs.process import BoundedOutput, LineEmitter, run
from denizen.trusted.environment import environment_note
from denizen.trusted.programs import find_program

_MAX_SHOWN_CHARS = 50_000  # characters of one command's output that are shown as they come
_REFUSALS = (
    *("Permission denied", "Read-only file system", "Operation not permitted", "PermissionError", "EROFS", "EACCES"),
    *("Device or resource busy", "EBUSY"),
    *("Network is unreachable", "Could not resolve", "name resolution", "EAI_AGAIN", "ENETUNREACH"),
)
"""Words that programs print when a sandbox refuses something."""
_REFUSAL_NOTE = "[the sandbox may have refused something; what needs to be done outside can be `unsandboxed`]"
_PROTECTED_NOTE = "[commands can't change {}: programs outside the sandbox or later sessions use it]"
_BACKGROUND_NOTE = "[its background processes ended with it; to keep one running, start it with a name as `background`]"

_Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


def bash_tool(
    sandbox: Sandbox,
    *,
    outside: Sandbox | None = None,
    network: bool = False,
    most: int = 40_000,
    jobs: Jobs | None = None,
) -> FunctionTool:
    """The tool that runs commands in `sandbox`, there with the network or without; `most` bytes of output are kept.

    Commands that run in the background are added to `jobs`; without, there are none. A command that asks for
    `unsandboxed` runs in `outside`, if given; the policy decides whether it may.
    """
    noticed: set[tuple[str, str]] = set()
    running = Jobs() if jobs is None else jobs

    @tool(traits=Traits.EXECUTES, shell_names=("run",))
    async def bash(
        command: str, turn: ToolContext, timeout: _Seconds = 120, unsandboxed: bool = False, background: str = ""
    ) -> ToolResult:
        """Run a command with bash in the workspace and get its output and exit code.

        Args:
            command: Without a terminal or input; what it leaves in the background ends with it.
            timeout: Seconds after which it is ended.
            unsandboxed: Ask the user to let it run outside the sandbox: only for what can't be done inside.
            background: A name: the command keeps running while you work, such as a server; see jobs.
        """
        place = outside if unsandboxed and outside else sandbox
        key, folder = turn.session_key, turn.workspace
        argv = [find_program("bash", os.environ, folder, otherwise="/bin/sh"), "-c", "--", command]
        if background:
            running.check(key, background)
        wrapped = await asyncio.to_thread(running.wrap, key, place, argv, workspace=folder, network=network)
        kept, lines = BoundedOutput(most), LineEmitter(turn.emit, _MAX_SHOWN_CHARS)
        notice = f"[{wrapped.notice}]\n" if (turn.session_key, wrapped.notice) not in noticed and wrapped.notice else ""
        if notice:
            noticed.add((turn.session_key, wrapped.notice))
            turn.emit(notice)
        if background:
            job = await running.start(key, background, command, wrapped, folder)
            text = f"{notice}{background} is {job.state}; jobs shows what it writes, and stops it."
            return ToolResult("", "", [Text("\n".join(filter(None, [text, job.output])))], is_error=not job.running)

        def take(data: bytes) -> None:
            kept.add(data)
            lines.add(data)

        status = await (turn.run_command or run)(wrapped, turn.workspace, seconds=timeout, take=take)
        lines.add(b"")
        text = kept.text("to see them, run it again with the output in a file, then grep or cut that")
        if status is None:
            notes = [f"[ended: it took longer than {timeout:g} s; give it a longer timeout or less to do]"]
        else:
            number = -status if status < 0 else status - 128
            name = f" ({signal.Signals(number).name})" if number in set(signal.Signals) else ""
            notes = [f"[exit code {status}{name}]"]
        if status and place.confines and any(sign in text for sign in _REFUSALS):
            met = [name for name in wrapped.held if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)]
            notes += [_PROTECTED_NOTE.format(", ".join(met))] if met else []
            notes.append(environment_note(text, folder.resolve()) or _REFUSAL_NOTE)
        if jobs is not None and command.rstrip().endswith("&"):
            notes.append(_BACKGROUND_NOTE)
        content = "\n".join([*([text.removesuffix("\n")] if text else []), *notes])
        details = {"exit_code": status} if status != 0 or text.strip() else {"exit_code": status, "no_output": True}
        return ToolResult("", "", [Text(notice + content)], is_error=status != 0, details=details)

    schema, arguments = bash.schema, {**bash.schema.parameters["properties"]}
    if jobs is None:
        del arguments["background"]
    confinement = f" {sandbox.promises} The network is {'on' if network else 'off'}." if sandbox.confines else ""
    parameters = {**schema.parameters, "properties": arguments}
    return dataclasses.replace(bash, schema=Schema(schema.name, f"{schema.description}{confinement}", parameters))


def jobs_tool(running: Jobs) -> FunctionTool:
    """The tool over the background commands that `bash` starts."""

    @tool(traits=Traits.REPEATABLE)
    async def jobs(turn: ToolContext, name: str = "", stop: bool = False) -> str:
        """List the commands running in the background, show what one has written, or stop it. All end with the session.

        Args:
            name: The one to show or stop.
            stop: End it.
        """
        if not name:
            lines = [f"{job.name}: {job.state} · {job.command}" for job in running.of(turn.session_key)]
            return "\n".join(lines) or "Nothing runs in the background."
        job = running.find(turn.session_key, name)
        if stop:
            await running.stop(job)
        return f"{name}: {job.state}\n{job.output}".strip()

    return jobs
