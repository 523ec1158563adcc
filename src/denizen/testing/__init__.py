"""What tests of agents, models and tools need: doubles, loopback servers, and the suites that every adapter passes."""

from denizen.testing.fake_clock import FakeClock
from denizen.testing.scripted import ScriptedModel

__all__ = ["FakeClock", "ScriptedModel"]
