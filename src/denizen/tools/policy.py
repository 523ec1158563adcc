"""What may run: the user's rules, else the default policy, and over both the rule of two and `--read-only`."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from denizen.config.rules import DeniedPaths, all_arguments, deciding_rule, literally, main_argument, plain_url
from denizen.config.settings import PolicySettings, Rule
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports import Tool, Traits, is_harmless
from denizen.tools.files.autorun import is_autorun
from denizen.tools.patching.read import FilePatch, read_patch
from denizen.tools.risk import exceeds, file_of, risk_of

Verdict = Literal["allow", "ask", "deny"]

_MOST_SHOWN = 200
"""Characters of a call's argument that a reason shows."""
_CHANGES = Traits.WRITES | Traits.EXECUTES | Traits.SENDS
_HARMLESS = Traits.READS | Traits.REPEATABLE  # what may be done twice has changed nothing
_REACHES_OUT = Traits.NETWORK | Traits.SENDS
_BOTH = Traits.UNTRUSTED | Traits.PRIVATE


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may run, and why: a sentence for the person who is asked, or for the model that is refused."""

    verdict: Verdict
    reason: str


class Policy:
    """Decides about calls, one by one.

    `confined`: commands run in a sandbox; `network`: there they may use the network. `read_only` refuses everything
    but reads. `approved` are the rules that the person approved for this session: they answer what would be asked, and
    override nothing that is denied. Paths in rules are those of `workspace`.
    """

    def __init__(
        self,
        settings: PolicySettings,
        *,
        confined: bool,
        network: bool = False,
        read_only: bool = False,
        approved: Sequence[Rule] = (),
        workspace: Path | None = None,
    ) -> None:
        self._rules = settings.rules
        self._auto_approve = settings.auto_approve
        self._approved = approved
        self._confined = confined
        self._network = network
        self._read_only = read_only
        self._workspace = workspace

    def decide(self, call: ToolCall, tool: Tool, seen: Traits) -> Decision:
        """Whether the call may run where the model has `seen` what has those traits."""
        if self._read_only and not is_harmless(tool):
            return Decision("deny", f"This run is read-only, and {tool.name} is more than a read.")
        rule = self._deciding(self._rules, call)
        decision = _by_rule(rule, call) if rule else self._by_default(call, tool)
        if decision.verdict == "ask" and self._was_approved(call):
            decision = Decision("allow", "The user approved such calls for the session.")
        if decision.verdict == "allow" and _BOTH in seen and (self._reaches_out(tool) or _leaves_sandbox(call)):
            return Decision(
                "ask",
                "The agent has private data in sight, and text that others wrote, which may want it passed on: "
                f"may {_shown(call)} run?",
            )
        return decision

    def denied_paths(self, tool: Tool) -> DeniedPaths:
        """What the tool must not return, though a call doesn't name it."""
        return DeniedPaths(self._rules, tool.name, self._workspace) if self._workspace else DeniedPaths()

    def lets_in(self, call: ToolCall, tool: Tool, mark: str) -> bool:
        """Whether a rule lets the secret of this mark go where the call takes it.

        A rule for the path does where all that the tool does is write; else it must name the secret.
        """
        rule = self._deciding([*self._rules, *self._approved], call)
        if rule is None or rule.decide != "allow":
            return False
        only_writes = Traits.WRITES in tool.traits and not tool.traits & (_REACHES_OUT | Traits.EXECUTES)
        return mark.strip("[]") in rule.match or (only_writes and rule.match.strip("*") != "")

    def _was_approved(self, call: ToolCall) -> bool:
        return self._deciding(self._approved, call) is not None

    def _deciding(self, rules: Sequence[Rule], call: ToolCall) -> Rule | None:
        paths = files_of(call, self._workspace) if rules and self._workspace else ()
        return deciding_rule(_holding(rules, call), call.name, call.args, self._workspace, paths)

    def _by_default(self, call: ToolCall, tool: Tool) -> Decision:
        if Traits.EXECUTES in tool.traits and not self._confined:
            return Decision("ask", f"There is no sandbox here: may {_shown(call)} run with all your rights?")
        if _leaves_sandbox(call):
            return Decision("ask", f"May {_shown(call)} run outside the sandbox, with all your rights?")
        if Traits.SENDS in tool.traits:
            return Decision("ask", f"May {_shown(call)} send this to others?")
        if Traits.NETWORK in tool.traits:
            return Decision("ask", f"May {_shown(call)} use the network?")
        if self._workspace and Traits.WRITES in tool.traits:
            held = [name for name in files_of(call, self._workspace) if is_autorun(self._workspace, name)]
            if held:
                return Decision("ask", f"May {_shown(call)} run? Other programs run or follow {held[0]} by themselves.")
        if self._workspace and self._auto_approve != "high":  # which nothing exceeds, and judging takes time
            risk = risk_of(call.name, call.args, self._workspace)
            if risk and exceeds(risk, self._auto_approve):
                return Decision("ask", f"May {_shown(call)} run? Its risk is {risk.level}: {risk.why}.")
        return Decision("allow", f"The default policy allows {tool.name}.")

    def _reaches_out(self, tool: Tool) -> bool:
        commands_reach_out = self._network or not self._confined
        return bool(tool.traits & _REACHES_OUT or (commands_reach_out and Traits.EXECUTES in tool.traits))


