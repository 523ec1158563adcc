"""`edit_symbol`: a function, class or other symbol deleted, replaced, moved, or new code put beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from denizen.cancellation import run_in_thread
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.structure import Symbol
from denizen.tools.editing.draft import Draft
from denizen.tools.files.changes import change, load
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.tools.programs.jq import filtered
from denizen.tools.symbols.skeleton import span
from denizen.tools.symbols.target import find_target

MOST_LISTED = 5
"""Lines above a symbol that the answer names."""
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
    call = _Call(Workspace.of(turn), target, content, before)
    return await filtered(await run_in_thread(None, call.run, action), jq)


@dataclass(frozen=True, slots=True)
class _Call:
    workspace: Workspace
    target: str
    content: str
    before: bool

    def run(self, action: Action) -> ToolResult:
        draft, name = self._open(self.target)
        if action == "insert":
            return self._insert(draft, draft.find(name) if name else None)
        if not name:
            raise ToolRefused(f"{draft.path} is a file; name the symbol in it: {draft.path}/SYMBOL")
        symbol = draft.find(name)
        match action:
            case "delete":
                return self._delete(draft, symbol)
            case "replace":
                return self._replace(draft, symbol)
            case "move":
                return self._move(draft, symbol)

    def _delete(self, draft: Draft, symbol: Symbol) -> ToolResult:
        if self.content:
            raise ToolRefused("delete takes no content; to put other code in its place, use replace")
        return self._save(f"Deleted {_named(draft, symbol)}", draft.delete(symbol))

    def _replace(self, draft: Draft, symbol: Symbol) -> ToolResult:
        new = draft.replace(symbol, self._code("replace"))
        if new.lines == draft.lines:
            raise ToolRefused(f"{draft.path}/{symbol.path} is like that already")
        above, given = draft.above(symbol), {line.strip() for line in self.content.splitlines()}
        gone = [line for line in above if new.text.count(line) < draft.text.count(line)]
        kept = [line for line in above if line not in given and line not in gone]
        said = f"Replaced {_named(draft, symbol)}{_listed('kept above it', kept)}{_listed('gone from above it', gone)}"
        return self._save(said, new)

    def _insert(self, draft: Draft, symbol: Symbol | None) -> ToolResult:
        beside = f"{draft.path}/{symbol.path}" if symbol else draft.path
        where = "before" if self.before else "behind"
        said = f"Inserted {where} {beside}" if symbol else f"Inserted at the {_end(self.before)} of {beside}"
        return self._save(said, draft.insert(symbol, self._code("insert"), before=self.before))

    def _move(self, draft: Draft, symbol: Symbol) -> ToolResult:
        if not self.content:
            raise ToolRefused("move needs to know where to: FILE, or FILE/SYMBOL to be put beside it")
        other, name = self._open(self.content)
        if other.language != draft.language:
            raise ToolRefused(f"{other.path} is written in {other.language}, not in {draft.language}")
        content, rest = draft.content(symbol), draft.delete(symbol)
        beside = other.find(name) if name else None
        if other.path != draft.path:
            drafts = [rest, other.insert(beside, content, before=self.before)]
        else:
            drafts = [rest.insert(beside and _moved(rest, symbol, beside), content, before=self.before)]
        to = f"{'before' if self.before else 'behind'} {other.path}/{beside.path}" if beside else f"to {other.path}"
        return self._save(f"Moved {_named(draft, symbol)} {to}; imports and callers are as they were", *drafts)

    def _open(self, path: str) -> tuple[Draft, str]:
        """A file, and the name of a symbol in it."""
        target = find_target(self.workspace, path)
        if target.is_folder:
            raise target.missing or ToolRefused(f"{target.path} is a folder; name FILE/SYMBOL")
        return Draft.of(load(self.workspace, target.address)), target.symbol

    def _code(self, action: str) -> str:
        if not self.content.strip():
            raise ToolRefused(f"{action} needs content: the new code")
        return self.content

    def _save(self, said: str, *drafts: Draft) -> ToolResult:
        change(self.workspace, {draft.path: draft.checked() for draft in drafts})
        files = [{"path": draft.path, **draft.difference().details()} for draft in drafts]
        unchecked = [draft.path for draft in drafts if draft.outline.problems]
        if unchecked:
            said += f"\n[{', '.join(unchecked)} broke the grammar before, and still does: check what was written]"
        return result(said, **files[0]) if len(files) == 1 else result(said, files=files)


def _named(draft: Draft, symbol: Symbol) -> str:
    return f"{draft.path}/{symbol.path}, {'line' if symbol.first == symbol.last else 'lines'} {span(symbol)}"


def _listed(what: str, lines: Sequence[str]) -> str:
    shown = ", ".join(lines[:MOST_LISTED]) + (", …" if len(lines) > MOST_LISTED else "")
    return f"; {what}: {shown}" if lines else ""


def _end(before: bool) -> str:
    return "beginning" if before else "end"


def _moved(rest: Draft, gone: Symbol, beside: Symbol) -> Symbol:
    """The symbol `beside` in the file without the one that is gone."""
    if gone.start <= beside.start and beside.end <= gone.end:
        raise ToolRefused(f"{gone.path} can't be moved to a place inside of itself")
    found = [each for each in rest.outline.symbols if (each.path, each.signature) == (beside.path, beside.signature)]
    before = [each for each in found if each.start <= beside.start]
    if not found:
        raise ToolRefused(f"{beside.path} would go away with {gone.path}; name another symbol")
    return max(before or found, key=lambda each: each.start)
