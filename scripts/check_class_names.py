"""Check that a public class name occurs once in the package: one word names one thing."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "denizen"


def public_classes(package: Path) -> dict[str, list[str]]:
    """Where each public class is defined, by its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file.relative_to(package.parent.parent)}:{node.lineno}")
    return places


def main() -> int:
    """Print each name that more than one class has; the status is 1 if there are any."""
    duplicated = {name: found for name, found in public_classes(PACKAGE).items() if len(found) > 1}
    for name, found in sorted(duplicated.items()):
        print(f"{len(found)} classes are named {name}: {', '.join(found)}", file=sys.stderr)
    return int(bool(duplicated))


if __name__ == "__main__":
    sys.exit(main())
