"""bubblewrap and Landlock hold what a sandbox must."""

import pytest

from denizen.testing.conformance_sandbox import Machine, NewSandbox, SandboxConformance
from denizen.tools.sandbox import Bubblewrap, Landlock
from denizen.tools.sandbox.launch import abi


class TestBubblewrap(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Bubblewrap


class TestLandlock(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Landlock

    @pytest.mark.skipif(abi() < 6, reason="Landlock knows no signals before Linux 6.12, and says so")
    def test_other_processes_cannot_be_ended(self, machine: Machine) -> None:
        super().test_other_processes_cannot_be_ended(machine)
