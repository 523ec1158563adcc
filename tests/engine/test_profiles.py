"""Profiles, by name."""

import pytest

from denizen.engine.profiles import find_profile
from denizen.errors import ConfigError


def test_an_unknown_profile_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"^There is no profile 'wizard'; there is: .*coder.*\.$"):
        find_profile("wizard")
