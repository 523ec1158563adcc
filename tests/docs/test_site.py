"""The documentation can be built: every link and every anchor leads somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from tests.docs.pages import ROOT

import denizen.events
import denizen.ports


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--strict", "--site-dir", str(folder)]  # not --quiet: it hides warnings from --strict, too
    command = [sys.executable, "-m", "mkdocs", "build", *options]
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()


def test_the_api_page_has_what_programs_import(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text("utf-8")
    ports = [name for name in denizen.ports.__all__ if isinstance(getattr(denizen.ports, name), type)]
    events = [f"denizen.events.{kind.__name__}" for kind in get_args(denizen.events.RunEvent)]
    names = ["denizen.run_agent", "denizen.Agent.run", "denizen.events.RunResult", "denizen.load_config", *events]
    public = [f"denizen.ports.{name}" for name in ports]
    assert len(public) > 30
    assert [name for name in (*names, *public) if f'id="{name}"' not in page] == []


def visit(page: str, *, folder: Path) -> str:
    """The page as it is after its scripts ran, in a browser that has no network."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}"]
    command = ["chromium", *options, *offline, "--dump-dom", page]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("chromium")
def test_search_works_in_pages_opened_from_disk(site: Path, tmp_path: Path) -> None:
    page = visit(f"{(site / 'index.html').as_uri()}?q=heartbeat", folder=tmp_path)
    assert re.search(r"\d+ matching documents", page)
    assert 'href="gateway.html' in page.partition('class="md-search-result__list"')[2]


@pytest.mark.needs("chromium")
def test_names_in_tables_stay_on_one_line(site: Path, tmp_path: Path) -> None:
    page = site / "coming-from.html"
    measure = (
        "<script>addEventListener('load', () => { document.title = [...document.querySelectorAll('td code.word')]"
        ".filter(code => code.getClientRects().length > 1).map(code => code.textContent).join(' ') + '.' })</script>"
    )
    measured = tmp_path / "measured.html"
    measured.write_text(
        page.read_text("utf-8").replace("assets/", f"{site.as_uri()}/assets/").replace("</body>", measure)
    )
    shown = visit(measured.as_uri(), folder=tmp_path)
    assert 'class="word">--json<' in shown
    assert "<title>.</title>" in shown


def test_pages_load_nothing_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert (
            re.findall(
                r'<(?:script|img)[^>]* src="https?:|<link rel="stylesheet" href="https?:', page.read_text("utf-8")
            )
            == []
        )


def test_the_readme_links_to_what_there_is() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
