"""The tables `[people.NAME]`."""

from pathlib import Path

import pytest

from denizen import load_config
from denizen.config.people import Person
from denizen.errors import ConfigError


def test_person_has_an_id_on_each_channel(tmp_path: Path) -> None:
    (tmp_path / "denizen.toml").write_text('[people.ann]\nirc = "ann"\nmatrix = "@ann:x"\nowner = true\n')
    people = load_config(home=tmp_path, environ={}, cwd=tmp_path).people
    assert Person.of("ann", people["ann"]) == Person("ann", {"irc": "ann", "matrix": "@ann:x"}, is_owner=True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('session = "two"', 'people.ann.session must be "one" or "per channel"'),
        ('owner = "yes"', "people.ann.owner must be true or false"),
        ("irc = true", "people.ann.irc must be the person's id"),
        ("irc = 4711", "people.ann.irc: expected a string"),
    ],
)
def test_mistake_in_a_person_is_reported_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "denizen.toml").write_text(f"[people.ann]\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        load_config(home=tmp_path, environ={}, cwd=tmp_path)
    assert problem in str(refused.value)
    assert "denizen.toml:" in str(refused.value)
