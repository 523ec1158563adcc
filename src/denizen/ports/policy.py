"""The policy: which calls may run, and what the tool gets when one does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from denizen.config.rules import DeniedPaths
from denizen.config.settings import Rule
from denizen.messages import ToolCall
from denizen.ports.tool import Tool, ToolContext, Traits

Verdict = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may run, and why: a sentence for the person who is asked, or for the model that is refused.

    `unless_said`: nobody needs to be asked where all the arguments are the user's own words.
    """

    verdict: Verdict
    reason: str
    unless_said: bool = False


class Policy(Protocol):
    """Decides about calls, one by one.

    `approved` are the rules that the person approved for the session: they answer what would be asked, and override
    nothing that is denied.
    """

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
        """Whether the call may run while the model sees what has the traits `in_sight`.

        `chat` is the channel and the chat that the turn is for.
        """

    def arguments(self, call: ToolCall, tool: Tool, *, approved: Sequence[Rule] = ()) -> dict[str, Any]:
        """The call's arguments as the tool gets them, with the secrets that their marks stand for.

        Raises ToolRefused for a mark whose secret may not go there.
        """

    async def preview(self, tool: Tool, args: dict[str, Any], context: ToolContext) -> str:
        """The whole diff of what the call would do to files; empty where it would be refused, or nobody can tell."""

    def denied_paths(self, tool: Tool) -> DeniedPaths:
        """What the tool must not return, though a call doesn't name it."""

    def rule_for(self, call: ToolCall, tool: Tool, in_sight: Traits = Traits.NONE) -> Rule:
        """The narrow rule that allows this call always, also while that is in sight."""

    def at(self, workspace: Path) -> "Policy":
        """The same policy in another folder; what one of the two keeps holds for both."""

    def keep(self, rule: Rule) -> None:
        """Let the rule hold for ever: it is written into the user's configuration. Raises ConfigError."""
