"""Roles of a coding agent, and the findings in an auditor's answer, as data, table or SARIF.

Decisions, "Roles and validators".
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from denizen.errors import ConfigError

SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO")
_LINE = re.compile(
    rf"^[\s>*•-]*(?:\[|\*\*)?({'|'.join(SEVERITIES)})(?:\]|\*\*)?:?\s+"
    r"`?([^\s`]+?):(\d{1,9})(?:-(\d{1,9})|:\d+)?`?[:\s]\s*(\S.*)$",
    re.IGNORECASE,
)
_LEVELS = {"CRITICAL": "error", "HIGH": "error", "MEDIUM": "warning", "LOW": "note", "INFO": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "A model found this by reading the code: verify it before you act on it."


@dataclass(frozen=True, slots=True)
class Role:
    """A way of working: its `instructions` go with the task; `reads_only`: it changes nothing; `validates`: its
    changes must pass the project's validators.
    """

    name: str
    instructions: str
    reads_only: bool = False
    validates: bool = False


INVESTIGATOR = Role(
    "investigator",
    "You investigate; you change nothing. Find the answer in the code and name the places that prove it as path:line. "
    "Say what you are sure of, what you infer, and what you could not find.",
    reads_only=True,
)
AUDITOR = Role(
    "auditor",
    "You audit; you change nothing. Look for what is wrong, not for what is a matter of taste, and check each finding "
    "in the code before you report it. Answer with one finding per line, the worst first, each exactly\n"
    "SEVERITY path:line what is wrong, and what follows from it\n"
    "with SEVERITY one of CRITICAL, HIGH, MEDIUM, LOW, INFO. Write nothing else; if nothing is wrong, write: "
    "No findings.",
    reads_only=True,
)
REFACTORER = Role(
    "refactorer",
    "You refactor: the behaviour stays, the code gets better. Work in small steps, keep what others call as it is "
    "unless the task says otherwise, and look at the callers of what you change. The project's checks run when you "
    "are done, and you get what fails.",
    validates=True,
)

ROLES = {role.name: role for role in (INVESTIGATOR, AUDITOR, REFACTORER)}


def find_role(name: str) -> Role:
    """The role of that name. Raises ConfigError naming those there are."""
    if name not in ROLES:
        raise ConfigError(f"There is no role {name!r}; available: {', '.join(ROLES)}.")
    return ROLES[name]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a place, a line or those up to `last`; `severity` is one of `SEVERITIES`."""

    severity: str
    path: str
    line: int
    text: str
    last: int | None = None

    @property
    def place(self) -> str:
        """`a.py:1-3`."""
        return f"{self.path}:{self.line}" + (f"-{self.last}" if self.last else "")


def findings_of(answer: str) -> tuple[list[Finding], list[str]]:
    """The findings of an answer, the worst first, and its lines that are none."""
    findings: list[Finding] = []
    others: list[str] = []
    for line in answer.splitlines():
        match = _LINE.match(line)
        if match:
            severity, path, number, last, text = match.groups()
            end = int(last) if last and int(last) > int(number) else None
            findings.append(Finding(severity.upper(), path, int(number), text.strip(), end))
        elif line.strip():
            others.append(line)
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)), others


def table_of(findings: Sequence[Finding]) -> str:
    """The findings as a Markdown table; nothing if there are none."""
    rows = [
        f"| {finding.severity} | {finding.place} | " + finding.text.replace("|", r"\|") + " |" for finding in findings
    ]
    return "\n".join(["| severity | place | finding |", "|---|---|---|", *rows]) if rows else ""


def sarif_of(findings: Sequence[Finding], version: str, workspace: Path) -> dict[str, Any]:
    """The findings in the Static Analysis Results Interchange Format 2.1.0 (OASIS), with paths from the workspace."""
    rules: list[dict[str, Any]] = []
    for severity in sorted({finding.severity for finding in findings}, key=SEVERITIES.index):
        text = {"text": f"An auditor's finding of {severity.lower()} severity."}
        rules.append(
            {
                "id": severity,
                "shortDescription": text,
                "fullDescription": text,  # code hosts want each of the three texts
                "help": {"text": _HELP},
                "defaultConfiguration": {"level": _LEVELS[severity]},
            }
        )
    results: list[dict[str, Any]] = []
    for finding in findings:
        path = Path(os.path.normpath(workspace / finding.path))
        location = {"uri": path.as_uri()}
        if path.is_relative_to(workspace):
            location = {"uri": quote(path.relative_to(workspace).as_posix()), "uriBaseId": "%SRCROOT%"}
        end = {"endLine": finding.last} if finding.last else {}
        region = {"startLine": max(finding.line, 1), **end}
        results.append(
            {
                "ruleId": finding.severity,
                "level": _LEVELS[finding.severity],
                # SARIF doubles braces that aren't placeholders (§ 3.11.5)
                "message": {"text": finding.text.replace("{", "{{").replace("}", "}}")},
                "locations": [{"physicalLocation": {"artifactLocation": location, "region": region}}],
            }
        )
    driver = {"name": "denizen", "version": version, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
