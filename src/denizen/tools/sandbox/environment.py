"""The environment of commands: a few harmless variables, and what keeps programs from waiting for a person."""

from collections.abc import Mapping, Sequence

_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "JAVA_HOME"),
        *("CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "SDKMAN_DIR", "BUN_INSTALL", "DENO_DIR", "ASDF_DATA_DIR"),
    }
)
_FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",  # it would wait for a person, and a message that git proposes is taken as it is
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_OPTIONAL_LOCKS": "0",  # `git status` would refresh its index, which a sandbox keeps it from
    "DEBIAN_FRONTEND": "noninteractive",
    "PYTHONUNBUFFERED": "1",
    "CI": "1",
}


def scrubbed(environ: Mapping[str, str], further: Sequence[str] = ()) -> dict[str, str]:
    """What a command may see of `environ`: no keys or tokens, unless `further` names them."""
    kept = {
        name: value for name, value in environ.items() if name in _KEPT or name.startswith("LC_") or name in further
    }
    return {"PATH": "/usr/local/bin:/usr/bin:/bin"} | _FIXED | kept
