"""`git`: what it says, and that nothing of a hostile repository runs."""

import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Sandbox, ToolContext, Traits
from denizen.tools.git import git_tool
from denizen.tools.sandbox import Bubblewrap, Landlock, problem_with

Git = Callable[[str], Awaitable[ToolResult]]


def run(folder: Path, *args: str) -> None:
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *options, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(workspace: Path) -> Path:
    run(workspace, "init", "-b", "main")
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b.txt").write_text("b\n")
    run(workspace, "add", ".")
    run(workspace, "commit", "-m", "The first")
    (workspace / "a.txt").write_text("two\n")
    run(workspace, "commit", "-am", "The second")
    return workspace


@pytest.fixture(params=[Bubblewrap, Landlock, None], ids=lambda kind: kind.__name__ if kind else "none")
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox | None:
    if request.param is None:
        return None
    environ = {"HOME": str(Path.home()), "PATH": os.environ["PATH"]}
    sandbox = request.param(SandboxSettings(), environ, tmp_path / "home-of-denizen")
    if problem := problem_with(sandbox):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{sandbox.name}: {problem}")
    return sandbox


@pytest.fixture
def git(repository: Path, turn: ToolContext, sandbox: Sandbox | None) -> Git:
    tool = git_tool(os.environ, sandbox)
    return lambda args: tool.run({"args": args}, turn)


@pytest.fixture
def plain_git(repository: Path, turn: ToolContext) -> Git:
    """Without a sandbox."""
    tool = git_tool(os.environ)
    return lambda args: tool.run({"args": args}, turn)


async def test_it_says_what_git_says(git: Git, repository: Path) -> None:
    assert (await git("log --format=%s")).text == "The second\nThe first\n"
    assert "+two" in (await git("show HEAD -- a.txt")).text
    assert (await git("diff HEAD~1..HEAD --stat")).text.startswith(" a.txt | 2 +-")
    assert " 1) two" in (await git("blame a.txt")).text
    (repository / "a.txt").write_text("three\n")
    assert (await git("status --short")).text == " M a.txt\n"
    assert "+three" in (await git("diff")).text


async def test_the_name_of_the_program_may_come_first(git: Git) -> None:
    assert (await git("git log -n 1 --format=%s")).text == "The second\n"


async def test_an_empty_answer_says_so(git: Git) -> None:
    assert (await git("diff")).text == "[nothing]"


async def test_a_failure_is_an_error(git: Git) -> None:
    result = await git("log nothing-of-this-name")
    assert result.is_error
    assert "unknown revision" in result.text
    assert result.text.endswith("[exit code 128]")


async def test_a_long_answer_is_cut(repository: Path, turn: ToolContext) -> None:
    (repository / "long").write_text("line\n" * 10_000)
    run(repository, "add", "long")
    result = await git_tool(os.environ, most=1000).run({"args": "diff --cached"}, turn)
    assert "bytes left out; ask for less, with -n, --stat or a path …]" in result.text
    assert len(result.text) < 1200


async def test_the_repository_is_left_as_it_is(git: Git, repository: Path) -> None:
    index = (repository / ".git/index").read_bytes()
    os.utime(repository / "b.txt", (1, 1))
    assert (await git("diff")).text == "[nothing]"
    await git("status")
    assert (repository / ".git/index").read_bytes() == index


@pytest.mark.parametrize(
    "args", ["push", "commit -m x", "-c core.pager=x log", "--exec-path=/tmp log", "-C / log", "config -l", "lo g"]
)
async def test_only_reading_commands_are_offered(git: Git, args: str) -> None:
    with pytest.raises(
        ToolRefused, match="isn't offered here, only status, log, diff, show, blame; for others use bash"
    ):
        await git(args)


@pytest.mark.parametrize("args", ["", "  ", "git"])
async def test_a_call_without_a_command_is_shown_what_to_ask(git: Git, args: str) -> None:
    with pytest.raises(ToolRefused, match="args is empty: begin it with status, log, diff, show, blame, as in `log"):
        await git(args)


