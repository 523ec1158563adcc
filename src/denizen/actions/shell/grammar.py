"""What a model is told of commands: the end of its system prompt (seed 001, "System Prompt")."""

from denizen.actions.shell.parameters import parameters_of
from denizen.actions.shell.prose import PROSE
from denizen.actions.shell.usage import commands_of, summary_of, usage_of
from denizen.ports import Toolset

MOST = 10
"""Commands of one reply that are run (seed 001, "Command limit guard")."""

_SESSION = """\
Act by commands in $(cmd) syntax, in plain text: not in code, not in a quotation. Multiple per turn OK: up to {most} run
in order, and the next message holds their outputs, numbered: [1] $ cmd. Never write an output yourself: it would be
made up. End your reply after the last command, and wait.

Words are as in a shell, but nothing is expanded. Quote what has blanks: 'it is' or "it's". Long text comes last:
$(write PATH <<'END'
any lines
END
)
The text of {prose} needs no quotes. $(help CMD) tells more. To mention a command put it in `code`.

$(done YOUR FINAL ANSWER) ends the session: the user sees the answer alone. So does a reply without a command."""

_MEMORY = """
Command outputs disappear after each turn. To retain information:
- $(keep) or $(keep 1 3) saves outputs to working memory
- $(note key fact here) records insights"""


def grammar_of(tools: Toolset) -> str:
    """The grammar with a line for each tool: the same tools give the same bytes."""
    commands = commands_of(tools)
    lines = [f"$({usage_of(name, parameters_of(tool.schema))}) {summary_of(tool)}" for name, tool in commands.items()]
    prose = ", ".join(["done", *(name for name in commands if name in PROSE)])
    memory = [_MEMORY] if "keep" in commands and "note" in commands else []
    session = _SESSION.format(most=MOST, prose=prose)
    return "\n".join(["<commands>", session, *memory, "", "$(done The answer is X because Y)", *lines, "</commands>"])
