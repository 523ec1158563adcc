"""Finding the driver that the configuration names: one of ours, one of a package's, or one in a file."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from denizen.config.home import expand
from denizen.config.plugins import entry_points, load_entry_point
from denizen.engine.drivers import PlanningDriver, ReflectiveDriver, SimpleDriver
from denizen.engine.record import NewDriver
from denizen.errors import ConfigError
from denizen.ports import Tool
from denizen.tools.task import task


class FoundDriver(msgspec.Struct, frozen=True):
    """The maker of a turn's driver, and the tools that the driver needs."""

    new: NewDriver
    tools: Sequence[Tool] = ()

    def with_tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """The tools, with the driver's own ones added."""
        names = {tool.name for tool in tools}
        return [*tools, *(tool for tool in self.tools if tool.name not in names)]


DRIVERS: Mapping[str, FoundDriver] = {
    "simple": FoundDriver(SimpleDriver),
    "planning": FoundDriver(PlanningDriver, (task,)),
    "reflective": FoundDriver(ReflectiveDriver),
}


def find_driver(name: str, *, home: Path, environ: Mapping[str, str]) -> FoundDriver:
    """The driver of that name; `my_driver.py`, or any name with a slash, is a file, relative to `home`.

    A driver's class may bring tools along, as its attribute `tools`. Raises ConfigError that lists the drivers, or
    says what is wrong with the file or the package.
    """
    if name in DRIVERS:
        return DRIVERS[name]
    is_file = name.endswith(".py") or os.sep in name
    driver = _in_file(home / expand(name, environ)) if is_file else _of_package(name)
    return FoundDriver(driver, getattr(driver, "tools", ()))


def _of_package(name: str) -> NewDriver:
    found = {entry.name: entry for entry in entry_points("denizen.drivers")}
    if name not in found:
        available = ", ".join([*DRIVERS, *found])
        raise ConfigError(f'There is no driver {name!r}. Available: {available}, or your own file: driver = "~/my.py".')
    driver = load_entry_point(found[name], "driver")
    if not callable(driver):
        raise ConfigError(f"The driver {name!r} of {found[name].value} isn't a class. Update or remove its package.")
    return driver


def _in_file(path: Path) -> NewDriver:
    module = _loaded(path)
    drivers = [each for each in vars(module).values() if _is_driver(each) and each.__module__ == module.__name__]
    if len(drivers) != 1:
        found = ", ".join(each.__name__ for each in drivers) or "none"
        raise ConfigError(f"{path} must define one class with decide() and observe(); it defines {found}.")
    return drivers[0]


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"denizen_driver_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"There is no driver in {path}: it must be a Python file.")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look for it there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as broken:  # the boundary to the user's file: whatever it raises, the user must act
        del sys.modules[spec.name]
        raise ConfigError(f"The driver in {path} can't be loaded: {type(broken).__name__}: {broken}.") from broken
    return module


def _is_driver(value: object) -> bool:
    return isinstance(value, type) and all(callable(getattr(value, name, None)) for name in ("decide", "observe"))
