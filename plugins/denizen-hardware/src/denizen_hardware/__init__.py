"""`i2c` and `spi`: devices on the buses of a small computer, such as sensors and displays (Linux)."""

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from msgspec import Meta

from denizen import tool
from denizen.errors import ToolRefused
from denizen.ports import Tool, Traits

_Opened = TypeVar("_Opened")

_FIRST, _LAST = 0x03, 0x77
"""The addresses that devices may have; the others are reserved."""
_MAX_BYTES = 256
_DEVICES = Path("/dev")

_Byte = Annotated[int, Meta(ge=0, le=255)]
_Bytes = Annotated[list[_Byte], Meta(max_length=_MAX_BYTES)]
_Length = Annotated[int, Meta(ge=1, le=_MAX_BYTES)]
_Number = Annotated[int, Meta(ge=0, le=255)]
_Address = Annotated[int, Meta(ge=_FIRST, le=_LAST)]


class I2cBus(AbstractContextManager["I2cBus"], Protocol):
    """An open I2C bus. Failures raise OSError."""

    def read(self, address: int, register: int | None, length: int) -> bytes:
        """Bytes of a device, from a register if one is named."""
        ...

    def write(self, address: int, data: Sequence[int]) -> None:
        """Send bytes to a device."""
        ...


class SpiDevice(AbstractContextManager["SpiDevice"], Protocol):
    """An open SPI device. Failures raise OSError."""

    def transfer(self, data: Sequence[int], speed: int, mode: int) -> bytes:
        """Send bytes; as many come back."""
        ...


class _SmBus:
    """A bus by smbus2: combined transactions, as any chip takes them."""

    def __init__(self, number: int) -> None:
        self._library = _library("smbus2")
        self._bus = self._library.SMBus(number)

    def read(self, address: int, register: int | None, length: int) -> bytes:
        message = self._library.i2c_msg
        answer = message.read(address, length)
        self._bus.i2c_rdwr(*([] if register is None else [message.write(address, [register])]), answer)
        return bytes(list(answer))

    def write(self, address: int, data: Sequence[int]) -> None:
        self._bus.i2c_rdwr(self._library.i2c_msg.write(address, data))

    def __enter__(self) -> "_SmBus":
        return self

    def __exit__(self, *_: object) -> None:
        self._bus.close()


class _SpiDev:
    """A device by spidev."""

    def __init__(self, bus: int, device: int) -> None:
        self._device = _library("spidev").SpiDev()
        self._device.open(bus, device)

    def transfer(self, data: Sequence[int], speed: int, mode: int) -> bytes:
        self._device.max_speed_hz, self._device.mode = speed, mode
        return bytes(self._device.xfer2([*data]))

    def __enter__(self) -> "_SpiDev":
        return self

    def __exit__(self, *_: object) -> None:
        self._device.close()


def i2c_tool(devices: Path = _DEVICES, open_bus: Callable[[int], I2cBus] = _SmBus) -> Tool:
    """The tool for the I2C buses in the folder `devices`; a write needs a person's yes."""

    def refuse(action: str, address: int | None = None, data: Sequence[int] = (), **_: object) -> None:
        if action in {"read", "write"} and address is None:
            raise ToolRefused(f"`address` is needed to {action}; `scan` lists the devices that answer")
        _check_data(action, data)

    @tool(traits=Traits.WRITES, refuse=refuse, asks=_writes)
    def i2c(
        action: Literal["list", "scan", "read", "write"],
        bus: _Number = 1,
        *,
        address: _Address | None = None,
        register: _Byte | None = None,
        length: _Length = 1,
        data: _Bytes = [],  # noqa: B006 (it isn't changed)
    ) -> str:
        """Use devices on an I2C bus: list the buses, scan one, read from or write to a device.

        Args:
            register: To begin at
            length: Bytes to read
            data: Bytes to write
        """
        refuse(action, address, data)
        if action == "list":
            return _listed("I2C", devices)
        with _opened("I2C", devices / f"i2c-{bus}", lambda: open_bus(bus)) as opened:
            if action == "scan" or address is None:
                return _scanned(opened, bus)
            try:
                if action == "read":
                    return _shown(opened.read(address, register, length))
                opened.write(address, data if register is None else [register, *data])
            except OSError as error:
                raise ToolRefused(f"{address:#04x} doesn't {action}: {error.strerror or error}") from error
            return f"Wrote {len(data)} byte{'' if len(data) == 1 else 's'} to {address:#04x}."

    return i2c


