"""How much an edit could break."""

import os
from pathlib import Path
from typing import Any

import pytest

from denizen.tools.policy.risk import risk_of

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
        (edit("    # say so\n    return _helper(x)", "    return _helper(x)\n    # say so"), "low"),
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


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("ls -la src | head -3 && cat core.py 2>/dev/null", "low"),
        ("git log --oneline -3; git diff", "low"),
        ("find . -name '*.py'", "low"),
        ("grep -rn 'rm -rf' .", "low"),
        ("pytest -q", "medium"),
        ("sed -i s/a/b/ core.py", "medium"),
        ("echo > core.py", "medium"),
        ("cat core.py > other.py", "medium"),
        ("cat $(touch made)", "medium"),
        ("ls\ntouch made", "medium"),
        ("git diff --output=core.py", "medium"),
        ("git commit -am done", "medium"),
        ("rg --pre ./run x", "medium"),
        ("./ls", "medium"),
        ("PATH=.:$PATH ls", "medium"),
        ("rm core.py", "high"),
        ("ls && sudo rm -rf .", "high"),
        ("x=1 rm core.py", "high"),
        ("find . -name '*.py' -delete", "high"),
        ("find . -exec rm {} +", "high"),
        ("(cd src; rm core.py)", "high"),
        ("mv core.py other.py", "high"),
        ("git checkout -- core.py", "high"),
        ("git reset --hard", "high"),
    ],
)
def test_the_risk_of_a_command(workspace: Path, command: str, level: str) -> None:
    risk = risk_of("bash", {"command": command}, workspace)
    assert risk
    assert (risk.level, bool(risk.why)) == (level, True)


DOCUMENTED = 'class A:\n    """Says a."""\n\n    def f(self):\n        """Say f."""\n        return 1\n'


@pytest.mark.parametrize(
    ("call", "level"),
    [
        (edit("Say f.", "Say it.", "doc.py"), "low"),
        (edit('        """Say f."""\n', "", "doc.py"), "low"),
        (edit('"""Say f."""\n', '"""Say f."""; exit()\n', "doc.py"), "medium"),
        (edit("return 1", "return 'Say f.'", "doc.py"), "medium"),
        (("write", {"path": "doc.py", "content": DOCUMENTED.replace("Says a.", "Says b.\n\n    More.\n    ")}), "low"),
        (
            (
                "edit_symbol",
                {"target": "doc.py/A/f", "action": "replace", "content": 'def f(self):\n    """F."""\n    return 1'},
            ),
            "low",
        ),
        (
            ("edit_symbol", {"target": "doc.py/A/f", "action": "replace", "content": "def f(self):\n    return 2"}),
            "medium",
        ),
        (
            ("apply_patch", {"patch": '--- a/doc.py\n+++ b/doc.py\n@@\n-        """Say f."""\n+        """F."""\n'}),
            "low",
        ),
    ],
)
def test_a_docstring_is_as_low_as_a_comment(workspace: Path, call: tuple[str, dict[str, Any]], level: str) -> None:
    (workspace / "doc.py").write_text(DOCUMENTED)
    risk = risk_of(*call, workspace)
    assert risk
    assert risk.level == level


def test_what_neither_edits_nor_runs_has_none(workspace: Path) -> None:
    assert risk_of("grep", {"pattern": "rm -rf ."}, workspace) is None
