"""Decides which calls may run: by the user's rules, else by default; the rule of two and `--read-only` come first."""

import copy
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.redact import Redactor
from denizen.config.rules import DeniedPaths, all_arguments, deciding_rule, literally, main_argument, plain_url
from denizen.config.settings import PolicySettings, Rule
from denizen.config.write import add_rule
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports.policy import Decision
from denizen.ports.sandbox import Sandbox
from denizen.ports.tool import (
    CautiousTool,
    PlanningTool,
    ReplyingTool,
    Tool,
    ToolContext,
    Traits,
    is_harmless,
    only_reads,
)
from denizen.tools.editing.texts import difference
from denizen.tools.files.changes import load_or_empty
from denizen.tools.files.workspace import Workspace
from denizen.tools.policy.call_files import files_of
from denizen.tools.policy.secrets import restore_secrets
from denizen.trusted.autorun import Autorun

_MAX_SHOWN_CHARS = 200  # characters of a call's argument that a reason shows
_OUTWARD_TRAITS = Traits.NETWORK | Traits.SENDS
_PRIVATE_AND_UNTRUSTED = Traits.UNTRUSTED | Traits.PRIVATE


class RulePolicy:
    """Decides by the user's rules first, then by default, and over both by the rule of two (`ports.Policy`).

    Commands run in `sandbox`, and may use the network there with `network`. Paths in rules are those of
    `workspace`; with `restricted=False` files outside it may be read, too. `home` holds the configuration that rules
    are kept in; `own_folder` the user's files, which sessions begin with. Settings of git are those of `environ`
    (default: the process's).
    """

    def __init__(
        self,
        settings: PolicySettings,
        *,
        sandbox: Sandbox,
        network: bool = False,
        workspace: Path | None = None,
        restricted: bool = True,
        home: Path | None = None,
        redactor: Redactor | None = None,
        own_folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        commands: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._commands = commands
        self._rules = [*settings.rules]
        self._auto_approve = settings.auto_approve
        self._sandbox = sandbox
        self._network = network
        self._workspace = workspace
        self._restricted = restricted
        self._home = home
        self._redactor = redactor
        self._own_folder = own_folder
        self._environ = os.environ if environ is None else environ
        self._autorun = Autorun(workspace, self._environ, commands) if workspace else None

    def decide(
        self,
        call: ToolCall,
        tool: Tool,
        in_sight: Traits,
        *,
        approved: Sequence[Rule] = (),
        read_only: bool = False,
        chat: tuple[str, str] = ("", ""),
    ) -> Decision:
        """Whether the call may run while the model sees content with the traits `in_sight`."""
        if read_only and not is_harmless(tool):
            return Decision("deny", f"{tool.name} refused: read-only session.")
        if rule := self._deciding(self._rules, call):
            decision = self._by_rule(rule, call)
        else:
            decision = self._by_default(call, tool, chat)
        if decision.verdict == "ask" and self._deciding(approved, call):
            decision = Decision("allow", "The user approved such calls for the session.")
        is_exempt = _is_reply(call, tool, chat) or _exact_rule(call) in [*self._rules, *approved]
        if decision.verdict != "allow" or is_exempt:
            return decision
        return self._by_sight(call, tool, in_sight) or decision

    def arguments(self, call: ToolCall, tool: Tool, *, approved: Sequence[Rule] = ()) -> dict[str, Any]:
        """The call's arguments with the secrets that their marks stand for (`restore_secrets`)."""
        if self._workspace is None or self._redactor is None or only_reads(tool):
            return call.args

        def lets_in(mark: str) -> bool:
            """A rule for the path lets a secret in if the tool only writes; otherwise the rule must name it."""
            rule = self._deciding([*self._rules, *approved], call)
            if rule is None or rule.decide != "allow":
                return False
            only_writes = Traits.WRITES in tool.traits and not tool.traits & (_OUTWARD_TRAITS | Traits.EXECUTES)
            return mark.strip("[]") in rule.match or (only_writes and rule.match.strip("*") != "")

        files = Workspace(self._workspace, restricted=self._restricted, private=self._home)
        return restore_secrets(call, files, self._redactor, lets_in)

    async def preview(self, tool: Tool, args: dict[str, Any], context: ToolContext) -> str:
        """The whole diff of what the call would do to files; empty if it would be refused, or it isn't known."""
        if not (isinstance(tool, PlanningTool) and tool.plans):
            return ""
        planned: dict[str, bytes | None] = {}
        try:
            await tool.run(args, dataclasses.replace(context, planned=planned))
            diffs: list[str] = []
            for path, data in planned.items():
                old = load_or_empty(Workspace.of(context), path)
                diff = difference(old.text, dataclasses.replace(old, data=data).text, most=sys.maxsize).diff
                if not diff:
                    return ""
                names = f"--- {'(new)' if old.data is None else path}\n+++ {'(deleted)' if data is None else path}"
                diffs.append(f"{names}\n{diff}")
        except ToolRefused:
            return ""
        return "\n".join(diffs)

    def denied_paths(self, tool: Tool) -> DeniedPaths:
        """The paths that the tool must not return, even if no call names them."""
        return DeniedPaths(self._rules, tool.name, self._workspace) if self._workspace else DeniedPaths()

    def rule_for(self, call: ToolCall, tool: Tool, in_sight: Traits = Traits.NONE) -> Rule:
        """The narrow rule that allows this call always.

        It holds for the very command or path, or the pages of the very site; of what sends, changes something for good,
        leaves the sandbox, or is asked about because of what is `in_sight`, for the very same arguments.
        """
        exact = _exact_rule(call)
        if tool.traits & (Traits.SENDS | Traits.CHANGES) or _leaves_sandbox(call):
            return exact
        argument = main_argument(call.args)
        url = plain_url(argument) if "url" in call.args else ""
        pattern = "/".join([*literally(url).split("/")[:3], "*"]) if url else literally(argument)
        rule = Rule(tool=call.name, match=pattern, decide="allow")
        return rule if self.decide(call, tool, in_sight, approved=[rule]).verdict == "allow" else exact

    def at(self, workspace: Path) -> "RulePolicy":
        """The same policy in another folder; what one of the two keeps holds for both."""
        there = copy.copy(self)
        there._workspace = workspace  # noqa: SLF001 (its own class)
        there._autorun = Autorun(workspace, self._environ, self._commands)  # noqa: SLF001
        return there

    def keep(self, rule: Rule) -> None:
        """Write the rule into the home's configuration. Raises ConfigError."""
        if self._home:
            add_rule(self._home, rule)
        self._rules.append(rule)

    def _deciding(self, rules: Sequence[Rule], call: ToolCall) -> Rule | None:
        paths = files_of(call, self._workspace) if rules and self._workspace else ()
        if _leaves_sandbox(call):  # a rule that allows a command doesn't mean it outside the sandbox
            rules = [rule for rule in rules if rule.decide != "allow" or rule.match.startswith("{")]
        return deciding_rule(rules, call.name, call.args, self._workspace, paths)

    def _by_rule(self, rule: Rule, call: ToolCall) -> Decision:
        name = f"{rule.decide} {rule.tool} {rule.match!r}"
        if rule.decide == "allow":
            return Decision("allow", f"Your rule allows it: {name}.")
        if rule.decide == "deny":
            return Decision("deny", f"The user's policy denies it ({name}): do it another way, or say what you need.")
        if rule in self._rules:
            return Decision("ask", f"{_allow(call)} Your rule asks: {name}.")
        may_cover = f"your rule about {rule.tool} {rule.match!r} may cover it"
        return Decision("ask", f"{_allow(call)} Part of the command is only known when it runs, and {may_cover}.")

    def _by_sight(self, call: ToolCall, tool: Tool, in_sight: Traits) -> Decision | None:
        """The question that an allowed call still needs because of what the model sees; None: it needs none."""
        runs_outside = _leaves_sandbox(call) or (
            Traits.EXECUTES in tool.traits and (self._network or not self._sandbox.confines)
        )
        if _PRIVATE_AND_UNTRUSTED in in_sight and (tool.traits & _OUTWARD_TRAITS or runs_outside):
            why = "The agent has private data in sight, and text that others wrote, which may ask for that data."
            return Decision("ask", f"{_allow(call)} {why}")
        if Traits.UNTRUSTED in in_sight and self._begins_sessions(call, tool):
            why = "Later sessions begin with this file, and text that others wrote is in sight."
            return Decision("ask", f"{_allow(call)} {why}")
        if Traits.UNTRUSTED in in_sight and Traits.CHANGES in tool.traits:
            why = "It can't be undone, and the agent has text in sight that others wrote."
            return Decision("ask", f"{_allow(call)} {why}", unless_said=True)
        return None

    def _by_default(self, call: ToolCall, tool: Tool, chat: tuple[str, str]) -> Decision:
        if Traits.EXECUTES in tool.traits and not self._sandbox.confines:
            return Decision("ask", f"{_allow(call)} It runs with all your rights: this machine has no sandbox.")
        if _leaves_sandbox(call):
            return Decision("ask", f"{_allow(call)} It runs outside the sandbox, with all your rights.")
        if _is_reply(call, tool, chat):
            return Decision("allow", f"The default policy allows {tool.name} to the chat that is answered.")
        if Traits.SENDS in tool.traits:
            return Decision("ask", f"{_allow(call)} It sends data to others.")
        if Traits.NETWORK in tool.traits:
            return Decision("ask", f"{_allow(call)} It uses the network.")
        if isinstance(tool, CautiousTool) and tool.needs_yes(call.args):
            return Decision("ask", _allow(call))
        if self._workspace and Traits.WRITES in tool.traits:
            held = [name for name in files_of(call, self._workspace) if self._autorun and self._autorun.includes(name)]
            if held:
                return Decision("ask", f"{_allow(call)} Other programs run or follow {held[0]} by themselves.")
        if self._workspace and self._auto_approve != "high":  # which nothing exceeds, and judging takes time
            from denizen.tools.policy.risk import exceeds, risk_of

            risk = risk_of(call.name, call.args, self._workspace)
            if risk and exceeds(risk, self._auto_approve):
                return Decision("ask", f"{_allow(call)} Its risk is {risk.level}: {risk.why}.")
        return Decision("allow", f"The default policy allows {tool.name}.")

    def _begins_sessions(self, call: ToolCall, tool: Tool) -> bool:
        """Whether it writes what later sessions begin with: the user's files, the daily notes, or a skill."""
        if not (self._workspace and self._own_folder and Traits.WRITES in tool.traits):
            return False
        root = os.path.realpath(self._own_folder)
        for name in files_of(call, self._workspace):
            place = os.path.realpath(f"{self._workspace}/{name}") if "\0" not in name else ""
            names = Path(os.path.relpath(place, root)).parts if place.startswith(f"{root}/") else ()
            if names[:1] in {("memory",), ("skills",)} or (len(names) == 1 and names[0].endswith(".md")):
                return True
        return False


def _exact_rule(call: ToolCall) -> Rule:
    """The rule that allows these very arguments: nothing in sight can want more than the person has seen."""
    return Rule(tool=call.name, match=literally(all_arguments(call.args)), decide="allow")


def _leaves_sandbox(call: ToolCall) -> bool:
    return call.args.get("unsandboxed", False) is not False


def _is_reply(call: ToolCall, tool: Tool, chat: tuple[str, str]) -> bool:
    return Traits.SENDS in tool.traits and isinstance(tool, ReplyingTool) and tool.is_reply(call.args, chat)


def _allow(call: ToolCall) -> str:
    """The question about a call, such as `Allow pay(amount=5)?`; a reason follows."""
    argument = main_argument(call.args)
    if argument == all_arguments(call.args):
        argument = ", ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in call.args.items())
    argument = " ".join(argument.split())
    if len(argument) > _MAX_SHOWN_CHARS:
        argument = f"{argument[: _MAX_SHOWN_CHARS - 1]}…"
    return f"Allow {call.name}({argument})?"
