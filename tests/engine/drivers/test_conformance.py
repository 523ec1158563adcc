"""Our drivers pass the suite that we ship."""

from collections.abc import Callable

import pytest

from denizen.engine.drivers import LoopGuardedDriver
from denizen.engine.loops import Loops
from denizen.ports import Driver
from denizen.testing import DriverConformance
from denizen.worlds.drivers import DRIVERS


class TestOurs(DriverConformance):
    @pytest.fixture(params=DRIVERS)
    def new_driver(self, request: pytest.FixtureRequest) -> Callable[[], Driver]:
        return DRIVERS[request.param].new


class TestWatched(DriverConformance):
    @pytest.fixture(params=DRIVERS)
    def new_driver(self, request: pytest.FixtureRequest) -> Callable[[], Driver]:
        return lambda: LoopGuardedDriver(DRIVERS[request.param].new(), Loops({"change"}, lambda call: call.name))
