"""`edit_symbol`: delete, replace or move a function, class or other symbol, or insert code next to it."""

from dataclasses import dataclass
from typing import Literal

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.structure import Symbol
from denizen.tools.files.changes import change, load
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.tools.programs.jq import filtered
from denizen.worlds.code.tools.draft import Draft
from denizen.worlds.code.tools.symbols.skeleton import line_range
from denizen.worlds.code.tools.symbols.target import find_target

MAX_LISTED = 5  # lines above a symbol that the result lists
Action = Literal["delete", "replace", "insert", "move"]


@tool(traits=Traits.WRITES, plans=True, shell_names=("edit",))
async def edit_symbol(
    turn: ToolContext,
    target: str,
    action: Action,
    content: str = "",
    *,
    before: bool = False,
    after: bool = False,
    jq: str = "",
) -> ToolResult:
    """Change code by symbol, with its decorators and comments above. Nothing is written that breaks the grammar.

    Args:
        target: `FILE/Symbol`, as `view` shows it
        content: The new code, above which comments and decorators stay unless it has some; for move: `FILE[/Symbol]`
        before: Insert or move before that symbol
        after: The default
        jq: Filter on the structured result
    """
    if before and after:
        raise ToolRefused("it can't be both before and after")
    edit = _Edit(Workspace.of(turn), target, content, before)
    return await filtered(await run_in_thread(None, edit.run, action), jq)


@dataclass(frozen=True, slots=True)
class _Edit:
    workspace: Workspace
    target: str
    content: str
    before: bool

    def run(self, action: Action) -> ToolResult:
        if action in {"replace", "insert"} and not self.content.strip():
            raise ToolRefused(f"{action} needs content: the new code")
        draft, name = self._open(self.target)
        if action == "insert":
            symbol = draft.find(name) if name else None
            new = draft.insert(symbol, self.content, before=self.before)
            if symbol:
                return self._save(f"Inserted {'before' if self.before else 'after'} {draft.path}/{symbol.path}", new)
            return self._save(f"Inserted at the {'beginning' if self.before else 'end'} of {draft.path}", new)
        if not name:
            raise ToolRefused(f"{draft.path} is a file; name the symbol in it: {draft.path}/SYMBOL")
        symbol = draft.find(name)
        match action:
            case "delete":
                if self.content:
                    raise ToolRefused("delete takes no content; to put other code in its place, use replace")
                return self._save(f"Deleted {_named(draft, symbol)}", draft.delete(symbol))
            case "replace":
                new = draft.replace(symbol, self.content)
                if new.lines == draft.lines:
                    raise ToolRefused(f"{draft.path}/{symbol.path} is already like that")
                above, given = draft.above(symbol), {line.strip() for line in self.content.splitlines()}
                removed = [line for line in above if new.text.count(line) < draft.text.count(line)]
                kept = [line for line in above if line not in given and line not in removed]
                report = f"Replaced {_named(draft, symbol)}"
                for what, lines in (("kept above it", kept), ("removed from above it", removed)):
                    shown = ", ".join(lines[:MAX_LISTED]) + (", …" if len(lines) > MAX_LISTED else "")
                    report += f"; {what}: {shown}" if lines else ""
                return self._save(report, new)
            case "move":
                return self._move(draft, symbol)

    def _move(self, draft: Draft, symbol: Symbol) -> ToolResult:
        if not self.content:
            raise ToolRefused("move needs a destination: FILE, or FILE/SYMBOL to be put next to it")
        other, name = self._open(self.content)
        if other.language != draft.language:
            raise ToolRefused(f"{other.path} is written in {other.language}, not in {draft.language}")
        content, rest = draft.content(symbol), draft.delete(symbol)
        neighbour = other.find(name) if name else None
        if other.path != draft.path:
            drafts = [rest, other.insert(neighbour, content, before=self.before)]
        else:
            if neighbour:  # in the file without the moved symbol
                if symbol.start <= neighbour.start and neighbour.end <= symbol.end:
                    raise ToolRefused(f"{symbol.path} can't be moved to a place inside of itself")
                same = (neighbour.path, neighbour.signature)
                found = [each for each in rest.outline.symbols if (each.path, each.signature) == same]
                if not found:
                    raise ToolRefused(f"{neighbour.path} would disappear with {symbol.path}; name another symbol")
                before = [each for each in found if each.start <= neighbour.start]
                neighbour = max(before or found, key=lambda each: each.start)
            drafts = [rest.insert(neighbour, content, before=self.before)]
        where = "before" if self.before else "after"
        to = f"{where} {other.path}/{neighbour.path}" if neighbour else f"to {other.path}"
        return self._save(f"Moved {_named(draft, symbol)} {to}; imports and callers are unchanged", *drafts)

    def _open(self, path: str) -> tuple[Draft, str]:
        """A file, and the name of a symbol in it."""
        target = find_target(self.workspace, path)
        if target.is_folder:
            raise target.missing or ToolRefused(f"{target.path} is a folder; name FILE/SYMBOL")
        return Draft.of(load(self.workspace, target.address)), target.symbol

    def _save(self, report: str, *drafts: Draft) -> ToolResult:
        change(self.workspace, {draft.path: draft.checked() for draft in drafts})
        files = [{"path": draft.path, **draft.difference().details()} for draft in drafts]
        unchecked = [draft.path for draft in drafts if draft.outline.problems]
        if unchecked:
            report += f"\n[{', '.join(unchecked)} broke the grammar before, and still does: check what was written]"
        return result(report, **files[0]) if len(files) == 1 else result(report, files=files)


def _named(draft: Draft, symbol: Symbol) -> str:
    return f"{draft.path}/{symbol.path}, {'line' if symbol.first == symbol.last else 'lines'} {line_range(symbol)}"
