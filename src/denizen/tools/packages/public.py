"""The public registries: where they answer, and the addresses by which lock files name them."""

from typing import Any, Final

PYPI: Final = "https://pypi.org"
NPM: Final = "https://registry.npmjs.org"
CRATES: Final = "https://index.crates.io"
GO: Final = "https://proxy.golang.org"
OSV: Final = "https://api.osv.dev"

_NAMED: Final = (
    f"{PYPI}/",
    f"{NPM}/",
    "https://registry.yarnpkg.com/",
    "registry+https://github.com/rust-lang/crates.io-index",
    f"sparse+{CRATES}/",
)


def is_public(source: Any) -> bool:
    """Whether a lock file's source is a public registry; where it names none it is taken for one."""
    return not isinstance(source, str) or not source or source.startswith(_NAMED)
