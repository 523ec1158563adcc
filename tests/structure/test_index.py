"""The index of a project: refreshed where files changed, and never in the way."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.structure import Index, RefreshCounts, SourceFile, use_index
from denizen.structure.index import BATCH_FILES


class Project:
    """Files in a folder, and the index of them."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder = folder
        self.database = database
        self.read: list[str] = []

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            path = self.folder / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(path)

    def files(self) -> Iterator[SourceFile]:
        for path in sorted(self.folder.rglob("*.*")):
            found = path.stat()
            name = str(path.relative_to(self.folder))
            yield SourceFile(name, (found.st_size, found.st_mtime_ns, found.st_ino), self._reader(path, name))

    def _reader(self, path: Path, name: str) -> Callable[[], bytes | None]:
        def read() -> bytes:
            self.read.append(name)
            return path.read_bytes()

        return read

    def refresh(self, below: str = "", stop: threading.Event | None = None) -> RefreshCounts:
        files = [file for file in self.files() if file.path.startswith(below)]
        return use_index(self.database, lambda index: index.refresh(files, below=below, stop=stop))

    def symbols(self, *, name: str = "", below: str = "") -> list[str]:
        return use_index(self.database, lambda index: [each.path for each in index.symbols(name=name, below=below)])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", tmp_path / "home/index.db")
    project.write(
        store="LIMIT = 1\nclass Store:\n    def add(self, part):\n        check(part)\n        return part\n",
        tools__check="from store import Store\ndef check(part):\n    return Store().add(part)\n",
    )
    return project


def test_only_what_changed_is_read_again(project: Project) -> None:
    assert project.refresh() == RefreshCounts(seen=2, parsed=2)
    assert project.refresh() == RefreshCounts(seen=2)
    project.read.clear()
    project.write(store="def other(): pass\n")
    assert project.refresh() == RefreshCounts(seen=2, parsed=1)
    assert project.read == ["store.py"]
    assert project.symbols() == ["store.py/other", "tools/check.py/check"]


def test_what_is_gone_goes(project: Project) -> None:
    project.refresh()
    (project.folder / "store.py").unlink()
    assert project.refresh() == RefreshCounts(seen=1, removed=1)
    assert project.symbols() == ["tools/check.py/check"]


def test_a_part_of_the_project_is_refreshed_alone(project: Project) -> None:
    project.refresh()
    (project.folder / "store.py").unlink()
    project.write(tools__check="def other(): pass\n")
    assert project.refresh(below="tools") == RefreshCounts(seen=1, parsed=1)
    assert "store.py/Store" in project.symbols()
    assert project.symbols(below="tools") == ["tools/check.py/other"]


def test_symbols_are_found_by_name_kind_and_place(project: Project) -> None:
    project.refresh()
    assert project.symbols(name="add") == ["store.py/Store/add"]
    assert project.symbols(name="store") == []

    def ask(index: Index) -> list[str]:
        found = [*index.symbols(name="STORE", exact=False), *index.symbols(kinds={"constant"}, below="store.py")]
        return [each.path for each in found]

    assert use_index(project.database, ask) == ["store.py/Store", "store.py/LIMIT"]


def test_references_tell_where_they_are(project: Project) -> None:
    project.refresh()

    def callers(index: Index) -> list[tuple[str, str]]:
        mentions = index.references(name="add", kinds={"call"})
        return [(each.file, each.within.path if each.within else "") for each in mentions]

    def called(index: Index) -> list[str]:
        add = index.symbols(name="add")[0]
        inside = index.references(kinds={"call"}, below=add.file, lines=(add.symbol.first, add.symbol.last))
        return [each.reference.name for each in inside]

    assert use_index(project.database, callers) == [("tools/check.py", "check")]
    assert use_index(project.database, called) == ["check"]


