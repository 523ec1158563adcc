"""What was accepted is kept as it was."""

from pathlib import Path

import pytest

from denizen.config.pins import Pins
from denizen.errors import ConfigError


@pytest.fixture
def pins(tmp_path: Path) -> Pins[list[str]]:
    return Pins(tmp_path / "home" / "kind", list[str])


def test_what_was_written_is_read_by_its_name_alone(pins: Pins[list[str]], tmp_path: Path) -> None:
    assert pins.read("one") is None
    pins.write("one", ["accepted"])
    assert (pins.read("one"), pins.read("two")) == (["accepted"], None)
    (path,) = (tmp_path / "home" / "kind").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("written", "why"),
    [(b"{", "can't be read"), (b'{"sha256":"","pin":[]}', "was changed"), (b"\xff", "can't be read")],
)
def test_one_that_was_damaged_or_changed_says_what_to_do(
    pins: Pins[list[str]], tmp_path: Path, written: bytes, why: str
) -> None:
    pins.write("one", ["accepted"])
    (tmp_path / "home" / "kind" / "one.json").write_bytes(written)
    with pytest.raises(ConfigError, match=f"{why}.* Check what it pins"):
        pins.read("one")


def test_one_that_could_not_be_read_back_is_refused(pins: Pins[list[str]]) -> None:
    pins.write("one", ["accepted"])
    with pytest.raises(ConfigError, match="too large to read back"):
        pins.write("one", ["\x01" * 3_000_000])
    assert pins.read("one") == ["accepted"]
