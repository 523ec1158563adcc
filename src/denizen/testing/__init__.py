"""Doubles, loopback servers and conformance suites for tests of agents, models and tools."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denizen.testing.conformance_actions import ActionFormatConformance
    from denizen.testing.conformance_channel import ChannelConformance, FarEnd
    from denizen.testing.conformance_context import ContextPolicyConformance
    from denizen.testing.conformance_driver import DriverConformance
    from denizen.testing.conformance_host import HostConformance
    from denizen.testing.conformance_model import ModelConformance
    from denizen.testing.conformance_queue import TurnQueueConformance
    from denizen.testing.conformance_sandbox import SandboxConformance
    from denizen.testing.conformance_store import SessionStoreConformance
    from denizen.testing.conformance_tool import ToolConformance
    from denizen.testing.fake_clock import FakeClock
    from denizen.testing.loopback import (
        LoopbackAnthropic,
        LoopbackGemini,
        LoopbackOpenAI,
        LoopbackReply,
        LoopbackRequest,
        LoopbackResponses,
        Step,
        split,
    )
    from denizen.testing.memory_channel import MemoryChannel
    from denizen.testing.memory_queue import MemoryQueue
    from denizen.testing.scripted import ScriptedModel

__all__ = [
    "ActionFormatConformance",
    "ChannelConformance",
    "ContextPolicyConformance",
    "DriverConformance",
    "FakeClock",
    "FarEnd",
    "HostConformance",
    "LoopbackAnthropic",
    "LoopbackGemini",
    "LoopbackOpenAI",
    "LoopbackReply",
    "LoopbackRequest",
    "LoopbackResponses",
    "MemoryChannel",
    "MemoryQueue",
    "ModelConformance",
    "SandboxConformance",
    "ScriptedModel",
    "SessionStoreConformance",
    "Step",
    "ToolConformance",
    "TurnQueueConformance",
    "split",
]

_MODULES = {
    "ActionFormatConformance": "conformance_actions",
    "ChannelConformance": "conformance_channel",
    "ContextPolicyConformance": "conformance_context",
    "DriverConformance": "conformance_driver",
    "FakeClock": "fake_clock",
    "FarEnd": "conformance_channel",
    "HostConformance": "conformance_host",
    "MemoryChannel": "memory_channel",
    "MemoryQueue": "memory_queue",
    "ModelConformance": "conformance_model",
    "SandboxConformance": "conformance_sandbox",
    "ScriptedModel": "scripted",
    "SessionStoreConformance": "conformance_store",
    "ToolConformance": "conformance_tool",
    "TurnQueueConformance": "conformance_queue",
}


_RENAMED = {"Reply": "LoopbackReply", "Request": "LoopbackRequest"}
"""Names of 0.1, which go in 0.3."""


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"denizen.testing.{name} is now {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name not in __all__:
        raise AttributeError(f"module 'denizen.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"denizen.testing.{_MODULES.get(name, 'loopback')}"), name)
