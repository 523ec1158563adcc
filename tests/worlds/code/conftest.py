"""A host that records."""

import pytest
from tests.engine.scene import Host


@pytest.fixture
def host() -> Host:
    return Host()
