"""The exceptions, grouped by who must act. Every message says what happened, to what, and what to do."""

from http import HTTPStatus
from typing import Literal

ErrorKind = Literal["auth", "rate_limit", "billing", "timeout", "context_overflow", "quota", "unknown"]
"""Categories of a provider's failure (decisions, "Seven kinds of failure")."""

RETRIABLE: frozenset[ErrorKind] = frozenset({"auth", "rate_limit", "billing", "timeout"})


class DenizenError(Exception):
    """The base of Denizen's exceptions; the text is a sentence or two for the person who must act."""

    def reword(self, message: str) -> None:
        """Replace its text: without a secret, or with what to do."""
        self.args = (message,)


class ConfigError(DenizenError):
    """The configuration or the command line is wrong: the user fixes it."""


class SessionError(DenizenError):
    """A session can't be opened, read or written: it is held by another process, unknown, or the disk refuses."""


class SessionUnknown(SessionError):
    """No session has that key."""


class SessionUnavailable(SessionError):
    """A session can't be read or written now: the disk is full, say, or the database is away. It may be later."""


class SessionHeld(SessionUnavailable):
    """A session is open elsewhere: it can be had once it is closed there."""


class ToolRefused(DenizenError):
    """A call can't be carried out as asked; the model sees its text and may correct itself."""


class OutputError(DenizenError):
    """The model's final answer isn't of the type that the caller asked for."""


class ModelError(DenizenError):
    """A provider's failure, whether it came as a status, inside a stream, or as a lost connection.

    `kind` decides what happens next; `status` is the HTTP status (0: none came); `retry_after` is in seconds;
    `profile_id` names the auth profile that was used. `window` and `max_output` are the tokens that the model sees and
    can answer, where the refusal names them (0: it doesn't). `silent`: nothing came for so
    long that the server isn't asked again.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "unknown",
        status: int = 0,
        retry_after: float | None = None,
        provider: str = "",
        profile_id: str = "",
        window: int = 0,
        max_output: int = 0,
        silent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.status = status
        self.retry_after = retry_after
        self.provider = provider
        self.profile_id = profile_id
        self.window = window
        self.max_output = max_output
        self.silent = silent

    @property
    def message(self) -> str:
        """The message, with its advice."""
        return str(self)

    @property
    def refuses_content(self) -> bool:
        """Whether the provider won't take the request as it is: the same content would be refused again."""
        return self.kind == "unknown" and self.status == HTTPStatus.BAD_REQUEST

    @property
    def retriable(self) -> bool:
        """Whether another try, or another auth profile, may help."""
        return self.kind in RETRIABLE
