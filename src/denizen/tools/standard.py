"""The tools of every agent, and those of other packages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from denizen.config.home import places
from denizen.config.plugins import entry_points, load_entry_point
from denizen.errors import ConfigError
from denizen.ports import Memory, Sandbox, Tool

if TYPE_CHECKING:
    from denizen.config import Config
    from denizen.tools.programs.jobs import Jobs


def default_tools(
    config: "Config", *, sandbox: Sandbox, memory: Memory, environ: Mapping[str, str], jobs: "Jobs | None" = None
) -> list[Tool]:
    """All of them, ready for an agent; what is installed (`rg`) is looked for on the PATH of `environ`.

    With `jobs` commands may run in the background; whoever owns the jobs ends them.
    """
    from denizen.config.redact import secrets_of
    from denizen.tools.bash import bash_tool, jobs_tool
    from denizen.tools.edit import edit
    from denizen.tools.find import find
    from denizen.tools.git import git_tool
    from denizen.tools.grep import grep_tool
    from denizen.tools.ls import ls
    from denizen.tools.memory import memory_tools
    from denizen.tools.memory_folder import NAME, is_asked_for, memory_folder_tool
    from denizen.tools.patch import apply_patch
    from denizen.tools.read import read
    from denizen.tools.sandbox import GuardedSandbox, Unconfined
    from denizen.tools.web import web_fetch_tool
    from denizen.tools.web_search import is_set_up, web_search_tool
    from denizen.tools.write import write
    from denizen.trusted.session_files import SessionFiles

    unconfined = Unconfined(config.sandbox, environ, secrets_of(config, {}))
    outside = GuardedSandbox(lambda: unconfined, SessionFiles.of(config)) if config.home else unconfined
    # less than the engine cuts at: the tools themselves know how to get the rest
    most = min(40_000, max(config.agent.max_tool_result_chars - 500, 500))
    files: list[Tool] = [read, write, edit, apply_patch, ls, find, grep_tool(environ)]
    network = config.sandbox.network
    programs: list[Tool] = [
        bash_tool(sandbox, outside=outside, network=network, most=most, jobs=jobs),
        *([] if jobs is None else [jobs_tool(jobs)]),
        git_tool(environ, sandbox, most=most),
    ]
    web: list[Tool] = [web_fetch_tool(config.web, most=most)]
    if is_set_up(config.web, environ):
        web.append(web_search_tool(config.web, environ))
    kept, plugins = memory_tools(memory), plugin_tools()
    if is_asked_for(config) and NAME not in {each.name for each in plugins}:
        kept.append(memory_folder_tool(places(config)[0] / "memories"))
    return [*files, *programs, *web, *kept, *plugins]


def plugin_tools() -> list[Tool]:
    """The tools of installed packages: each entry point of the group `denizen.tools` is a tool or a list of them.

    Raises ConfigError for one that can't be loaded, or isn't that.
    """
    found: list[Tool] = []
    for entry in entry_points("denizen.tools"):
        loaded = load_entry_point(entry, "tools")
        tools = loaded if isinstance(loaded, list) else [loaded]
        if not all(hasattr(tool, "schema") and hasattr(tool, "run") for tool in tools):
            package = entry.dist.name if entry.dist else entry.value
            raise ConfigError(f"{entry.name!r} of {package} isn't a tool, nor a list of tools; update or remove it")
        found += tools
    return found
