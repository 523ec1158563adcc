"""How files are kept and read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from denizen.config.files import read_file, write_private


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o600)
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_private(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    script = (
        "import resource, signal, sys, pathlib\n"
        "from denizen.config.files import write_private\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_private(pathlib.Path(sys.argv[1]), b'x' * 2000)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, tmp_path / "file"], capture_output=True, text=True, check=False)
    assert "ConfigError" in run.stderr.splitlines()[-1]
    assert "can't be written" in run.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_a_missing_file_reads_as_none(tmp_path: Path) -> None:
    assert read_file(tmp_path / "missing", 10) is None


def test_no_more_is_read_than_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("0123456789")
    assert read_file(tmp_path / "file", 4) == b"0123"


def test_what_is_not_a_regular_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"regular file|directory"):
            read_file(path, 10)
