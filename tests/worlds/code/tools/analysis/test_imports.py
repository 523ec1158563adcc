"""`analyze imports`: which file each language's imports mean."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from denizen.ports import ToolContext
from denizen.worlds.code.tools.analyze import analyze_tool

Files = dict[str, str]
Imports = Callable[..., Awaitable[str]]

EDGES = "[.[] | select(.module and (.imports | length > 0)) | {(.module): .imports}] | add"


@pytest.fixture
def imports(workspace: Path, turn: ToolContext, tmp_path: Path) -> Imports:
    """The result for these files: `await imports(files)`, of one: `await imports(files, "a.py")`."""

    async def run(files: Files, path: str = ".", **args: Any) -> str:
        for name, text in files.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        tool = analyze_tool(tmp_path / "home", os.environ)
        return (await tool.run({"what": "imports", "path": path, **args}, turn)).text

    return run


PYTHON = {
    "src/shop/__init__.py": "from shop.cart import Cart\n",
    "src/shop/cart.py": "import json\nfrom . import prices\nfrom .store.shelf import Shelf\n",
    "src/shop/prices.py": "from shop import cart\nimport shop.store.shelf as shelf\n",
    "src/shop/store/__init__.py": "",
    "src/shop/store/shelf.py": "from ..prices import PRICE\n",
    "src/shop/json.py": "",
}
JAVASCRIPT = {
    "web/app.js": "import { a } from './lib/a';\nconst b = require('./b.js');\nimport React from 'react';\n",
    "web/b.js": "export * from './lib';\n",
    "web/lib/a.ts": "import x from '@/lib/index';\n",
    "web/lib/index.tsx": "",
}
SCRIPTS = {"scripts/run.py": "import helper\n", "scripts/helper.py": "import os\n"}
GO = {
    "go.mod": "module example.org/shop\n",
    "main.go": 'package main\nimport (\n "fmt"\n "example.org/shop/store"\n)\n',
    "store/store.go": 'package store\nimport "os"\n',
    "store/shelf.go": "package store\n",
}
RUST = {
    "src/main.rs": "mod store;\nmod till;\nuse std::fmt;\nuse crate::store::shelf::Shelf;\n",
    "src/store/mod.rs": "pub mod shelf;\nuse crate::{till, store::shelf};\n",
    "src/store/shelf.rs": "use super::super::till::Till;\n",
    "src/till.rs": "",
}
JAVA = {
    "src/main/java/shop/Cart.java": "package shop;\nimport java.util.List;\nimport shop.store.Shelf;\nclass Cart {}\n",
    "src/main/java/shop/store/Shelf.java": "package shop.store;\nimport static shop.Prices.of;\nclass Shelf {}\n",
    "src/main/java/shop/Prices.java": "package shop;\nclass Prices {}\n",
}
KOTLIN = {
    "src/shop/Cart.kt": "package shop\nimport shop.store.Shelf\n",
    "src/shop/store/Shelf.kt": "package shop.store\n",
}
C = {
    "src/main.c": '#include <stdio.h>\n#include "shelf.h"\n#include "store/till.h"\n',
    "src/shelf.h": "",
    "include/store/till.h": "",
}
CPP = {"app/main.cpp": '#include <vector>\n#include "../lib/shelf.hpp"\n', "lib/shelf.hpp": ""}
RUBY = {
    "lib/shop.rb": "require 'json'\nrequire 'shop/cart'\n",
    "lib/shop/cart.rb": "require_relative 'shelf'\n",
    "lib/shop/shelf.rb": "",
}
PHP = {
    "src/Cart.php": "<?php\nuse Shop\\Store\\Shelf;\nrequire 'prices.php';\n",
    "src/Store/Shelf.php": "<?php\n",
    "src/prices.php": "<?php\n",
}
LUA = {"main.lua": "local a = require 'shop.cart'\n", "shop/cart.lua": "require('shelf')\n", "shop/shelf.lua": ""}
BASH = {"run.sh": 'source ./lib/a.sh\n. "$HERE/lib/b.sh"\n', "lib/a.sh": "echo\n", "lib/b.sh": "echo\n"}


@pytest.mark.parametrize(
    ("files", "edges"),
    [
        pytest.param(
            PYTHON,
            {
                "src/shop/__init__.py": ["src/shop/cart.py"],
                "src/shop/cart.py": ["src/shop/prices.py", "src/shop/store/shelf.py"],
                "src/shop/prices.py": ["src/shop/cart.py", "src/shop/store/shelf.py"],
                "src/shop/store/shelf.py": ["src/shop/prices.py"],
            },
            id="python",
        ),
        pytest.param(
            JAVASCRIPT,
            {
                "web/app.js": ["web/b.js", "web/lib/a.ts"],
                "web/b.js": ["web/lib/index.tsx"],
                "web/lib/a.ts": ["web/lib/index.tsx"],
            },
            id="javascript",
        ),
        pytest.param(SCRIPTS, {"scripts/run.py": ["scripts/helper.py"]}, id="python scripts"),
        pytest.param(GO, {".": ["store"]}, id="go"),
        pytest.param(
            RUST,
            {
                "src/main.rs": ["src/store/mod.rs", "src/store/shelf.rs", "src/till.rs"],
                "src/store/mod.rs": ["src/store/shelf.rs", "src/till.rs"],
                "src/store/shelf.rs": ["src/till.rs"],
            },
            id="rust",
        ),
        pytest.param(
            JAVA,
            {
                "src/main/java/shop/Cart.java": ["src/main/java/shop/store/Shelf.java"],
                "src/main/java/shop/store/Shelf.java": ["src/main/java/shop/Prices.java"],
            },
            id="java",
        ),
        pytest.param(KOTLIN, {"src/shop/Cart.kt": ["src/shop/store/Shelf.kt"]}, id="kotlin"),
        pytest.param(C, {"src/main.c": ["include/store/till.h", "src/shelf.h"]}, id="c"),
        pytest.param(CPP, {"app/main.cpp": ["lib/shelf.hpp"]}, id="cpp"),
        pytest.param(RUBY, {"lib/shop.rb": ["lib/shop/cart.rb"], "lib/shop/cart.rb": ["lib/shop/shelf.rb"]}, id="ruby"),
        pytest.param(PHP, {"src/Cart.php": ["src/Store/Shelf.php", "src/prices.php"]}, id="php"),
        pytest.param(LUA, {"main.lua": ["shop/cart.lua"], "shop/cart.lua": ["shop/shelf.lua"]}, id="lua"),
        pytest.param(BASH, {"run.sh": ["lib/a.sh", "lib/b.sh"]}, id="bash"),
    ],
)
async def test_imports_lead_to_files(files: Files, edges: dict[str, list[str]], imports: Imports) -> None:
    assert json.loads(await imports(files, jq=EDGES)) == edges


async def test_cycles_come_first_and_then_what_many_import(imports: Imports) -> None:
    rows = (await imports(PYTHON)).splitlines()
    assert rows[0] == "[6 modules, 1 cycle; imported by, imports, module]"
    assert rows[1] == "cycle  src/shop/cart.py > src/shop/prices.py > src/shop/cart.py"
    assert rows[2:4] == ["   2   2  src/shop/cart.py", "   2   2  src/shop/prices.py"]


async def test_for_a_file_both_directions_are_reported(imports: Imports) -> None:
    text = await imports(PYTHON, "src/shop/prices.py")
    assert text.startswith("[src/shop/prices.py imports 2 modules of this project, 2 import it]\n")
    assert "\nimports  src/shop/cart.py, src/shop/store/shelf.py\n" in text
    assert "\nimported by  src/shop/cart.py, src/shop/store/shelf.py\n" in text


async def test_languages_whose_imports_name_no_files_are_reported(imports: Imports) -> None:
    text = await imports({"A.cs": "using System;\n", "b.swift": "import Foundation\n"})
    assert "not followed, because they name no files: csharp, swift" in text
