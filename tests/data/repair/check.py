"""Runs iniconfig's own tests about comments, by any Python: they need nothing that is to be installed."""

import ast
import pathlib
from textwrap import dedent

from iniconfig import IniConfig

tests = ast.parse(pathlib.Path("testing/test_iniconfig.py").read_text())
failed = []
for test in tests.body:
    if isinstance(test, ast.FunctionDef) and "inline_comments" in test.name:
        space = {"IniConfig": IniConfig, "dedent": dedent}
        exec(compile(ast.Module([test], []), "test_iniconfig.py", "exec"), space)
        try:
            space[test.name]()
        except AssertionError as error:
            failed.append(f"{test.name}: {error!r}")
print("\n".join(failed) or "passed")
raise SystemExit(len(failed))
