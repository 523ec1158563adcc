"""What it costs to have a configuration."""

import subprocess
import sys


def test_only_msgspec_is_imported_besides_the_standard_library() -> None:
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import denizen.config\n"
        "added = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(added - set(sys.stdlib_module_names)))\n"
        "print(*sorted(added & {'asyncio', 'json', 'difflib', 'hashlib', 'shlex', 'logging'}))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["denizen msgspec typing_extensions", ""]
