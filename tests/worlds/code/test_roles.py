"""The roles of the coding agent, by name."""

import pytest

from denizen.errors import ConfigError
from denizen.worlds.code.roles import find_role


def test_an_unknown_role_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"^There is no role 'wizard'; available: .*auditor.*\.$"):
        find_role("wizard")
