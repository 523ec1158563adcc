"""The offline model answers questions about a real repository through the real engine and its real tools."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.models.offline.workshop import WORKSHOP, Ask, commit, git

from denizen import RunResult, run_agent
from denizen.config import Config
from denizen.config.settings import AgentSettings


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, with two commits."""
    folder = tmp_path_factory.mktemp("original") / "workshop"
    shutil.copytree(WORKSHOP, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Open the shop")
    (folder / "web/app.ts").write_text((folder / "web/app.ts").read_text() + "// baskets\n")
    commit(folder, "Explain baskets")
    return folder


@pytest.fixture
def workshop(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to do with as a test likes."""
    return shutil.copytree(original, tmp_path / "workshop")


@pytest.fixture
def ask(workshop: Path, tmp_path: Path) -> Ask:
    home = tmp_path / "home"

    async def run(question: str, *, settings: Mapping[str, Any] | None = None, **options: Any) -> RunResult:
        own = AgentSettings(workspace_dir=home / "own", **(settings or {}))
        config = Config(model="offline", home=home, workspace=workshop, agent=own)
        return await run_agent(question, config=config, **options)

    return run
