"""Another package adds what `extending.md` shows (tools, provider, driver, world, channel) by such entry points."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

PACKAGE = {
    "METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n",
    "entry_points.txt": (
        "[denizen.tools]\nacme = tool:TOOLS\n\n[denizen.models]\nprogram = provider:open_program\n\n"
        "[denizen.drivers]\ncareful = driver:Careful\n\n"
        "[denizen.worlds]\ngarden = world:WORLD\n\n"
        "[denizen.channels]\nfiles = channel:KIND\n\n"
        "[denizen.commands]\ngarden = world:garden\nbroken = nowhere:command\n"
    ),
}


@pytest.fixture
def installed(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """The environment of a reader who has installed the package."""
    folder = tmp_path / "site" / "acme-1.0.dist-info"
    folder.mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    return environ | {"PYTHONPATH": f"{environ['PYTHONPATH']}:{folder.parent}"}


def run(*command: str, environ: dict[str, str], folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.needs("git")
def test_provider_is_found(project: Path, installed: dict[str, str]) -> None:
    ask = ["-m", "denizen", "ask", "--quiet", "--model", "program:grep -o hello", "hello, world"]
    assert run(*ask, environ=installed, folder=project) == "hello\n"


@pytest.mark.needs("git")
def test_tools_are_found(project: Path, installed: dict[str, str]) -> None:
    program = "from denizen import Agent; print('stock' in Agent().tools, 'order' in Agent().tools)"
    assert run("-c", program, environ=installed, folder=project) == "True True\n"


@pytest.mark.needs("git")
@pytest.mark.parametrize("name", ["careful", f"{ROOT}/docs/examples/driver.py"])
def test_drivers_are_found(project: Path, installed: dict[str, str], name: str) -> None:
    assert run("-m", "denizen", "ask", "--quiet", "--driver", name, "hello", environ=installed, folder=project)
    find = f"find_driver({name!r}, home=Path.home(), environ={{}})"
    program = f"from pathlib import Path; from denizen.worlds.drivers import find_driver; print({find}.new.__name__)"
    assert run("-c", program, environ=installed, folder=project) == "Careful\n"


@pytest.mark.needs("git")
def test_world_is_found_and_its_sessions_are_listed_and_answered(project: Path, installed: dict[str, str]) -> None:
    denizen = ("-m", "denizen")
    assert run("docs/examples/world.py", environ=installed, folder=ROOT) == "parked\n"
    assert "parked" in run(*denizen, "sessions", "list", environ=installed, folder=project)
    answered = run(*denizen, "answer", "garden", "no", environ=installed, folder=project)
    assert answered
    assert run(*denizen, "ask", "--quiet", "--profile", "keeper", "hello", environ=installed, folder=project)


@pytest.mark.needs("git")
def test_table_of_a_world_is_read_strictly(project: Path, installed: dict[str, str], tmp_path: Path) -> None:
    settings = tmp_path / "home" / "denizen.toml"
    read = "from denizen import Agent; print([tool.name for tool in Agent(profile='keeper').tools])"
    settings.write_text('model = "offline"\n[garden]\nbeds = ["tulips"]\n')
    assert run("-c", read, environ=installed, folder=project) == "['water']\n"
    settings.write_text('model = "offline"\n[garden]\nbed = ["tulips"]\n')
    check = [sys.executable, "-m", "denizen", "config", "check"]
    ran = subprocess.run(check, cwd=project, env=installed, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "garden.bed" in ran.stderr


@pytest.mark.needs("git")
def test_channel_brings_messages_to_the_gateway(project: Path, installed: dict[str, str], tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / "chats" / name).mkdir(parents=True)
    settings = tmp_path / "home" / "denizen.toml"
    settings.write_text(f'model = "offline"\n[channels.files]\nfolder = "{tmp_path}/chats"\nallow = ["ann"]\n')
    (tmp_path / "chats" / "in" / "ann.1").write_text("Hello")
    command = [sys.executable, "-m", "denizen", "gateway", "--port", "0"]
    with subprocess.Popen(command, cwd=project, env=installed, stdout=subprocess.PIPE, text=True) as gateway:
        while gateway.poll() is None and not (replies := [*(tmp_path / "chats" / "out").glob("ann.*")]):
            time.sleep(0.05)
        gateway.terminate()
    assert len(replies) == 1
    assert not [*(tmp_path / "chats" / "in").iterdir()]


@pytest.mark.needs("git")
def test_command_is_found_and_listed_unloaded(project: Path, installed: dict[str, str]) -> None:
    shown = run("-m", "denizen", "--help", environ=installed, folder=project)
    assert "  garden       From world.\n" in shown
    assert "  broken       From nowhere.\n" in shown
    assert run("-m", "denizen", "garden", "Good morning", environ=installed, folder=project).strip()
    broken = [sys.executable, "-m", "denizen", "broken"]
    ran = subprocess.run(broken, cwd=project, env=installed, capture_output=True, text=True, check=False)
    assert (ran.returncode, "nowhere:command can't be loaded" in ran.stderr) == (2, True)