HARMFUL = [
    "log --output=x",
    "log --output x",
    "log --outp=x",
    "diff --out x",
    "diff --ext-diff",
    "diff --ext",
    "show --textconv",
    "show --textc",
    "diff --no-index a.txt b.txt",
    "diff --no-i a.txt b.txt",
    "log --remerge-diff",
    "log --diff-merges=remerge",
    "diff --submodule=diff",
    "diff --ignore-submodules=none",
    "status --ignore-submodules=none",
    "status -v",
    "status --verb",
    "log --help",
    "diff -O/etc/passwd",
    "blame --contents /etc/passwd a.txt",
    "blame --cont=/etc/passwd a.txt",
    "blame --ignore-revs-file=/etc/passwd a.txt",
    "blame -S/etc/passwd a.txt",
    "blame -wS/etc/passwd a.txt",
    "blame -nS/etc/passwd a.txt",
    "blame -ltS/etc/passwd a.txt",
    "log -pO/etc/passwd",
    "diff -uO/etc/passwd",
    "status -bv",
    "log --decorate-refs -- --output=x",
    "log -L -- --output=x",
    "blame -L -- -S/etc/passwd a.txt",
    "blame --ignore-rev -- -S/etc/passwd a.txt",
    "log --alternate-refs",
    "log -S one --output=x",
    "log --end-of-options --output=x",
    "log --stdin",
    "log --show-signature",
    "diff --end-of-options -O/etc/passwd",
    "show -p1O/etc/passwd",
    "status -b1",
    "log --no-such-option-yet",
]
"""Options that write, run something, or read elsewhere."""


@pytest.mark.parametrize("args", HARMFUL)
async def test_options_that_write_or_run_or_read_elsewhere_are_refused_without_a_sandbox(
    plain_git: Git, args: str
) -> None:
    with pytest.raises(ToolRefused, match="isn't offered here, where options only read this repository"):
        await plain_git(args)


@pytest.mark.parametrize("args", [*HARMFUL, "diff /etc/passwd a.txt", "diff ../canary a.txt"])
async def test_in_a_sandbox_they_write_and_run_and_read_nothing(
    git: Git, sandbox: Sandbox | None, repository: Path, evil: Path, args: str
) -> None:
    if sandbox is None:
        return
    external_diff(repository, evil)
    textconv(repository, evil)
    (repository.parent / "canary").write_text("root: a canary\n")
    before = sorted(path.name for path in repository.iterdir())
    answer = await git(args)
    assert "root:" not in answer.text
    assert sorted(path.name for path in repository.iterdir()) == before
    assert not (repository.parent / "mark").exists()


@pytest.mark.parametrize(
    "args",
    [
        "log --oneline --text -c",
        "log --format=%s --max-count=1",
        "status -sb -uall",
        "diff --diff-filter=M --cc HEAD~1",
        "log --oneline --graph --decorate --all -n 5",
        "log -5 -p --stat --since 2.weeks --until=now --author A --grep 'The first' -i",
        "log -G '^o.e' --follow -- a.txt",
        "log -L 1,1:a.txt --pretty=format:%h --date=short -s",
        "log main..HEAD --no-merges --first-parent --reverse",
        "diff HEAD~1..HEAD --stat --name-only -w",
        "diff --cached -M90% -U0 --word-diff=plain -- .",
        "show HEAD:a.txt",
        "show --stat --format=fuller HEAD~1",
        "blame -L 1,+1 -w -s a.txt",
        "blame HEAD~1 -- a.txt",
        "status -s -b --porcelain=v2 --untracked-files=all --ignored",
        "--no-pager log -1",
    ],
)
async def test_harmless_options_are_taken_everywhere(git: Git, args: str) -> None:
    answer = await git(args)
    assert not answer.is_error, answer.text