def spi_tool(devices: Path = _DEVICES, open_device: Callable[[int, int], SpiDevice] = _SpiDev) -> Tool:
    """The tool for the SPI devices in the folder `devices`; a write needs a person's yes."""

    def refuse(action: str, data: Sequence[int] = (), **_: object) -> None:
        _check_data(action, data)

    @tool(traits=Traits.WRITES, refuse=refuse, asks=_writes)
    def spi(
        action: Literal["list", "read", "write"],
        bus: _Number = 0,
        device: _Number = 0,
        *,
        length: _Length = 1,
        data: _Bytes = [],  # noqa: B006 (it isn't changed)
        speed: Annotated[int, Meta(ge=1, le=125_000_000)] = 500_000,
        mode: Annotated[int, Meta(ge=0, le=3)] = 0,
    ) -> str:
        """Use a device on an SPI bus: list the devices, read bytes (sending zeros), or write some and see what returns.

        Args:
            length: Bytes to read
            data: Bytes to write
            speed: Hz
        """
        refuse(action, data)
        if action == "list":
            return _listed("SPI", devices)
        with _opened("SPI", devices / f"spidev{bus}.{device}", lambda: open_device(bus, device)) as opened:
            try:
                return _shown(opened.transfer(data if action == "write" else [0] * length, speed, mode))
            except OSError as error:
                raise ToolRefused(f"the device doesn't {action}: {error.strerror or error}") from error

    return spi


def _writes(action: str, **_: object) -> bool:
    return action == "write"


def _opened(kind: str, device: Path, open_it: Callable[[], _Opened]) -> _Opened:
    """The open bus. Raises ToolRefused with the buses that exist, or with what is missing."""
    if not device.exists():
        raise ToolRefused(f"{device} doesn't exist; {_listed(kind, device.parent)}")
    try:
        return open_it()
    except OSError as error:
        raise ToolRefused(
            f"{device} can't be opened: {error.strerror or error}; the user may have to join the group {kind.lower()}"
        ) from error


def _library(name: str) -> Any:
    """The library of that name. Raises ToolRefused that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        command = shlex.join([sys.executable, "-m", "pip", "install", name])
        raise ToolRefused(f"{name} isn't installed. To install it, the user runs: {command}") from None


def _check_data(action: str, data: Sequence[int]) -> None:
    if action == "write" and not data:
        raise ToolRefused("`data` is needed to write: bytes from 0 to 255")


def _listed(kind: str, devices: Path) -> str:
    pattern = {"I2C": r"i2c-\d+", "SPI": r"spidev\d+\.\d+"}[kind]
    found = sorted(path.name for path in devices.iterdir() if re.fullmatch(pattern, path.name))
    if found:
        return f"available: {', '.join(found)}"
    return f"this machine has no {kind} bus, or it is off (on a Raspberry Pi: raspi-config, Interface Options)"


def _scanned(bus: I2cBus, number: int) -> str:
    """The addresses where a device answers when one byte is read."""
    found: list[str] = []
    for address in range(_FIRST, _LAST + 1):
        try:
            bus.read(address, None, 1)
        except OSError:
            continue
        found.append(f"{address:#04x} ({address})")
    return f"Devices on bus {number}: {', '.join(found)}" if found else f"No device answers on bus {number}."


def _shown(data: bytes) -> str:
    return f"{data.hex(' ')} ({', '.join(map(str, data))})"


TOOLS = [i2c_tool(), spi_tool()]
