"""Advice on how to install more names packages that there are, for the Python that runs."""

import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from denizen.config.extras import how_to_install

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("extra", ["acp", "bedrock", "hardware"])
def test_the_advice_names_what_the_extra_needs(extra: str) -> None:
    python, *words = shlex.split(how_to_install(extra))
    assert python == sys.executable
    assert words == ["-m", "pip", "install", *PROJECT["optional-dependencies"][extra]]