@pytest.mark.parametrize(
    "args",
    [
        "log --oneline --text -c",
        "log -Sone --format=%s",
        "log -pSONE",
        "status -sbuno",
        "diff --diff-filter=M --cc HEAD~1",
        "log --oneline --graph --decorate --all -n 5",
        "log -5 -p --stat --since 2.weeks --until=now --author A --grep 'The first' -i",
        "log -S /api/v1 --pickaxe-regex --follow -- a.txt",
        "log -G '^o.e' --pickaxe-all",
        "log -L 1,1:a.txt --pretty=format:%h --date=short -s",
        "log main..HEAD --no-merges --first-parent --reverse",
        "diff HEAD~1..HEAD --stat --name-only -w",
        "diff --cached -M90% -U0 --word-diff=plain -- .",
        "show HEAD:a.txt",
        "show --stat --format=fuller HEAD~1",
        "blame -L 1,+1 -w -C -C -s a.txt",
        "blame HEAD~1 -- a.txt",
        "status -s -b --porcelain=v2 --untracked-files=all --ignored",
        "--no-pager log -1",
    ],
)
async def test_in_a_sandbox_every_option_that_reads_is_taken(git: Git, sandbox: Sandbox | None, args: str) -> None:
    if sandbox is None:
        return
    answer = await git(args)
    assert not answer.is_error, answer.text


async def test_a_value_is_a_value_whatever_it_looks_like(git: Git, sandbox: Sandbox | None, repository: Path) -> None:
    (repository / "a.txt").write_text("--output=x\n")
    run(repository, "commit", "-am", "The third")
    if sandbox is not None:
        assert (await git("log --format=%s -S --output=x")).text == "The third\n"
    assert (await git("log --format=%s --grep=-- -- a.txt")).text == "[nothing]"
    assert not (repository / "x").exists()


async def test_a_path_after_the_dashes_is_no_option_of_blame(plain_git: Git, repository: Path) -> None:
    with pytest.raises(ToolRefused, match=r"the path of a file that looks like an option begins with \./"):
        await plain_git("blame -- a.txt --output=x")
    assert not (repository / "x").exists()


@pytest.mark.parametrize(
    "args",
    [
        "diff /etc/passwd a.txt",
        "log -- ../x",
        "blame a/../../x",
        "diff -- link/x",
        "log a\0b",
        "diff -- x/../../y a.txt",
        "log -G one ../x",
    ],
)
async def test_paths_outside_the_workspace_are_refused_without_a_sandbox(
    plain_git: Git, repository: Path, args: str
) -> None:
    (repository / "link").symlink_to("/etc")
    with pytest.raises(ToolRefused, match="is outside the workspace"):
        await plain_git(args)


async def test_a_command_line_that_is_none_is_refused(git: Git) -> None:
    with pytest.raises(ToolRefused, match="can't be read as a command line: No closing quotation"):
        await git("log 'x")


@pytest.mark.parametrize("args", ["log --oneline | head", "diff 2>/dev/null", "status && git log"])
async def test_a_command_line_for_a_shell_is_refused(git: Git, args: str) -> None:
    with pytest.raises(ToolRefused, match=r"without a shell here, so .* has no meaning; leave it out, or use bash"):
        await git(args)


async def test_a_folder_that_is_no_repository_is_refused(turn: ToolContext, workspace: Path) -> None:
    with pytest.raises(ToolRefused, match="is not the root of a git repository"):
        await git_tool(os.environ).run({"args": "log"}, turn)


async def test_a_repository_around_the_workspace_is_not_read(turn: ToolContext, workspace: Path) -> None:
    run(workspace.parent, "init")
    with pytest.raises(ToolRefused, match="is not the root of a git repository"):
        await git_tool(os.environ).run({"args": "status"}, turn)


