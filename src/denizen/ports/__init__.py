"""The seams: the protocols that models, contexts, actions, tools, sessions and hosts fulfil, one module each."""

from denizen.ports.actions import MISUSED, NOTHING_SEEN, ActionFormat, Directive, Intent, StreamFilter
from denizen.ports.budget import Budget
from denizen.ports.channel import Accept, Channel, ChannelLimits, Sent
from denizen.ports.checkpoints import Checkpoints, Conflict, named
from denizen.ports.context import SURELY_HELD, ContextPolicy, TraitedContext, View, WorldLine
from denizen.ports.driver import Action, Backtrack, Driver, Escalate, GiveUp, Iteration, Proceed
from denizen.ports.hooks import HookAnswer, HookEvent, Hooks
from denizen.ports.host import Answer, Ask, Control, FollowUp, Interrupt, Parked, Steer, Stop, TurnIO
from denizen.ports.memory import UNTRUSTED, Fact, Memory, Scope, traits_of_facts
from denizen.ports.model import (
    INVALID_JSON,
    AskModel,
    KnownModel,
    Level,
    Limits,
    Model,
    ModelRequest,
    Reasoning,
    Schema,
)
from denizen.ports.policy import Decision, Policy, Verdict
from denizen.ports.prompt import PromptBuilder, SystemPrompt
from denizen.ports.queue import InboundMessage, OutboundMessage, ParkedTurn, QueuedTurn, TurnHandler, TurnQueue
from denizen.ports.sandbox import Sandbox, Sandboxed
from denizen.ports.session import Session, SessionInfo, SessionStore
from denizen.ports.tool import (
    CallingTool,
    CautiousTool,
    CheckedTool,
    DeferredTool,
    PlanningTool,
    Tool,
    ToolContext,
    Toolset,
    Traits,
    is_harmless,
    only_reads,
)
from denizen.seen import SeenText

__all__ = [
    "INVALID_JSON",
    "MISUSED",
    "NOTHING_SEEN",
    "SURELY_HELD",
    "UNTRUSTED",
    "Accept",
    "Action",
    "ActionFormat",
    "Answer",
    "Ask",
    "AskModel",
    "Backtrack",
    "Budget",
    "CallingTool",
    "CautiousTool",
    "Channel",
    "ChannelLimits",
    "CheckedTool",
    "Checkpoints",
    "Conflict",
    "ContextPolicy",
    "Control",
    "Decision",
    "DeferredTool",
    "Directive",
    "Driver",
    "Escalate",
    "Fact",
    "FollowUp",
    "GiveUp",
    "HookAnswer",
    "HookEvent",
    "Hooks",
    "InboundMessage",
    "Intent",
    "Interrupt",
    "Iteration",
    "KnownModel",
    "Level",
    "Limits",
    "Memory",
    "Model",
    "ModelRequest",
    "OutboundMessage",
    "Parked",
    "ParkedTurn",
    "PlanningTool",
    "Policy",
    "Proceed",
    "PromptBuilder",
    "QueuedTurn",
    "Reasoning",
    "Sandbox",
    "Sandboxed",
    "Schema",
    "Scope",
    "SeenText",
    "Sent",
    "Session",
    "SessionInfo",
    "SessionStore",
    "Steer",
    "Stop",
    "StreamFilter",
    "SystemPrompt",
    "Tool",
    "ToolContext",
    "Toolset",
    "TraitedContext",
    "Traits",
    "TurnHandler",
    "TurnIO",
    "TurnQueue",
    "Verdict",
    "View",
    "WorldLine",
    "is_harmless",
    "named",
    "only_reads",
    "traits_of_facts",
]