def rule_for(call: ToolCall, tool: Tool) -> Rule:
    """The narrow rule that allows this call always.

    It holds for the very command or path, or the pages of the very site; of what sends, or leaves the sandbox, for the
    very same arguments.
    """
    if Traits.SENDS in tool.traits or _leaves_sandbox(call):
        return Rule(tool=tool.name, match=literally(all_arguments(call.args)), decide="allow")
    argument = main_argument(call.args)
    url = plain_url(argument) if "url" in call.args else ""
    pattern = "/".join([*literally(url).split("/")[:3], "*"]) if url else literally(argument)
    return Rule(tool=tool.name, match=pattern, decide="allow")


def files_of(call: ToolCall, workspace: Path) -> Sequence[str]:
    """The files that a call is about: its `path`, those of a patch, and of symbols."""
    args = {name: value for name, value in call.args.items() if isinstance(value, str)}
    targets = [args[name] for name in ("path", "target") if name in args]
    targets += [args["content"]] if args.get("action") == "move" and "content" in args else []
    names = [*targets, *(file_of(target, workspace) for target in targets), *_patched(args.get("patch", ""), workspace)]
    return [*dict.fromkeys(names)]


def _patched(patch: str, workspace: Path) -> Sequence[str]:
    """The files of a patch; none of one that can't be read, and so does nothing."""
    try:
        files = read_patch(patch) if patch else []
    except ToolRefused:
        return ()
    return [path for file in files for path in meant_by_patch(file, workspace)]


def meant_by_patch(file: FilePatch, workspace: Path) -> list[str]:
    """The paths that a part of a patch is about."""

    def is_there(name: str) -> bool:
        return os.path.exists(f"{workspace}/{name}")  # noqa: PTH110 (may be no path at all)

    return [file.meant(name, is_there) for name in (file.old, file.new) if name is not None]


def _leaves_sandbox(call: ToolCall) -> bool:
    return call.args.get("unsandboxed", False) is not False


def _holding(rules: Sequence[Rule], call: ToolCall) -> Sequence[Rule]:
    """The rules that say something of a call: one that allows a command doesn't mean it outside the sandbox."""
    if not _leaves_sandbox(call):
        return rules
    return [rule for rule in rules if rule.decide != "allow" or rule.match.startswith("{")]


def _by_rule(rule: Rule, call: ToolCall) -> Decision:
    name = f"{rule.decide} {rule.tool} {rule.match!r}"
    match rule.decide:
        case "allow":
            return Decision("allow", f"Your rule allows it: {name}.")
        case "ask":
            return Decision("ask", f"Your rule ({name}) asks: may {_shown(call)} run?")
        case "deny":
            return Decision("deny", f"The user's policy denies it ({name}): do it another way, or say what you need.")


def _shown(call: ToolCall) -> str:
    argument = " ".join(main_argument(call.args).split())
    return f"{call.name} ({argument if len(argument) <= _MOST_SHOWN else argument[: _MOST_SHOWN - 1] + '…'})"
