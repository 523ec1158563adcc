"""`i2c` and `spi`: what they do with a bus, and what they say without one."""

import sys
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Answer, CautiousTool, CheckedTool, Tool, ToolContext
from denizen.testing import FakeClock
from denizen_hardware import i2c_tool, spi_tool

Call = Callable[..., Awaitable[ToolResult]]


class Sensor:
    """A bus with one device, at 0x48, whose registers hold twice their number."""

    def __init__(self) -> None:
        self.written: list[tuple[int, list[int]]] = []
        self.closed = False

    def read(self, address: int, register: int | None, length: int) -> bytes:
        if address != 0x48:
            raise OSError(121, "Remote I/O error")
        return bytes(2 * ((register or 0) + at) for at in range(length))

    def write(self, address: int, data: Sequence[int]) -> None:
        self.read(address, None, 1)
        self.written.append((address, [*data]))

    def transfer(self, data: Sequence[int], speed: int, mode: int) -> bytes:
        self.written.append((speed, [*data, mode]))
        return bytes(255 - byte for byte in data)

    def __enter__(self) -> "Sensor":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Run a tool in a turn: `await call(i2c, action="list")`."""

    async def nobody(question: str) -> Answer:
        return Answer("call-1", allow=False)

    turn = ToolContext("session", "call-1", tmp_path, FakeClock(), lambda line: None, nobody)

    async def run(tool: Tool, **args: Any) -> ToolResult:
        return await tool.run(args, turn)

    return run


@pytest.fixture
def sensor() -> Sensor:
    return Sensor()


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("i2c-1", "i2c-20", "spidev0.0", "null"):
        (folder / name).touch()
    return folder


@pytest.fixture
def i2c(devices: Path, sensor: Sensor) -> Tool:
    return i2c_tool(devices, lambda bus: sensor)


@pytest.fixture
def spi(devices: Path, sensor: Sensor) -> Tool:
    return spi_tool(devices, lambda bus, device: sensor)


async def test_the_buses_are_listed(call: Call, i2c: Tool, spi: Tool) -> None:
    assert (await call(i2c, action="list")).text == "available: i2c-1, i2c-20"
    assert (await call(spi, action="list")).text == "available: spidev0.0"


async def test_a_scan_finds_the_devices_that_answer(call: Call, i2c: Tool, sensor: Sensor) -> None:
    assert (await call(i2c, action="scan")).text == "Devices on bus 1: 0x48 (72)"
    assert sensor.closed


async def test_a_device_is_read_from_a_register(call: Call, i2c: Tool) -> None:
    assert (await call(i2c, action="read", address=0x48, register=5, length=3)).text == "0a 0c 0e (10, 12, 14)"
    assert (await call(i2c, action="read", address=0x48)).text == "00 (0)"


async def test_bytes_are_written_after_the_register(call: Call, i2c: Tool, sensor: Sensor) -> None:
    done = await call(i2c, action="write", address=0x48, register=1, data=[2, 3])
    await call(i2c, action="write", address=0x48, data=[4])
    assert done.text == "Wrote 2 bytes to 0x48."
    assert sensor.written == [(0x48, [1, 2, 3]), (0x48, [4])]


async def test_spi_reads_by_sending_zeros_and_shows_what_a_write_returns(call: Call, spi: Tool, sensor: Sensor) -> None:
    assert (await call(spi, action="read", length=2)).text == "ff ff (255, 255)"
    assert (await call(spi, action="write", data=[1], speed=1000, mode=3)).text == "fe (254)"
    assert sensor.written == [(500_000, [0, 0, 0]), (1000, [1, 3])]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"action": "read"}, "`address` is needed"),
        ({"action": "write", "address": 0x48}, "`data` is needed"),
        ({"action": "read", "address": 2}, "`address` must be"),
        ({"action": "write", "address": 0x48, "data": [256]}, "`data` must be"),
        ({"action": "erase"}, "`action` must be"),
    ],
)
async def test_wrong_arguments_are_refused_before_anybody_is_asked(i2c: Tool, args: dict[str, Any], says: str) -> None:
    assert isinstance(i2c, CheckedTool)
    with pytest.raises(ToolRefused, match=says):
        i2c.check(args)


async def test_a_device_that_does_not_answer_is_reported(call: Call, i2c: Tool, sensor: Sensor) -> None:
    with pytest.raises(ToolRefused, match="0x50 doesn't read: Remote I/O error"):
        await call(i2c, action="read", address=0x50)
    assert sensor.closed


async def test_a_bus_that_is_not_there_is_reported_with_those_that_are(call: Call, i2c: Tool, spi: Tool) -> None:
    with pytest.raises(ToolRefused, match=r"/i2c-7 doesn't exist; available: i2c-1, i2c-20"):
        await call(i2c, action="scan", bus=7)
    with pytest.raises(ToolRefused, match=r"/spidev1.0 doesn't exist; available: spidev0.0"):
        await call(spi, action="read", bus=1)


async def test_without_a_bus_it_says_so(call: Call, tmp_path: Path) -> None:
    assert "this machine has no I2C bus" in (await call(i2c_tool(tmp_path), action="list")).text
    with pytest.raises(ToolRefused, match="this machine has no SPI bus"):
        await call(spi_tool(tmp_path), action="read")


@pytest.mark.parametrize("library", ["smbus2", "spidev"])
async def test_without_its_library_it_says_how_to_install_it(
    call: Call, devices: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    tool = i2c_tool(devices) if library == "smbus2" else spi_tool(devices)
    with pytest.raises(ToolRefused, match=f"{library} isn't installed. .* -m pip install {library}"):
        await call(tool, **({"action": "scan"} if library == "smbus2" else {"action": "read"}))


async def test_a_bus_that_may_not_be_opened_is_reported(call: Call, devices: Path) -> None:
    def refused(bus: int) -> Sensor:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(ToolRefused, match=r"i2c-1 can't be opened: Permission denied; .* group i2c"):
        await call(i2c_tool(devices, refused), action="scan")


@pytest.mark.parametrize("action", ["list", "scan", "read"])
def test_looking_needs_no_yes(i2c: Tool, action: str) -> None:
    assert isinstance(i2c, CautiousTool)
    assert not i2c.needs_yes({"action": action})


def test_a_write_needs_a_persons_yes(i2c: Tool, spi: Tool) -> None:
    assert isinstance(i2c, CautiousTool)
    assert isinstance(spi, CautiousTool)
    assert i2c.needs_yes({"action": "write", "address": 0x48, "data": [1]})
    assert spi.needs_yes({"action": "write", "data": [1]})


def test_the_package_announces_its_tools() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    [value] = project["entry-points"]["denizen.tools"].values()
    assert [tool.name for tool in EntryPoint("hardware", value, "denizen.tools").load()] == ["i2c", "spi"]
