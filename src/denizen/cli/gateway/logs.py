"""What the gateway logs: to standard error for people, and to the home's `logs/` for programs; without secrets."""

import logging
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

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


def log_to(home: Path, redactor: Redactor) -> None:
    """Log to standard error and to `logs/gateway.jsonl` in the home, in place of where it was logged to until now."""
    folder = home / "logs"
    private_folder(folder)
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    kept = RotatingFileHandler(folder / "gateway.jsonl", maxBytes=BYTES, backupCount=FILES, encoding="utf-8")
    kept.setFormatter(JsonFormatter())
    for handler in (shown, kept):
        handler.addFilter(RedactingFilter(redactor))
    logging.basicConfig(level=logging.INFO, handlers=[shown, kept], force=True)