async def test_the_data_of_another_repository_is_not_read(turn: ToolContext, workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    run(other, "init")
    (workspace / ".git").write_text(f"gitdir: {other / '.git'}\n")
    with pytest.raises(ToolRefused, match="is not the root of a git repository"):
        await git_tool(os.environ).run({"args": "log"}, turn)


@pytest.mark.parametrize("borrowed", ["commondir", "objects", "refs/heads/theirs", "packed-refs", "THEIRS"])
async def test_data_that_is_borrowed_from_another_repository_is_not_read(
    borrowed: str, git: Git, sandbox: Sandbox | None, repository: Path
) -> None:
    other = repository.parent / "other"
    other.mkdir()
    run(other, "init", "-b", "main")
    (other / "secret").write_text("canary\n")
    run(other, "add", ".")
    run(other, "commit", "-m", "canary")
    run(other, "pack-refs", "--all", "--no-prune")
    place = repository / ".git" / borrowed
    theirs = {"refs/heads/theirs": "refs/heads/main", "THEIRS": "refs/heads/main"}.get(borrowed, borrowed)
    if borrowed == "commondir":
        place.write_text(f"{other}/.git\n")
    else:
        if place.is_dir():
            place.rename(repository / ".git/before")
        place.symlink_to(other / ".git" / theirs)
    if sandbox is not None:
        assert "canary" not in (await git("log -p --all")).text
        return
    with pytest.raises(ToolRefused, match=f"{borrowed} leads out of the workspace, so git doesn't run here"):
        await git("log -p --all")


async def test_links_within_the_repositorys_data_are_fine(git: Git, repository: Path) -> None:
    (repository / ".git/refs/heads/again").symlink_to("main")
    assert (await git("log -n 1 --format=%s again")).text == "The second\n"


async def test_a_file_that_git_would_quote_must_be_in_the_workspace(git: Git, repository: Path) -> None:
    for text in ("line one of it", "line one of them"):
        (repository / "a.txt").write_text(f"{text}\n")
        run(repository, "commit", "-am", text)
    revs = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    (repository / ".ignored-revs").write_text(revs.stdout)
    configure(repository, blame__ignoreRevsFile=".ignored-revs", blame__markIgnoredLines="true")
    assert "?" in (await git("blame a.txt")).text
    (repository / "link").symlink_to("/etc/passwd")
    for elsewhere in ("/etc/passwd", "~/.netrc", "../x", "link"):
        configure(repository, blame__ignoreRevsFile=elsewhere)
        with pytest.raises(ToolRefused, match="ignoreRevsFile leads out of the workspace"):
            await git("blame a.txt")


async def test_a_linked_worktree_is_read(repository: Path, turn: ToolContext, sandbox: Sandbox | None) -> None:
    linked = repository.parent / "linked"
    run(repository, "worktree", "add", str(linked))
    (repository / "a.txt").write_text("elsewhere\n")
    tool = git_tool(os.environ, sandbox)
    for args, expected in (("log -n 1 --format=%s", "The second\n"), ("status --short", "[nothing]")):
        result = await tool.function(args, turn_in(turn, linked))
        assert result.text == expected


def turn_in(turn: ToolContext, folder: Path) -> ToolContext:
    return ToolContext("session", "call-1", folder, turn.clock, turn.emit, turn.ask)


# Hostile repositories: every one of them runs `./evil`, which leaves a mark, when it is asked by a plain git.


@pytest.fixture
def evil(repository: Path) -> Path:
    """A program that leaves a mark when it runs."""
    program = repository.parent / "evil"
    program.write_text(f"#!/bin/sh\ntouch {repository.parent}/mark\n")
    program.chmod(0o755)
    (repository / "a.txt").write_text("changed\n")
    return program


def configure(repository: Path, **settings: str) -> None:
    for name, value in settings.items():
        run(repository, "config", name.replace("__", "."), value)


def attribute(repository: Path, line: str) -> None:
    (repository / ".git/info/attributes").write_text(f"{line}\n")


def filters(repository: Path, evil: Path) -> None:
    attribute(repository, "*.txt filter=Evil")
    configure(repository, filter__Evil__clean=str(evil), filter__Evil__required="true")


def filter_process(repository: Path, evil: Path) -> None:
    attribute(repository, "*.txt filter=evil")
    configure(repository, filter__evil__process=str(evil), filter__evil__required="true")


def external_diff(repository: Path, evil: Path) -> None:
    configure(repository, diff__external=str(evil))


def diff_driver(repository: Path, evil: Path) -> None:
    attribute(repository, "*.txt diff=evil")
    configure(repository, diff__evil__command=str(evil), diff__evil__textconv=str(evil))


def textconv(repository: Path, evil: Path) -> None:
    attribute(repository, "*.txt diff=evil")
    configure(repository, diff__evil__textconv=str(evil))


def fsmonitor(repository: Path, evil: Path) -> None:
    configure(repository, core__fsmonitor=str(evil))


def hooks(repository: Path, evil: Path) -> None:
    for name in ("post-index-change", "pre-auto-gc", "post-checkout"):
        (repository / ".git/hooks" / name).symlink_to(evil)
    os.utime(repository / "b.txt", (1, 1))


def pager(repository: Path, evil: Path) -> None:
    configure(repository, core__pager=str(evil), pager__log=str(evil), pager__diff=str(evil), pager__status="true")


def signatures(repository: Path, evil: Path) -> None:
    configure(repository, gpg__program=str(evil), gpg__ssh__program=str(evil), log__showSignature="true")
    tree = subprocess.run(["git", "cat-file", "commit", "HEAD"], cwd=repository, capture_output=True, check=True).stdout
    head, _, message = tree.partition(b"\n\n")
    signature = b"gpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----"
    signed = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        input=head + b"\n" + signature + b"\n\n" + message,
        cwd=repository,
        capture_output=True,
        check=True,
    )
    run(repository, "update-ref", "refs/heads/main", signed.stdout.decode().strip())


