"""What the gateway logs: to standard error for people, and to the home's `logs/` for programs; without secrets."""

import logging
import os
import sys
import time
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import cast

import msgspec

from denizen.cli.output import say
from denizen.config.home import private_folder
from denizen.config.redact import RedactingFilter, Redactor

MAX_FILE_BYTES, BACKUP_FILES = 10_000_000, 5
"""Bytes of a file, and how many older ones are kept."""
REPEATED_AFTER_S = 60.0
"""Seconds before the same line is logged again."""
MAX_LINES = 1_000
"""Lines that are remembered for that."""


class JsonFormatter(logging.Formatter):
    """Each record as an object on a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """`{"at", "level", "logger", "message"}`, and `traceback` if there is one."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_text:
            line["traceback"] = record.exc_text
        return msgspec.json.encode(line).decode()


class PrivateFile(RotatingFileHandler):
    """A file of the user's alone (0600), and so are those that it is rotated to."""

    _failures = 0

    def _open(self) -> TextIOWrapper:
        opener = partial(os.open, mode=0o600)
        return cast("TextIOWrapper", open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener))

    def emit(self, record: logging.LogRecord) -> None:
        before = self._failures
        super().emit(record)
        if self._failures == before:
            self._failures = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Report a full disk in one line, not with a traceback for each record."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._failures += 1
        if self._failures == 1:
            say(f"{self.baseFilename} can't be written: {error.strerror}. Until then, the log is only here.")


class RepeatFilter(logging.Filter):
    """Leaves out a line that was logged within the last minute."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, line = time.monotonic(), (record.levelname, record.getMessage())
        if now - self._logged.get(line, -REPEATED_AFTER_S) < REPEATED_AFTER_S:
            return False
        if len(self._logged) == MAX_LINES:
            self._logged.clear()
        self._logged[line] = now
        return True


def log_to(home: Path, name: str, redactor: Redactor) -> None:
    """Log to standard error and to `logs/<name>.jsonl` in the home, in place of where it was logged to until now."""
    folder = home / "logs"
    private_folder(folder)
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    kept = PrivateFile(folder / f"{name}.jsonl", maxBytes=MAX_FILE_BYTES, backupCount=BACKUP_FILES, encoding="utf-8")
    kept.setFormatter(JsonFormatter())
    for handler in (shown, kept):
        handler.addFilter(RedactingFilter(redactor))
        handler.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.INFO, handlers=[shown, kept], force=True)
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # a connection that breaks is reported by who needs it
