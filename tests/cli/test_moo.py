"""`denizen moo` as a program."""

from pathlib import Path

from tests.cli.conftest import Run

from denizen.worlds.moo.folder import open_folder


def test_init_makes_a_directory_that_can_be_opened(denizen: Run, tmp_path: Path, environ: dict[str, str]) -> None:
    folder = tmp_path / "Mason"
    ran = denizen("moo", "init", str(folder), "--host", "moo.example", "--model", "offline")
    assert (ran.status, ran.err) == (0, "")
    assert f"denizen moo run {folder}" in ran.out
    opened = open_folder(folder, environ=environ)
    assert (opened.settings.host, opened.settings.user, opened.loaded.config.model) == (
        "moo.example",
        "mason",
        "offline",
    )
    assert "MOO_MASON_PASSWORD" in (folder / "denizen.toml").read_text()


def test_init_writes_over_nothing_unless_it_is_told_to(denizen: Run, tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("# Name\nAnn\n")
    ran = denizen("moo", "init", str(tmp_path))
    assert (ran.status, (tmp_path / "SOUL.md").read_text()) == (2, "# Name\nAnn\n")
    assert "has SOUL.md already" in ran.err
    assert denizen("moo", "init", str(tmp_path), "--force").status == 0
    assert (tmp_path / "SOUL.md").read_text() != "# Name\nAnn\n"