def test_files_that_cannot_be_parsed_are_known_with_the_reason(project: Project) -> None:
    project.write(large="x = 1\n" * 200_000, broken="def f(:\n", binary="")
    (project.folder / "notes.md").write_text("no code")
    (project.folder / "gone.py").symlink_to("nowhere")

    def files() -> Iterator[SourceFile]:
        yield SourceFile("binary.py", (1, 1, 1), lambda: None)
        yield SourceFile("gone.py", (1, 1, 2), (project.folder / "gone.py").read_bytes)
        for name in ("large.py", "broken.py", "notes.md"):
            path = project.folder / name
            yield SourceFile(name, (path.stat().st_size, 1, 3), path.read_bytes)

    def known(index: Index) -> dict[str, tuple[str, bool]]:
        index.refresh(files())
        return {each.path: (each.note, bool(each.problems)) for each in index.files()}

    assert use_index(project.database, known) == {
        "broken.py": ("", True),
        "gone.py": ("not read: No such file or directory", False),
        "large.py": ("over 1 MB, not parsed", False),
    }


def test_a_stopped_refresh_keeps_what_it_has_and_removes_nothing(project: Project) -> None:
    project.refresh()
    stop = threading.Event()
    stop.set()
    (project.folder / "store.py").unlink()
    assert project.refresh(stop=stop) == RefreshCounts(whole=False)
    assert "store.py/Store" in project.symbols()


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_file_is_made_anew(damage: bytes, project: Project) -> None:
    project.refresh()
    for path in project.database.parent.glob("index.db*"):
        path.unlink()
    project.database.write_bytes(damage)
    assert project.refresh() == RefreshCounts(seen=2, parsed=2)
    assert "store.py/Store" in project.symbols()


def test_damage_found_later_is_fixed_too(project: Project) -> None:
    project.write(**{f"m{number}": "def f(): g()\n" * 200 for number in range(20)})
    project.refresh()
    with project.database.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (project.database.stat().st_size - 8192))

    def refreshed(index: Index) -> int:
        index.refresh(project.files())
        return len(index.symbols(name="f"))

    assert use_index(project.database, refreshed) == 4000


def test_the_index_of_another_version_is_made_anew(project: Project) -> None:
    project.refresh()
    database = sqlite3.connect(project.database)
    database.execute("PRAGMA user_version = 77")
    database.close()
    assert project.refresh() == RefreshCounts(seen=2, parsed=2)


def test_it_is_for_the_user_alone(project: Project) -> None:
    project.refresh()
    assert project.database.stat().st_mode & 0o777 == 0o600
    assert project.database.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.db").mkdir()
    with pytest.raises(ToolRefused, match=r"the code index .*index\.db can't be used: .*delete it"):
        use_index(tmp_path / "index.db", lambda index: index.files())


WORKER = """
    import sys
    from pathlib import Path
    from denizen.structure import SourceFile, use_index
    root, database, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    def files(round):
        for path in sorted(root.glob("*.py")):
            print(path.name, flush=True)
            yield SourceFile(path.name, (1, round, 1), path.read_bytes)
    for round in range(rounds):
        use_index(database, lambda index: index.refresh(files(round)))
"""


def worker(project: Project, rounds: int) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", textwrap.dedent(WORKER), str(project.folder), str(project.database), str(rounds)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, env=dict(os.environ))


def test_several_processes_use_it_at_once(project: Project) -> None:
    project.write(**{f"m{number}": f"def f{number}(): pass\n" for number in range(30)})
    workers = [worker(project, rounds=5) for _ in range(3)]
    assert [process.communicate() and process.returncode for process in workers] == [0, 0, 0]
    assert project.refresh().seen == 32
    assert len(project.symbols(below="m7.py")) == 1


def test_a_process_that_dies_in_the_middle_leaves_an_index_that_is_right(project: Project) -> None:
    count = 3 * BATCH_FILES
    project.write(**{f"m{number:04}": f"def f{number}(): pass\n" for number in range(count)})
    process = worker(project, rounds=1)
    assert process.stdout
    for _ in range(count // 2):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert project.refresh().seen == count + 2
    assert project.symbols(below="m0007.py") == ["m0007.py/f7"]
    assert len(project.symbols()) == count + 4
