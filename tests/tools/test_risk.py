"""How much an edit could break."""

import os
from pathlib import Path
from typing import Any

import pytest

from denizen.tools.risk import risk_of

CODE = "import os\n\n\ndef run(x):\n    # say so\n    return _helper(x)\n\n\ndef _helper(x):\n    return x\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "core.py").write_text(CODE)
    (tmp_path / "main.go").write_text("package main\n")
    return tmp_path


def edit(old: str, new: str, path: str = "core.py") -> tuple[str, dict[str, Any]]:
    return "edit", {"path": path, "old": old, "new": new}


@pytest.mark.parametrize(
    ("call", "level"),
    [
        (edit("# say so", "# tell it"), "low"),
        (edit("    # say so\n", ""), "low"),
        (edit("    return x\n", ""), "high"),
        (edit("return x\n", "return x + 1\n"), "medium"),
        (edit("def run(x):", "def run(x, y):"), "high"),
        (edit("def _helper(x):", "def _helper(x, y=1):"), "medium"),
        (edit("def run(x):\n    # say so", "def run(x):\n    # really"), "low"),
        (edit("run", "start"), "high"),
        (edit("x)\n\n\ndef", "y)\n\n\ndef"), "medium"),
        (edit("    # say so\n    return _helper(x)", "    return _helper(x)\n    # say so"), "medium"),
        (edit("x", "y", "nowhere.py"), "medium"),
        (edit("# one", "# two", "core.c"), "medium"),
        (edit("// one", "// two", "core.c"), "low"),
        (edit(" * one", " * two", "core.c"), "low"),
        (edit("/* one */", "/* two */ exit(1);", "core.c"), "medium"),
        (edit(" * one */", " * one */ exit(1);", "core.c"), "medium"),
        (edit("*p", "*p = 0", "core.c"), "medium"),
        (edit("a", "b", "README.md"), "low"),
        (edit("a", "b", "pyproject.toml"), "high"),
        (edit("a", "b", ".github/workflows/ci.yml"), "high"),
        (edit("a", "b", "src/app/__main__.py"), "high"),
        (edit("a", "b", "cmd/tool/main.go"), "high"),
        (("write", {"path": "new.py", "content": "x = 1\n"}), "medium"),
        (("write", {"path": "core.py", "content": CODE.replace("say so", "tell")}), "low"),
        (("write", {"path": "core.py", "content": CODE.replace("def run(x)", "def start(x)")}), "high"),
        (("write", {"path": "core.py", "content": ""}), "high"),
        (("edit_symbol", {"target": "core.py/run", "action": "delete"}), "high"),
        (("edit_symbol", {"target": "core.py/run", "action": "insert", "content": "x = 1"}), "medium"),
        (("edit_symbol", {"target": "core.py/run", "action": "replace", "content": "def run(x):\n    pass"}), "medium"),
        (("edit_symbol", {"target": "core.py/run", "action": "replace", "content": "def run(y):\n    pass"}), "high"),
        (("edit_symbol", {"target": "main.go/f", "action": "insert", "content": "func g() {}"}), "high"),
        (("apply_patch", {"patch": "no patch"}), "high"),
        (
            ("apply_patch", {"patch": "--- a/core.py\n+++ b/core.py\n@@\n def run(x):\n-    # say so\n+    # tell\n"}),
            "low",
        ),
        (("apply_patch", {"patch": "--- a/core.py\n+++ b/core.py\n@@\n-def run(x):\n+def run():\n"}), "high"),
        (("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: core.py\n*** End Patch"}), "high"),
        (
            ("apply_patch", {"patch": "--- a/core.py\n+++ b/core.py\n@@\n-    return x\n+    return x + 1\n"}),
            "medium",
        ),
        (("apply_patch", {"patch": "--- a/setup.cfg\n+++ b/setup.cfg\n@@\n-a\n+b\n"}), "high"),
    ],
)
def test_the_risk_of_an_edit(workspace: Path, call: tuple[str, dict[str, Any]], level: str) -> None:
    risk = risk_of(*call, workspace)
    assert risk
    assert (risk.level, bool(risk.why)) == (level, True)


def test_a_pipe_in_the_way_keeps_nobody_waiting(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.py")
    risk = risk_of("write", {"path": "pipe.py", "content": "x = 1"}, workspace)
    assert risk
    assert risk.level == "medium"


def test_what_is_no_edit_has_none(workspace: Path) -> None:
    assert risk_of("bash", {"command": "rm -rf ."}, workspace) is None
