"""The conformance suite of sandboxes: tests to subclass, with real commands that try to get out."""
# ruff: noqa: S101 - tests assert

import contextlib
import dataclasses
import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.ports import Sandbox
from denizen.tools.sandbox import problem_with

NewSandbox = Callable[[SandboxSettings, Mapping[str, str], Path], Sandbox]

_PYTHON = f"{sys.base_prefix}/bin/python3"
_GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
_SETTINGS = SandboxSettings(toolchains=[".cargo", ".pyenv", sys.base_prefix], environment=["WANTED"])


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's home with keys and toolchains, Denizen's own home, a repository to work in, and a place outside it."""

    user: Path
    home: Path
    workspace: Path
    outside: Path
    sandbox: Sandbox

    def run(
        self, *argv: str, workspace: Path | None = None, network: bool = False, read_only: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the sandbox to its end; with what the sandbox adds to its output."""
        folder = workspace or self.workspace
        command = self.sandbox.wrap(argv, workspace=folder, network=network, read_only=read_only)
        ran = subprocess.run(
            command.argv,
            env=command.environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        ran.stdout += command.afterwards() if command.afterwards else ""
        return ran

    def shell(self, script: str, *, network: bool = False) -> str:
        """The output of a shell script, both streams."""
        return self.run("bash", "-c", script, network=network).stdout

    def python(self, script: str, *args: str, network: bool = False) -> str:
        """The output of a Python script, both streams."""
        return self.run(_PYTHON, "-I", "-c", script, *args, network=network).stdout


def new_machine(tmp_path: Path, new_sandbox: NewSandbox) -> Machine:
    """One with something to steal. Where the sandbox can't work the test is skipped; with CI=true it fails."""
    user = tmp_path / "user"
    home, workspace, outside = user / ".denizen", user / "src/project", tmp_path / "outside"
    _write(user / ".ssh/id_ed25519", "a canary key\n", 0o600)
    _write(user / ".bash_history", "a canary line\n")
    _write(user / ".cargo/bin/tool", "#!/bin/sh\necho the tool works\n", 0o755)
    _write(user / ".cargo/credentials.toml", "a canary token\n", 0o600)
    _write(user / "bin/sort", "#!/bin/sh\necho the hidden sort\n", 0o755)
    _write(home / "denizen.toml", "a canary setting\n", 0o600)
    _write(outside / "file", "untouched\n")
    _write(workspace / "README", "read me\n")
    _write(workspace / "src/main.py", "print(1)\n")
    _write(workspace / "denizen.toml", "# ours\n")
    _git(workspace, "init")
    _git(workspace, "add", "README")
    _git(workspace, "commit", "-m", "The first")
    environ = {
        "HOME": str(user),
        "PATH": f"{user}/bin:{user}/.cargo/bin:{os.environ['PATH']}",
        "ANTHROPIC_API_KEY": "canary",
        "SSH_AUTH_SOCK": "/canary",
        "WANTED": "wanted",
    }
    sandbox = new_sandbox(_SETTINGS, environ, home)
    if problem := problem_with(sandbox):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{sandbox.name}: {problem}")
    return Machine(user, home, workspace, outside, sandbox)


def _git(folder: Path, *args: str) -> None:
    subprocess.run([*_GIT, *args], cwd=folder, check=True, capture_output=True)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _connects(family: str, address: str) -> str:
    return (
        f"import socket\ntry:\n s = socket.socket(socket.{family}); s.settimeout(5); s.connect({address})\n"
        " s.send(b'x'); print('connected')\nexcept OSError as error: print(error)"
    )


class SandboxConformance:
    """Subclass it, and give a fixture `new_sandbox` that makes one from settings, the environment and Denizen's home.

    Where the sandbox can't work the tests are skipped; with CI=true they fail.
    """

    @pytest.fixture
    def machine(self, tmp_path: Path, new_sandbox: NewSandbox) -> Machine:
        """A machine with something to steal."""
        return new_machine(tmp_path, new_sandbox)

    def test_it_says_what_it_holds(self, machine: Machine) -> None:
        assert machine.sandbox.name
        assert machine.sandbox.promises
        assert machine.sandbox.confines

    def test_output_and_exit_status_are_the_commands(self, machine: Machine) -> None:
        ran = machine.run("sh", "-c", "echo out; echo err >&2; exit 7")
        assert (ran.stdout, ran.returncode) == ("out\nerr\n", 7)

    def test_the_workspace_can_be_changed(self, machine: Machine) -> None:
        machine.shell("echo a > src/new; echo b >> README; rm src/main.py; mkdir src/d && mv src/new src/d/")
        assert (machine.workspace / "src/d/new").read_text() == "a\n"
        assert (machine.workspace / "README").read_text() == "read me\nb\n"
        assert not (machine.workspace / "src/main.py").exists()

    def test_files_next_to_the_repositorys_data_can_be_made_renamed_and_deleted(self, machine: Machine) -> None:
        said = machine.shell("sed -i s/me/us/ README && echo a > new && mv src moved && rm -r moved && mkdir build")
        assert said == ""
        assert (machine.workspace / "README").read_text() == "read us\n"
        assert sorted(path.name for path in machine.workspace.iterdir()) == [
            *(".git", "README", "build", "denizen.toml", "new")
        ]

    def test_all_of_a_workspace_without_repository_can_be_changed(self, machine: Machine) -> None:
        folder = machine.user / "notes"
        folder.mkdir()
        machine.run("sh", "-c", "echo a > new && mv new old && mkdir sub", workspace=folder)
        assert sorted(path.name for path in folder.iterdir()) == ["old", "sub"]

    def test_there_is_a_place_for_temporary_files_that_nobody_sees(self, machine: Machine) -> None:
        name = machine.shell("f=$(mktemp) && echo kept > $f && cat $f && echo $f").removeprefix("kept\n").strip()
        assert name
        assert not Path(name).exists()
        assert "kept" not in machine.shell(f"cat {name} $TMPDIR/*")

    @pytest.mark.parametrize(
        "target",
        ["{outside}/new", "{outside}/file", "{user}/.bashrc", "{user}/.cargo/bin/tool", "/etc/new", "/usr/new"],
    )
    def test_nothing_outside_can_be_written(self, machine: Machine, target: str) -> None:
        path = Path(target.format(outside=machine.outside, user=machine.user))
        before = path.read_text() if path.exists() else None
        machine.shell(f"echo x >> {path}; cp README {path}; mv README {path}; truncate -s 0 {path}; rm -f {path}")
        assert (path.read_text() if path.exists() else None) == before

    def test_no_link_leads_out(self, machine: Machine) -> None:
        for link in ("link", "src/link"):
            (machine.workspace / link).symlink_to(machine.outside)
            machine.shell(f"echo x > {link}/file; echo x > {link}/new; rm {link}/file")
        machine.shell(f"ln -s {machine.outside} src/own; echo x > src/own/new; ln {machine.outside}/file src/hard")
        machine.shell("ln .git/config src/hard; echo x >> src/hard")
        assert [path.name for path in machine.outside.iterdir()] == ["file"]
        assert (machine.outside / "file").read_text() == "untouched\n"
        assert "x\n" not in (machine.workspace / ".git/config").read_text()

    def test_nothing_of_the_home_can_be_read_but_toolchains(self, machine: Machine) -> None:
        user = machine.user
        said = machine.shell(
            f"cat {user}/.ssh/* {user}/.bash_history {machine.home}/denizen.toml {user}/.cargo/credentials.toml; "
            f"grep -rs canary {user}; ls -A {user}; tool && ls ~/.cargo/bin"
        )
        assert "canary" not in said
        assert said.endswith("the tool works\ntool\n")

    def test_programs_in_the_hidden_home_are_passed_over(self, machine: Machine) -> None:
        assert machine.shell("echo b | sort") == "b\n"

    def test_what_only_reads_writes_nothing_and_sees_only_programs_and_the_workspace(self, machine: Machine) -> None:
        before = (machine.workspace / ".git/index").read_bytes()
        script = (
            "export GIT_CONFIG_NOSYSTEM=1; "
            "cat README; git log --format=%s; git status --short; echo a > $TMPDIR/a; cat $TMPDIR/a; exec 2>/dev/null; "
            f"echo x > new; echo x >> README; rm -f src/main.py; git add src; cat /etc/passwd {machine.outside}/file"
        )
        ran = machine.run("bash", "-c", script, read_only=True)
        assert ran.stdout == "read me\nThe first\n?? denizen.toml\n?? src/\na\n"
        assert sorted(path.name for path in machine.workspace.iterdir()) == [".git", "README", "denizen.toml", "src"]
        assert (machine.workspace / "README").read_text() == "read me\n"
        assert (machine.workspace / "src/main.py").exists()
        assert (machine.workspace / ".git/index").read_bytes() == before

    def test_the_real_home_is_hidden_too(self, new_sandbox: NewSandbox, machine: Machine, tmp_path: Path) -> None:
        environ = {"HOME": str(Path.home()), "PATH": os.environ["PATH"]}
        real = dataclasses.replace(machine, sandbox=new_sandbox(SandboxSettings(toolchains=[]), environ, tmp_path))
        seen = real.shell(f"find {Path.home()} -type f -readable 2>/dev/null").splitlines()
        assert [path for path in seen if not Path(path).is_relative_to(machine.workspace)] == []

    def test_a_workspace_that_cannot_be_kept_apart_from_the_home_is_refused(self, machine: Machine) -> None:
        for folder in (machine.user, machine.user.parent, Path("/")):
            with pytest.raises(ToolRefused, match="holds the home directory"):
                machine.sandbox.wrap(["true"], workspace=folder)

    def test_the_environment_holds_no_keys(self, machine: Machine) -> None:
        said = machine.shell("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
        assert "canary" not in said
        assert "WANTED=wanted" in said

    def test_the_environment_of_other_processes_stays_theirs(self, machine: Machine) -> None:
        with subprocess.Popen(["sleep", "1000"], env={"TOKEN": "canary"}) as other:
            said = machine.shell(f"cat /proc/{other.pid}/environ /proc/*/environ | tr '\\0' '\\n'")
            other.kill()
        assert "canary" not in said

    def test_other_processes_cannot_be_ended(self, machine: Machine) -> None:
        with subprocess.Popen(["sleep", "1000"]) as other:
            machine.shell(f"kill -KILL {other.pid}")
            ended = other.poll()
            other.kill()
        assert ended is None

    def test_whoever_starts_a_command_is_not_limited_by_it(self, machine: Machine) -> None:
        was = _limits()
        machine.python(
            "import os, resource, sys\npid = int(sys.argv[1])\n"
            "for limit in (lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)),\n"
            " lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),\n"
            " lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),\n"
            " lambda: os.setpriority(os.PRIO_PROCESS, pid, 3), lambda: os.setpriority(os.PRIO_USER, 0, 3)):\n"
            " try: limit()\n except OSError: pass",
            str(os.getpid()),
        )
        assert _limits() == was

    def test_a_thread_can_limit_itself(self, machine: Machine) -> None:
        said = machine.python(
            "import os, resource, threading\nresource.prlimit(0, resource.RLIMIT_CORE, (0, 0))\n"
            "os.sched_setaffinity(threading.get_native_id(), {min(os.sched_getaffinity(0))})\n"
            "print(len(os.sched_getaffinity(0)), resource.getrlimit(resource.RLIMIT_CORE))"
        )
        assert said == "1 (0, 0)\n"

    def test_modes_and_times_of_other_files_stay(self, machine: Machine) -> None:
        file = machine.outside / "file"
        was = file.stat()
        machine.shell(f"chmod 777 {file}; touch -d yesterday {file}")
        assert (file.stat().st_mode, file.stat().st_mtime) == (was.st_mode, was.st_mtime)

    def test_no_file_that_a_command_made_has_a_setuid_or_setgid_bit(self, machine: Machine) -> None:
        machine.shell("cd src; cp /bin/true a; cp a b; cp a c; chmod u+s a; chmod 2755 b; chmod 755 c")
        machine.python(
            "import os\nos.chdir('src')\nhere, umask = os.open('.', os.O_RDONLY), os.umask(0)\n"
            "new = lambda path, mode: os.open(path, os.O_CREAT, mode)\n"
            "at = lambda path, mode: os.close(new(path, 0o600)) or os.chmod(path, mode, dir_fd=here)\n"
            "by_number = lambda path, mode: os.fchmod(new(path, 0o600), mode)\n"
            "for make in (new, os.mknod, at, by_number):\n for mode in (0o4755, 0o2755, 0o755):\n"
            "  try: make(f'{make}{mode}', mode)\n  except PermissionError: pass"
        )
        modes = [path.stat().st_mode & 0o7777 for path in (machine.workspace / "src").iterdir()]
        assert [mode for mode in modes if mode & 0o6000] == []
        assert modes.count(0o755) >= 5

    def test_no_service_can_be_reached(self, machine: Machine) -> None:
        with _listening(machine) as (tcp, udp, path, name, datagrams):
            for family, address in (
                ("AF_INET", f"('127.0.0.1', {tcp})"),
                ("AF_INET, socket.SOCK_DGRAM", f"('127.0.0.1', {udp.getsockname()[1]})"),
                ("AF_UNIX", repr(path)),
                ("AF_UNIX", repr(name)),
                ("AF_UNIX, socket.SOCK_DGRAM", repr(datagrams.getsockname())),
            ):
                said = machine.python(_connects(family, address))
                assert "connected" not in said or "AF_INET, socket.SOCK_DGRAM" in family
            assert not _arrived(udp)
            assert not _arrived(datagrams)

    def test_the_network_can_be_allowed(self, machine: Machine) -> None:
        with _listening(machine) as (tcp, _, path, _, _):
            assert machine.python(_connects("AF_INET", f"('127.0.0.1', {tcp})"), network=True) == "connected\n"
            assert machine.python(_connects("AF_UNIX", repr(path)), network=True) != "connected\n"

    @pytest.mark.parametrize("network", [False, True])
    def test_only_sockets_of_known_families_can_be_opened(self, machine: Machine, network: bool) -> None:
        script = (
            "import socket\nfor family in range(1, 46):\n for kind in (1, 2, 3, 5):\n"
            "  try: socket.socket(family, kind); print(family)\n  except OSError: pass"
        )
        known = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
        assert {int(family) for family in machine.python(script, network=network).split()} <= known

    def test_the_memory_of_a_command_is_limited(self, new_sandbox: NewSandbox, machine: Machine) -> None:
        settings = msgspec.structs.replace(_SETTINGS, memory_mb=200)
        sandbox = new_sandbox(settings, {"HOME": str(machine.user), "PATH": os.environ["PATH"]}, machine.home)
        small = dataclasses.replace(machine, sandbox=sandbox)
        assert "MemoryError" in small.python("bytearray(300_000_000)")
        assert small.python("print(len(bytearray(50_000_000)))") == "50000000\n"

    def test_the_processes_of_a_command_are_limited(self, new_sandbox: NewSandbox, machine: Machine) -> None:
        settings = msgspec.structs.replace(_SETTINGS, processes=20)
        sandbox = new_sandbox(settings, {"HOME": str(machine.user), "PATH": os.environ["PATH"]}, machine.home)
        limits = dataclasses.replace(machine, sandbox=sandbox).shell("grep processes /proc/self/limits")
        assert limits.split()[2:4] == ["20", "20"]

    def test_sockets_within_a_program_work(self, machine: Machine) -> None:
        assert machine.python("import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))") == "b'x'\n"

    def test_there_are_no_powers_of_root(self, machine: Machine) -> None:
        assert set(machine.shell("grep -h ^Cap /proc/self/status | cut -f2").split()) == {"0" * 16}
        assert machine.shell("grep -h NoNewPrivs /proc/self/status").split() == ["NoNewPrivs:", "1"]

    def test_the_settings_of_the_kernel_stay(self, machine: Machine) -> None:
        setting = "/proc/sys/kernel/core_uses_pid"
        assert "written" not in machine.shell(f"read was < {setting}; echo $was > {setting} && echo written")

    def test_a_namespace_of_its_own_undoes_nothing(self, machine: Machine) -> None:
        machine.shell(
            "unshare -Urm sh -c 'umount -l .git; mount -o remount,rw /; mount -o remount,rw .git; echo x > .git/new'"
        )
        machine.shell(f"unshare -Urm sh -c 'umount -l /tmp; umount -l {machine.user}; echo x > {machine.outside}/new'")
        assert not (machine.workspace / ".git/new").exists()
        assert not (machine.outside / "new").exists()

    def test_no_system_v_memory_outlives_a_command(self, machine: Machine) -> None:
        key = str(int.from_bytes(os.urandom(3)) + 1)
        machine.python(f"import ctypes; ctypes.CDLL(None).shmget({key}, 4096, 0o1600)")
        assert key not in Path("/proc/sysvipc/shm").read_text().split()

    def test_no_process_stays_behind(self, machine: Machine) -> None:
        pipe = machine.workspace / "src/held"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(pipe, os.O_WRONLY)
        os.close(reader)
        machine.shell(
            "env -i setsid -f sh -c 'exec 9<src/held; echo >src/ready; exec >/dev/null 2>&1; exec sleep 1000'; "
            "until test -s src/ready; do sleep 0.01; done"
        )
        gone = select.poll()
        gone.register(writer, 0)
        assert gone.poll(10_000)
        os.close(writer)


def _limits() -> list[object]:
    affinity, policy = os.sched_getaffinity(0), os.sched_getscheduler(0)
    return [resource.getrlimit(resource.RLIMIT_CORE), affinity, policy, os.getpriority(os.PRIO_PROCESS, 0)]


@contextlib.contextmanager
def _listening(machine: Machine) -> Generator[tuple[int, socket.socket, str, str, socket.socket]]:
    """Services outside: a TCP port, a UDP socket, a Unix socket's path, an abstract one's name, one for datagrams."""
    path, name = str(machine.outside / "soc\nket"), f"\0denizen\n{os.urandom(8).hex()}"
    with contextlib.ExitStack() as stack:
        kinds: Sequence[tuple[int, int, str | tuple[str, int]]] = (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, path),
            (socket.AF_UNIX, socket.SOCK_STREAM, name),
            (socket.AF_UNIX, socket.SOCK_DGRAM, str(machine.outside / "datagrams")),
        )
        sockets = [stack.enter_context(socket.socket(family, kind)) for family, kind, _ in kinds]
        for service, (_, kind, address) in zip(sockets, kinds, strict=True):
            service.bind(address)
            if kind == socket.SOCK_STREAM:
                service.listen()
        yield sockets[0].getsockname()[1], sockets[1], path, name, sockets[4]


def _arrived(udp: socket.socket) -> bool:
    return bool(select.select([udp], [], [], 0)[0])
