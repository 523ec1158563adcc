"""What the gateway logs: to standard error for people, and to the home's `logs/` for programs; without secrets."""

import logging
import os
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import cast

import msgspec

from denizen.config.home import private_folder
from denizen.config.redact import RedactingFilter, Redactor

BYTES, FILES = 10_000_000, 5
"""Bytes of a file, and how many older ones are kept."""


class JsonFormatter(logging.Formatter):
    """Each record as an object on a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """`{"at", "level", "logger", "message"}`, and `traceback` where there is one."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_text:
            line["traceback"] = record.exc_text
        return msgspec.json.encode(line).decode()


class PrivateFile(RotatingFileHandler):
    """A file of the user's alone (0600), and so are those that it is rotated to."""

    def _open(self) -> TextIOWrapper:
        opener = partial(os.open, mode=0o600)
        return cast("TextIOWrapper", open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener))


def log_to(home: Path, name: str, redactor: Redactor) -> None:
    """Log to standard error and to `logs/<name>.jsonl` in the home, in place of where it was logged to until now."""
    folder = home / "logs"
    private_folder(folder)
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    kept = PrivateFile(folder / f"{name}.jsonl", maxBytes=BYTES, backupCount=FILES, encoding="utf-8")
    kept.setFormatter(JsonFormatter())
    for handler in (shown, kept):
        handler.addFilter(RedactingFilter(redactor))
    logging.basicConfig(level=logging.INFO, handlers=[shown, kept], force=True)
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # a connection that breaks is reported by who needs it
