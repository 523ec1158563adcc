"""The tools that every agent has: complete, short in the prompt, quick to import, and joined by those of packages."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from denizen.config import Config
from denizen.config.settings import ModelSettings
from denizen.errors import ConfigError
from denizen.ports import Fact, Sandboxed, Scope, Tool, Traits
from denizen.testing import ToolConformance
from denizen.tools import default_tools, plugin_tools


class OpenSandbox:
    """A sandbox that holds nothing."""

    name, promises, confines = "none", "Nothing is held back.", False

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        return Sandboxed(argv, dict(os.environ))


class NoMemory:
    """A memory that keeps nothing."""

    async def remember(
        self,
        text: str,
        *,
        context: str = "",
        weight: float = 0.5,
        scope: Scope = "project",
        source: str = "",
        untrusted: bool = False,
    ) -> str:
        return "nowhere"

    async def recall(self, query: str, limit: int = 10) -> Sequence[Fact]:
        return []

    async def forget(self, what: str) -> str:
        return "nothing"


def tools(**environ: str) -> dict[str, Tool]:
    environ = {"PATH": os.environ["PATH"], **environ}
    made = default_tools(Config(), sandbox=OpenSandbox(), memory=NoMemory(), environ=environ)
    return {tool.name: tool for tool in made}


def test_they_are_all_there() -> None:
    names = "read write edit apply_patch ls find grep bash git web_fetch remember recall forget"
    assert " ".join(tools()) == names


def test_the_web_is_searched_where_a_service_is_set_up() -> None:
    assert "web_search" in tools(BRAVE_API_KEY="k")


@pytest.mark.parametrize(("kind", "offered"), [("memory_20250818", True), ("web_search_20250305", False)])
def test_anthropics_memory_is_offered_where_the_settings_of_a_model_ask_for_it(
    kind: str, offered: bool, tmp_path: Path
) -> None:
    settings = ModelSettings(extra_body={"tools": [{"type": kind, "name": "memory"}]})
    config = Config(models={"anthropic:claude-sonnet-4-5": settings}, home=tmp_path, workspace=tmp_path)
    made = default_tools(config, sandbox=OpenSandbox(), memory=NoMemory(), environ={})
    assert ("memory" in [tool.name for tool in made]) == offered


def test_together_they_take_little_of_the_prompt() -> None:
    assert len(msgspec.json.encode([tool.schema for tool in tools().values()])) <= 5000


def test_the_traits_of_the_file_tools() -> None:
    traits = {name: tool.traits for name, tool in tools().items()}
    assert {traits[name] for name in ("read", "ls", "find", "grep")} == {Traits.READS | Traits.REPEATABLE}
    assert {traits[name] for name in ("write", "edit", "apply_patch")} == {Traits.WRITES}


def test_importing_them_loads_nothing_heavy() -> None:
    program = (
        "import sys; from denizen.tools import default_tools, tool; "
        "import denizen.tools.read, denizen.tools.patch, denizen.tools.grep; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "html_to_markdown", "click", "rich", "opentelemetry"} & set(loaded)


CALLS: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt"},
    "write": {"path": "b.txt", "content": "x"},
    "edit": {"path": "a.txt", "old": "one", "new": "none", "all": True},
    "apply_patch": {"patch": "*** Begin Patch\n*** Update File: many.txt\n@@ -1,0 +1 @@\n+x\n*** End Patch"},
    "ls": {},
    "find": {"pattern": "*"},
    "grep": {"pattern": "one"},
}


@pytest.mark.parametrize("name", CALLS)
class TestFileTools(ToolConformance):
    most_bytes = 700

    @pytest.fixture
    def tool(self, name: str) -> Tool:
        return tools()[name]

    @pytest.fixture
    def args(self, name: str) -> dict[str, Any]:
        return CALLS[name]

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        for name in ("a.txt", "many.txt"):
            (tmp_path / name).write_text("one\n")
        return tmp_path


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Install a package that says it has tools: its entry point and its module's text."""

    def installed(entry_point: str, module: str) -> None:
        info = tmp_path / "weather-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weather\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[denizen.tools]\nweather = {entry_point}\n")
        (tmp_path / f"{entry_point.partition(':')[0]}.py").write_text(module)
        monkeypatch.syspath_prepend(tmp_path)

    return installed


RAIN = '''
from denizen.tools import tool

@tool
def rain(town: str) -> str:
    """Whether it rains in a town."""
    return "yes"
'''


@pytest.mark.parametrize("entry_point", ["weather_one:rain", "weather_list:all_of_them"])
def test_installed_packages_add_theirs(entry_point: str, install: Callable[[str, str], None]) -> None:
    install(entry_point, f"{RAIN}\nall_of_them = [rain]\n")
    assert [tool.name for tool in plugin_tools()] == ["rain"]
    assert "rain" in tools()


@pytest.mark.parametrize(
    ("entry_point", "module", "why"),
    [
        ("weather_gone:rain", "", r"'weather' of weather can't be loaded: .*; update or remove it"),
        ("weather_broken:rain", "raise OSError('no radar')", r"'weather' of weather can't be loaded: no radar"),
        ("weather_other:rain", "rain = 'wet'", r"'weather' of weather isn't a tool"),
    ],
)
def test_a_package_whose_tools_cannot_be_used_is_named(
    entry_point: str, module: str, why: str, install: Callable[[str, str], None]
) -> None:
    install(entry_point, module)
    with pytest.raises(ConfigError, match=why):
        plugin_tools()
