"""The pytest plugin costs nothing until a test asks for a server."""

import subprocess
import sys


def test_plugin_imports_no_server() -> None:
    program = (
        "import sys, denizen.testing.plugin; print({'aiohttp', 'msgspec', 'denizen.testing.loopback'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_everything_promised_is_there() -> None:
    import denizen.testing

    for name in denizen.testing.__all__:
        assert getattr(denizen.testing, name).__name__ == name
