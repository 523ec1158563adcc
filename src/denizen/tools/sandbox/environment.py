"""The environment of commands: the user's without secrets, and with settings that keep programs from asking."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from denizen.config.pattern import pattern
from denizen.config.redact import KNOWN_KEY, Redactor, is_secret
from denizen.config.settings import SandboxSettings

_WITHHELD_NAMES = pattern(
    r"SSH_AUTH_SOCK|SSH_AGENT_PID|DBUS_SESSION_BUS_ADDRESS|XDG_RUNTIME_DIR|DISPLAY|WAYLAND_DISPLAY"
    r"|LD_PRELOAD|LD_AUDIT|ENV|BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|PROMPT_COMMAND"
    r"|GIT_(?!AUTHOR_|COMMITTER_).*"
)
"""Services of the user's session, and what changes the behaviour of every shell, program or git."""
_FIXED_VARIABLES = {
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


class CommandEnvironment:
    """The variables of `environ` that commands get: all but secrets, those in `secrets` too, and what leads out.

    `notice` names what was left out. What `settings` names as `environment` is passed in any case.
    """

    def __init__(self, settings: SandboxSettings, environ: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        redactor = Redactor.from_environ(environ, secrets)

        def is_kept_out(name: str, value: str) -> bool:
            return (
                _WITHHELD_NAMES.fullmatch(name) is not None
                or any(fnmatchcase(name, pattern) for pattern in settings.withhold)
                or is_secret(name, value, even_words=True)
                or KNOWN_KEY.search(value) is not None
                or redactor.text(value) != value
            )

        kept_out = {
            name
            for name, value in environ.items()
            if name not in settings.environment and name not in _FIXED_VARIABLES and is_kept_out(name, value)
        }
        named = {name: environ[name] for name in settings.environment if name in environ}
        passed = {name: value for name, value in environ.items() if name not in kept_out}
        self.variables = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | passed | _FIXED_VARIABLES | named
        names = ", ".join(sorted(kept_out))
        self.notice = (
            f"Commands don't get these environment variables: {names}. Those in `sandbox.environment` they do."
            if names
            else ""
        )
