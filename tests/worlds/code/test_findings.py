"""An auditor's answer as data."""

import json
from pathlib import Path

import fastjsonschema
import pytest

from denizen.worlds.code.roles import SEVERITIES, Finding, findings_of, sarif_of, table_of

SCHEMA = Path(__file__).parents[2] / "data" / "sarif" / "sarif-2.1.0-rtm.5.json"
PLACES = ("src/a.py", "./a b.py", "a:b.py", "../out.py", "/project/lib/ü%20.py", ".", "src/")


@pytest.mark.parametrize(
    "line",
    [
        "HIGH src/a.py:12 reads past the end",
        "- HIGH src/a.py:12 reads past the end",
        "* **HIGH** `src/a.py:12` reads past the end",
        "[HIGH] src/a.py:12: reads past the end",
        "high src/a.py:12-12 reads past the end",
        "HIGH: src/a.py:12:5 reads past the end",
    ],
)
def test_a_finding_is_read_as_models_write_it(line: str) -> None:
    assert findings_of(line) == ([Finding("HIGH", "src/a.py", 12, "reads past the end")], [])


def test_a_finding_keeps_its_last_line() -> None:
    findings, _ = findings_of("HIGH a.py:1-3 reads past the end")
    assert table_of(findings).splitlines()[2] == "| HIGH | a.py:1-3 | reads past the end |"
    (result,) = sarif_of(findings, "1.0", Path("/project"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1, "endLine": 3}


def test_the_worst_comes_first_and_other_lines_are_kept() -> None:
    findings, others = findings_of("I looked.\n\nLOW a.py:1 x\nCRITICAL b.py:2 y\nMEDIUM c.py:3 z\nHIGH is my mood")
    assert [finding.severity for finding in findings] == ["CRITICAL", "MEDIUM", "LOW"]
    assert others == ["I looked.", "HIGH is my mood"]
    assert table_of(findings).splitlines()[2] == "| CRITICAL | b.py:2 | y |"


def test_a_place_that_is_none_is_no_finding() -> None:
    assert findings_of(f"HIGH a.py:{'9' * 5000} x")[0] == []


def test_what_is_outside_of_the_workspace_is_named_in_full() -> None:
    (result,) = sarif_of([Finding("LOW", "../b c.py", 1, "x")], "1.0", Path("/project"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///b%20c.py"}


def test_sarif_names_the_tool_the_rules_and_the_places() -> None:
    found = [Finding("LOW", "./a b.py", 0, "x"), Finding("HIGH", "/project/lib/b.py", 2, "y")]
    sarif = sarif_of(found, "1.0", Path("/project"))
    (run,) = sarif["runs"]
    assert sarif["version"] == "2.1.0"
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("denizen", "1.0")
    assert [rule["id"] for rule in driver["rules"]] == ["HIGH", "LOW"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.py"
    assert place["region"] == {"startLine": 1}
    assert run["results"][1]["level"] == "error"
    assert run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "lib/b.py"


def test_each_rule_says_what_code_hosts_show_of_it() -> None:
    found = [Finding(severity, "a.py", 1, "x") for severity in SEVERITIES]
    rules = sarif_of(found, "1.0", Path("/project"))["runs"][0]["tool"]["driver"]["rules"]
    assert all(rule[text]["text"] for rule in rules for text in ("shortDescription", "fullDescription", "help"))
    levels = [rule["defaultConfiguration"]["level"] for rule in rules]
    assert levels == ["error", "error", "warning", "note", "note"]


def test_braces_in_a_finding_are_no_placeholders() -> None:
    (result,) = sarif_of([Finding("LOW", "a.py", 1, 'f"{x}" is {0}')], "1.0", Path("/project"))["runs"][0]["results"]
    assert result["message"] == {"text": 'f"{{x}}" is {{0}}'}


@pytest.mark.parametrize("severities", [(), SEVERITIES])
def test_sarif_is_what_its_schema_allows(severities: tuple[str, ...]) -> None:
    found = [Finding(severity, place, line, "{x}") for severity in severities for place in PLACES for line in (0, 7)]
    valid = fastjsonschema.compile(json.loads(SCHEMA.read_bytes()))
    assert len(valid(sarif_of(found, "1.0", Path("/project")))["runs"][0]["results"]) == len(found)
