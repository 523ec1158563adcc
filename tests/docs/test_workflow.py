"""The hosted CI proves what `.ci/run` proves, on every version of Python that is supported and on the next one."""

from typing import Any

import pytest
import yaml
from tests.docs.pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def proof() -> dict[str, Any]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    return workflow["jobs"]["proof"]


def test_every_workflow_is_valid_yaml_with_jobs_that_have_steps() -> None:
    assert WORKFLOWS
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
        assert all(job["runs-on"] and job["steps"] for job in jobs.values())


def test_the_whole_proof_runs_on_each_version(proof: dict[str, Any]) -> None:
    assert proof["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert proof["steps"][1]["with"]["python-version"].splitlines() == ["3.11", "${{ matrix.python }}"]
    assert proof["steps"][-1]["run"] == "bash .ci/run"
    assert (ROOT / ".ci" / "run").exists()


def test_a_version_that_nobody_has_seen_pass_may_fail(proof: dict[str, Any]) -> None:
    classifiers = (ROOT / "pyproject.toml").read_text("utf-8")
    seen = [python for python in proof["strategy"]["matrix"]["python"] if f"Python :: {python}" in classifiers]
    assert seen == ["3.11", "3.12", "3.13"]
    assert proof["continue-on-error"] == "${{ matrix.python == '3.14' }}"
