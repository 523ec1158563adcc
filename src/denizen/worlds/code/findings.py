"""What an auditor found: lines of an answer, as data, as a table, as SARIF."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO")
_LINE = re.compile(
    rf"^[\s>*•-]*(?:\[|\*\*)?({'|'.join(SEVERITIES)})(?:\]|\*\*)?:?\s+"
    r"`?([^\s`]+?):(\d{1,9})(?:-(\d{1,9})|:\d+)?`?[:\s]\s*(\S.*)$",
    re.IGNORECASE,
)
_LEVELS = {"CRITICAL": "error", "HIGH": "error", "MEDIUM": "warning", "LOW": "note", "INFO": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "A model found this by reading the code: see for yourself before you act on it."


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
    """The findings as a Markdown table; nothing where there are none."""
    rows = [
        f"| {finding.severity} | {finding.place} | " + finding.text.replace("|", r"\|") + " |" for finding in findings
    ]
    return "\n".join(["| severity | place | finding |", "|---|---|---|", *rows]) if rows else ""


def sarif_of(findings: Sequence[Finding], version: str, workspace: Path) -> dict[str, Any]:
    """The findings in the Static Analysis Results Interchange Format 2.1.0 (OASIS), with paths from the workspace."""
    rules = sorted({finding.severity for finding in findings}, key=SEVERITIES.index)
    driver = {"name": "denizen", "version": version, "rules": [_rule(severity) for severity in rules]}
    run = {"tool": {"driver": driver}, "results": [_result(finding, workspace) for finding in findings]}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(severity: str) -> dict[str, Any]:
    told = {"text": f"An auditor's finding of {severity.lower()} severity."}
    return {
        "id": severity,
        "shortDescription": told,
        "fullDescription": told,  # code hosts want each of the three texts
        "help": {"text": _HELP},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _result(finding: Finding, workspace: Path) -> dict[str, Any]:
    place = {
        "artifactLocation": _place(finding.path, workspace),
        "region": {"startLine": max(finding.line, 1), **({"endLine": finding.last} if finding.last else {})},
    }
    return {
        "ruleId": finding.severity,
        "level": _LEVELS[finding.severity],
        "message": {"text": _plain(finding.text)},
        "locations": [{"physicalLocation": place}],
    }


def _plain(text: str) -> str:
    """A text without placeholders: SARIF doubles braces that are meant as such (§ 3.11.5)."""
    return text.replace("{", "{{").replace("}", "}}")


def _place(path: str, workspace: Path) -> dict[str, str]:
    place = Path(os.path.normpath(workspace / path))
    if not place.is_relative_to(workspace):
        return {"uri": place.as_uri()}
    return {"uri": quote(place.relative_to(workspace).as_posix()), "uriBaseId": "%SRCROOT%"}