def missing_objects(repository: Path, evil: Path) -> None:
    configure(
        repository,
        core__repositoryFormatVersion="1",
        extensions__partialClone="evil",
        remote__evil__url=f"ssh://host{repository}",
        remote__evil__promisor="true",
        core__sshCommand=str(evil),
    )
    for path in (repository / ".git/objects").glob("??/*"):
        kind = subprocess.run(
            ["git", "cat-file", "-t", path.parent.name + path.name], cwd=repository, capture_output=True, check=False
        )
        if kind.stdout == b"blob\n":
            path.unlink()


def submodule(repository: Path, evil: Path) -> None:
    inner = repository.parent / "inner"
    inner.mkdir()
    run(inner, "init")
    (inner / "c.txt").write_text("c\n")
    run(inner, "add", ".")
    run(inner, "commit", "-m", "x")
    run(repository, "submodule", "add", str(inner), "sub")
    (repository / "sub/c.txt").write_text("d\n")
    data = repository / ".git/modules/sub"
    (data / "info/attributes").write_text("*.txt filter=evil\n")
    run(repository / "sub", "config", "filter.evil.clean", str(evil))
    run(repository / "sub", "config", "core.fsmonitor", str(evil))
    configure(repository, status__submoduleSummary="true", diff__submodule="diff", diff__ignoreSubmodules="none")


HOSTILE = [
    filters,
    filter_process,
    external_diff,
    diff_driver,
    textconv,
    fsmonitor,
    hooks,
    pager,
    signatures,
    missing_objects,
    submodule,
]
ASKED = [
    "status",
    "diff",
    "diff HEAD",
    "diff --stat --cached HEAD~1",
    "log -p --stat",
    "log --format=%G?%s",
    "show HEAD",
    "blame a.txt",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.__name__)
async def test_nothing_that_a_repository_brings_along_is_run(
    git: Git, repository: Path, evil: Path, hostile: Callable[[Path, Path], None]
) -> None:
    hostile(repository, evil)
    (repository.parent / "mark").unlink(missing_ok=True)
    for args in ASKED:
        await git(args)
        assert not (repository.parent / "mark").exists(), args


async def test_a_filter_that_cannot_be_taken_away_is_refused(git: Git, repository: Path, evil: Path) -> None:
    attribute(repository, "*.txt filter=a=b")
    with (repository / ".git/config").open("a") as config:
        config.write(f'[filter "a=b"]\n\tclean = {evil}\n')
    with pytest.raises(ToolRefused, match=r"names a program in a setting with an unusual name: 'filter\.a=b\.clean'"):
        await git("status")


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.__name__)
def test_a_plain_git_would_run_it(repository: Path, evil: Path, hostile: Callable[[Path, Path], None]) -> None:
    hostile(repository, evil)
    (repository.parent / "mark").unlink(missing_ok=True)
    for args in ASKED:
        subprocess.run(
            ["git", "--paginate", *args.split()],
            cwd=repository,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    if hostile is not pager:  # which wants a terminal
        assert (repository.parent / "mark").exists()


async def test_the_work_tree_is_the_workspace_whatever_the_repository_says(git: Git, repository: Path) -> None:
    (repository.parent / "a.txt").write_text("a canary\n")
    configure(repository, core__worktree=str(repository.parent))
    assert "canary" not in (await git("diff")).text


def test_it_reads_and_may_be_run_again() -> None:
    assert git_tool(os.environ).traits == Traits.READS | Traits.REPEATABLE
