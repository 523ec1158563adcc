"""bubblewrap and Landlock hold what a sandbox must."""

import dataclasses
import os
from pathlib import Path

import pytest

from denizen.config.settings import SandboxSettings
from denizen.testing.conformance_sandbox import Machine, NewSandbox, SandboxConformance
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, LandlockSharingProcesses
from denizen.tools.sandbox.launch import abi


class TestBubblewrap(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Bubblewrap


class TestLandlock(SandboxConformance):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return Landlock

    def test_a_command_runs_though_it_may_not_read_the_python_that_confines_it(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        environ = {"HOME": str(Path(os.__file__).parent), "PATH": os.environ["PATH"]}
        hidden = dataclasses.replace(machine, sandbox=Landlock(SandboxSettings(toolchains=[]), environ, tmp_path))
        assert hidden.shell(f"echo ran; cat {os.__file__} 2>/dev/null") == "ran\n"


class TestLandlockWithoutAProcessNamespace:
    machine = SandboxConformance.machine
    test_whoever_starts_a_command_is_not_limited_by_it = (
        SandboxConformance.test_whoever_starts_a_command_is_not_limited_by_it
    )
    test_a_thread_can_limit_itself = SandboxConformance.test_a_thread_can_limit_itself
    test_modes_and_times_of_other_files_stay = SandboxConformance.test_modes_and_times_of_other_files_stay

    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return LandlockSharingProcesses


class TestLandlockWithoutNamespaces(TestLandlock):
    @pytest.fixture
    def new_sandbox(self) -> NewSandbox:
        return LandlockAlone

    @pytest.mark.skipif(abi() < 6, reason="Landlock knows no signals before Linux 6.12, and says so")
    def test_other_processes_cannot_be_ended(self, machine: Machine) -> None:
        super().test_other_processes_cannot_be_ended(machine)

    def test_modes_and_times_of_other_files_stay(self, machine: Machine) -> None:
        assert "Permissions and times of other files can still be changed." in machine.sandbox.promises

    def test_the_processes_of_a_command_are_limited(self, new_sandbox: NewSandbox, machine: Machine) -> None:
        pytest.skip("without a namespace the kernel would count all of the user's processes")

    def test_files_next_to_the_repositorys_data_can_be_made_renamed_and_deleted(self, machine: Machine) -> None:
        said = machine.shell("echo x > new; rm README; mv src gone; echo x > README; echo x > src/new; mv README src/")
        assert said.count("Permission denied") == 4
        assert sorted(path.name for path in machine.workspace.iterdir()) == [".git", "README", "denizen.toml", "src"]
        assert (machine.workspace / "README").read_text() == "x\n"
        assert (machine.workspace / "src/new").read_text() == "x\n"
        assert "none made, renamed or deleted" in machine.sandbox.promises
        notice = machine.sandbox.wrap(["true"], workspace=machine.workspace).notice
        assert "Commands can't make, rename or delete files in the workspace's root" in notice
        assert "install bubblewrap" in notice
