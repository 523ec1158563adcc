"""Tools for the tests of commands: each with parameters of its own kind."""

from typing import Literal

from denizen import tool
from denizen.actions import Shell
from denizen.actions.shell.commands import Help
from denizen.messages import AssistantMessage, Text
from denizen.ports import Intent, Tool, Toolset, Traits


@tool(traits=Traits.READS)
def view(path: str, types_only: bool = False, depth: int = 1, lines: str = "") -> str:
    """Show a file. Or a folder.

    Args:
        path: A file, or FILE/Symbol
        lines: As 3-7
    """
    return path


@tool(traits=Traits.READS, shell_names=["text-search"])
def grep(pattern: str, path: str = ".", mode: Literal["lines", "files"] = "lines", ignore_case: bool = False) -> str:
    """Search files."""
    return pattern


@tool(traits=Traits.WRITES)
def write(path: str, content: str) -> str:
    """Write a file."""
    return content


@tool(traits=Traits.WRITES)
def edit(path: str, old: str, new: str, all: bool = False) -> str:
    """Replace a text."""
    return new


@tool(traits=Traits.EXECUTES, shell_names=["run"])
def bash(command: str, timeout: float = 120.0) -> str:
    """Run a command."""
    return command


@tool(shell_names=["memorize", "store"])
def remember(text: str, weight: float = 0.5, context: str = "") -> str:
    """Keep a fact."""
    return text


@tool
def note(text: str) -> str:
    """Note something."""
    return text


@tool
def ask(question: str) -> str:
    """Ask the user."""
    return question


@tool
def keep(outputs: list[int] | int | Literal["all"] = "all") -> str:
    """Keep outputs."""
    return str(outputs)


@tool
def task(action: Literal["list", "add"] = "list", text: str = "", under: str = "") -> str:
    """Keep a plan."""
    return text


@tool
def tag(names: list[str], marks: dict[str, int] | None = None, sizes: list[float] | None = None) -> str:
    """Tag things."""
    return ",".join(names)


@tool
def web_fetch(url: str, start_at: int = 0) -> str:
    """Fetch a page."""
    return url


@tool
def clear() -> str:
    """Clear everything."""
    return ""


_ALL: list[Tool] = [view, grep, write, edit, bash, remember, note, ask, keep, task, tag, web_fetch, clear]
TOOLS = Toolset([Help(_ALL), *_ALL])


def read(text: str) -> Intent:
    """What the reply asks for."""
    return Shell().read(AssistantMessage([Text(text)]), TOOLS)


def run(text: str) -> list[tuple[str, dict[str, object]]]:
    """The calls of a reply: names and arguments."""
    return [(call.name, call.args) for call in read(text).calls]


def args(text: str) -> dict[str, object]:
    """The arguments of its only call."""
    [(_, found)] = run(text)
    return found
