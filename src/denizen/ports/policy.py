"""The policy: which calls may run, and what the tool gets when one does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from denizen.config.rules import DeniedPaths
from denizen.config.settings import Rule
from denizen.messages import ToolCall
from denizen.ports.tool import Tool, ToolContext, Traits

Verdict = Literal["allow", "ask", "deny"]


class Decision(msgspec.Struct, frozen=True):
    """Whether a call may run, and why: a sentence for the person who is asked, or for the model that is refused.

    `unless_said`: nobody needs to be asked if all the arguments are the user's own words.
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
        """The diff of what the call would do to files; empty if it would be refused, or if it isn't known."""

    def denied_paths(self, tool: Tool) -> DeniedPaths:
        """Paths that the tool must not return, also if a call doesn't name them."""

    def rule_for(self, call: ToolCall, tool: Tool, in_sight: Traits = Traits.NONE) -> Rule:
        """A narrow rule that always allows this call, also with those traits in sight."""

    def at(self, workspace: Path) -> "Policy":
        """The same policy in another folder; what one of the two keeps holds for both."""

    def keep(self, rule: Rule) -> None:
        """Write the rule into the user's configuration, for good. Raises ConfigError."""
