"""bubblewrap and Landlock hold what a sandbox must."""

import pytest

from denizen.testing.conformance_sandbox import NewSandbox, SandboxConformance
from denizen.tools.sandbox import Bubblewrap, Landlock


class TestBubblewrap(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Bubblewrap


class TestLandlock(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Landlock
