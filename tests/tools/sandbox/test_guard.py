"""Nothing that a command leaves in the workspace runs when the user works there with git, a shell or an editor."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.testing.conformance_sandbox import Machine, NewSandbox, new_machine
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, LandlockSharingProcesses

EVIL = "printf '#!/bin/sh\\ntouch ../../../evil ../../evil ../evil\\ncat\\n' > {0}; chmod +x {0}"
HOOKS_PATH = {
    "on the section's line": "[core] hooksPath = tools/hooks\n",
    "before a comment": "[core]\nhooksPath = tools/hooks # where they are\n",
    "last of two": "[core]\nhooksPath = none\nHOOKSPATH = tools/hooks\n",
    "in quotes": '[core]\nhooksPath = tools/"hooks"\n',
    "on two lines": "[core]\nhooksPath = tools/ho\\\noks\n",
    "from the home": "[core]\nhooksPath = ~/src/project/tools/hooks\n",
    "through a folder": "[core]\nhooksPath = src/../tools/./hooks\n",
}
PROGRAMS = {
    "fsmonitor": "[core]\nfsmonitor = tools/program\n",
    "clean": "[filter \"x\"]\nclean = sh 'tools/program' %f\n",
    "textconv": '[diff "x"]\ntextconv = tools/program\n',
    "external diff": "[diff]\nexternal = ./tools/program --fast\n",
    "ssh": '[core]\nsshCommand = "FAST=1 tools/program -4"\n',
    "editor": "[core]\neditor = $(git rev-parse --show-toplevel)/tools/program\n",
    "pager": "[core]\npager = cat | tools/program\n",
    "credentials": "[credential]\nhelper = !tools/program\n",
    "signatures": "[gpg]\nprogram = ~/src/project/tools/program\n",
    "alias": '[alias]\nx = "!f() { src/../tools/program \\"$@\\"; }; f"\n',
    "home": "[core]\npager = $HOME/src/project/tools/program\n",
    "home in braces": '[core]\neditor = "${HOME}/src/project/tools/program" -w\n',
    "after cd": "[diff]\nexternal = cd ~/src/project/tools && ./program\n",
    "quoted in quotes": "[alias]\nx = !sh -c 'tools/program \"$@\"' -\n",
    "merges": '[merge "x"]\ndriver = env A=1 tools/program %O %A %B\n',
}


@pytest.fixture(params=[Bubblewrap, Landlock, LandlockAlone])
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    return new_machine(tmp_path, request.param)


def git(machine: Machine, *args: str, folder: str = ".") -> str:
    """What the user's own git says."""
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    ran = subprocess.run(
        ["git", *options, *args],
        cwd=machine.workspace / folder,
        env={"HOME": str(machine.user), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def write(machine: Machine, name: str, text: str) -> Path:
    path = machine.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def evil_ran(machine: Machine) -> list[str]:
    return sorted(str(path) for path in machine.user.parent.rglob("evil"))


def plant(machine: Machine, *names: str) -> str:
    """What a command says that writes evil programs wherever it can, over what is there and in its place."""
    scripts = [
        f"mkdir -p $(dirname {name}); {EVIL.format(name)}; d=$(dirname {name}); mv -f $d $d.gone; mkdir -p $d; "
        f"{EVIL.format(name)}; t=${{d%%/*}}; mv -f $t $t.gone; mkdir -p $d; {EVIL.format(name)}"
        for name in names
    ]
    return machine.shell("exec 2>/dev/null; " + "; ".join(scripts))


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("spelling", HOOKS_PATH)
def test_hooks_run_as_the_user_left_them_however_their_folder_is_named(
    spelling: str, there: bool, machine: Machine
) -> None:
    append(machine.workspace / ".git/config", HOOKS_PATH[spelling])
    if there:
        write(machine, "tools/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
    plant(machine, "tools/hooks/pre-commit")
    git(machine, "commit", "--allow-empty", "-m", "x")
    assert evil_ran(machine) == []


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    "files",
    [
        {"{user}/.gitconfig": HOOKS_PATH["in quotes"]},
        {"{user}/.config/git/config": HOOKS_PATH["last of two"]},
        {"{user}/.gitconfig": '[includeIf "gitdir:/else/"]\npath = own\n', "{user}/own": HOOKS_PATH["in quotes"]},
        {".git/config": "[extensions]\nworktreeConfig = true\n", ".git/config.worktree": HOOKS_PATH["in quotes"]},
        {".git/config": "[include]\npath = ../team/settings\n", "team/settings": HOOKS_PATH["in quotes"]},
    ],
)
def test_hooks_that_other_files_of_settings_name_run_as_the_user_left_them(
    files: dict[str, str], there: bool, machine: Machine
) -> None:
    for name, text in files.items():
        append(machine.workspace / name.format(user=machine.user), text)
    if there:
        write(machine, "tools/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
    plant(machine, "tools/hooks/pre-commit")
    git(machine, "commit", "--allow-empty", "-m", "x")
    assert evil_ran(machine) == []


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("include", ["[include]", '[includeIf "onbranch:later"]'])
def test_settings_that_are_included_cannot_be_changed_or_made(include: str, there: bool, machine: Machine) -> None:
    append(machine.workspace / ".git/config", f"{include}\npath = ../team/settings\n")
    if there:
        write(machine, "team/settings", "[user]\nname = B\n")
    machine.shell(
        "exec 2>/dev/null; add() { mkdir -p team; printf '[alias]\\nx = !touch evil\\n' >> team/settings; }; "
        "add; mv team gone; add; ln -s settings team/other"
    )
    git(machine, "checkout", "-b", "later")
    git(machine, "x")
    assert evil_ran(machine) == []


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_settings_name_stay_as_they_are(name: str, there: bool, machine: Machine) -> None:
    append(machine.workspace / ".git/config", PROGRAMS[name])
    path = machine.workspace / "tools/program"
    if there:
        write(machine, "tools/program", "#!/bin/sh\ncat\n")
    plant(machine, "tools/program")
    assert not path.exists() or path.read_text() == "#!/bin/sh\ncat\n"


def test_links_among_hooks_and_settings_lead_to_what_the_user_left_there(machine: Machine) -> None:
    write(machine, "tools/hook", "#!/bin/sh\nexit 0\n")
    (machine.workspace / ".git/hooks").mkdir(exist_ok=True)
    (machine.workspace / ".git/hooks/pre-commit").symlink_to("../../tools/hook")
    (machine.workspace / ".git/config").rename(machine.workspace / "tools/settings")
    (machine.workspace / ".git/config").symlink_to("../tools/settings")
    plant(machine, "tools/hook")
    machine.shell("printf '[alias]\\nx = !touch evil\\n' >> tools/settings")
    git(machine, "commit", "--allow-empty", "-m", "x")
    git(machine, "x")
    assert evil_ran(machine) == []


def test_a_link_in_place_of_a_folder_on_the_way_is_set_aside_and_not_followed(machine: Machine) -> None:
    append(machine.workspace / ".git/config", HOOKS_PATH["in quotes"])
    write(machine, "tools/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
    (machine.outside / "tasks.json").touch()
    machine.shell(
        f"exec 2>/dev/null; mkdir -p src/e/hooks; {EVIL.format('src/e/hooks/pre-commit')}; mv tools src/t; "
        f"ln -sfn src/e tools; ln -s {machine.outside} src/out; ln -s ../src/out src/.vscode"
    )
    git(machine, "commit", "--allow-empty", "-m", "x")
    assert evil_ran(machine) == []
    assert not (machine.workspace / "src/.vscode").exists()
    assert sorted(path.name for path in machine.outside.iterdir()) == ["file", "tasks.json"]


def test_hooks_of_a_nested_repository_run_as_the_user_left_them_and_where_it_is_moved(machine: Machine) -> None:
    (machine.workspace / "src/lib").mkdir()
    git(machine, "init", folder="src/lib")
    append(machine.workspace / "src/lib/.git/config", "[core] hooksPath = hooks ; ours\n")
    plant(machine, "src/lib/hooks/pre-commit")
    machine.shell(f"mv src/lib src/moved; mkdir -p src/moved/hooks; {EVIL.format('src/moved/hooks/pre-commit')}")
    for folder in (path.parent for path in machine.workspace.rglob(".git") if path.parent != machine.workspace):
        git(machine, "commit", "--allow-empty", "-m", "x", folder=str(folder))
    assert evil_ran(machine) == []


def test_what_a_scaffolder_makes_stays_but_for_files_that_name_programs(machine: Machine) -> None:
    said = machine.shell(
        "mkdir -p src/app && cd src/app && mkdir -p .husky/_ .vscode .idea .devcontainer node_modules/x/.vscode; "
        "for f in .husky/pre-commit .husky/_/h .vscode/settings.json .vscode/extensions.json .idea/app.iml "
        ".devcontainer/Dockerfile .devcontainer/devcontainer.json mise.toml package.json "
        "node_modules/x/.vscode/settings.json node_modules/x/mise.toml; do echo x > $f; done && echo made"
    )
    app = machine.workspace / "src/app"
    assert said.startswith("made\n[taken out, because it would run by itself outside the sandbox: ")
    stays = [".devcontainer/Dockerfile", ".idea/app.iml", ".vscode/extensions.json", "package.json"]
    stays += ["node_modules/x/.vscode/settings.json", "node_modules/x/mise.toml"]
    assert [name for name in stays if not (app / name).is_file()] == []
    taken = [".husky/pre-commit", ".husky/_", ".vscode/settings.json", ".devcontainer/devcontainer.json", "mise.toml"]
    assert [name for name in taken if (app / name).exists() or f"src/app/{name} (now " not in said] == []


@pytest.mark.parametrize(
    "name", [".husky/pre-commit", ".claude/settings.json", ".devcontainer/devcontainer.json", ".idea/startup.xml"]
)
def test_files_that_name_programs_stay_as_they_are(name: str, machine: Machine) -> None:
    path = write(machine, f"src/{name}", "ours\n")
    folder = path.parent.relative_to(machine.workspace)
    machine.shell(
        f"echo x >> src/{name}; rm -f src/{name}; mv {folder} src/gone; mkdir -p {folder}; echo x > src/{name}"
    )
    assert not path.exists() or path.read_text() == "ours\n"


def test_a_held_file_that_is_moved_with_its_folder_is_reported(machine: Machine) -> None:
    write(machine, ".vscode/tasks.json", "ours\n")
    said = machine.shell("mv .vscode v2")
    if isinstance(machine.sandbox, LandlockAlone):
        assert (machine.workspace / ".vscode/tasks.json").exists()
    else:
        assert "[moved away with its folder: .vscode/tasks.json. " in said


def test_a_file_that_was_taken_out_and_put_back_by_the_user_stays(machine: Machine) -> None:
    machine.shell("echo x > src/.envrc")
    (machine.workspace / "src/.envrc.disabled").rename(machine.workspace / "src/.envrc")
    assert machine.shell("true") == ""
    assert (machine.workspace / "src/.envrc").read_text() == "x\n"


def test_words_of_commands_that_are_no_files_hold_nothing(machine: Machine) -> None:
    append(
        machine.workspace / ".git/config",
        '[alias]\nx = !make test && git log src\n[filter "lfs"]\nclean = git-lfs clean -- %f\n',
    )
    (machine.workspace / "src/test").touch()
    said = machine.shell("echo x > src/test; mkdir -p src/clean; echo x > src/clean/a; echo x >> src/main.py")
    assert said == ""


@pytest.mark.parametrize("name", [".git/config", ".git/HEAD", ".git/hooks/pre-commit", "denizen.toml", ".git/new"])
def test_the_repositorys_own_data_and_our_configuration_stay(machine: Machine, name: str) -> None:
    path = machine.workspace / name
    before = path.read_bytes() if path.exists() else None
    top = name.partition("/")[0]
    machine.shell(
        f"echo x >> {name}; printf x > src/x; mv src/x {name}; chmod 777 {name}; rm -rf {name}; mv {top} src/gone; "
        f"rm -rf {top}; mkdir -p {name}; ln -sf /tmp {name}"
    )
    assert (path.read_bytes() if path.exists() else None) == before


def test_the_repositorys_data_stays_under_another_name_too(machine: Machine) -> None:
    folder = machine.user / "apart"
    folder.mkdir()
    git(machine, "init", "--separate-git-dir", "data", folder=str(folder))
    before = (folder / "data/config").read_bytes()
    machine.run("sh", "-c", "echo x > data/hooks/new; echo x >> data/config; mv data gone", workspace=folder)
    assert (folder / "data/config").read_bytes() == before
    assert not (folder / "data/hooks/new").exists()


@pytest.mark.parametrize(
    "name", ["lib/.git/config", "lib/.envrc", ".vscode/tasks.json", ".denizen/a.md", "skills/greet/SKILL.md"]
)
def test_what_runs_by_itself_outside_stays(machine: Machine, name: str) -> None:
    path = machine.workspace / name
    path.parent.mkdir(parents=True)
    if path.name == "config":
        git(machine, "init", folder=str(path.parents[1]))
    else:
        path.write_text("ours\n")
    before = path.read_bytes()
    machine.shell(
        f"echo x >> {name}; printf x > src/x; mv src/x {name}; rm -rf {name}; mkdir -p {name}; ln -sf /tmp {name}"
    )
    assert path.read_bytes() == before


def test_a_repository_that_replaces_another_runs_nothing_outside(machine: Machine) -> None:
    lib = machine.workspace / "src/lib"
    lib.mkdir()
    git(machine, "init", folder="src/lib")
    machine.shell(
        "rm -rf src/lib/.git; mv src/lib src/gone; rm -rf src/lib; git init -q src/lib; cd src/lib; "
        f"git config core.fsmonitor 'touch {machine.outside}/evil'"
    )
    git(machine, "status", folder="src/lib")
    assert not (machine.outside / "evil").exists()


def test_hooks_and_programs_of_a_new_repository_are_taken_out(machine: Machine) -> None:
    said = machine.shell(
        "git init -q src/lib; cd src/lib; git config alias.hi '!touch evil'; git config include.path ../evil; "
        f"printf '#!/bin/sh\ntouch {machine.outside}/evil\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*"
    )
    git(machine, "add", ".", folder="src/lib")
    assert not (machine.outside / "evil").exists()
    for taken in ("alias.hi in src/lib/.git/config", "include.path in", "src/lib/.git/hooks/post-index-change"):
        assert taken in said


def test_git_data_under_any_name_runs_nothing_outside(machine: Machine) -> None:
    evil = f"touch {machine.outside}/evil"
    said = machine.shell(
        f"git init -q --bare src; git -C src config core.fsmonitor '{evil}'; git -C src config core.bare false; "
        "git -C src config core.worktree .; mkdir -p src/d/e; git init -q --separate-git-dir src/data src/d/e; "
        f"git -C src/d/e config core.fsmonitor '{evil}'; mkdir src/f; echo 'gitdir: ../data' > src/f/.git; "
        f"git init -q src/g; printf '[core]\nfsmonitor = {evil}\n' > src/h; ln -sf ../../h src/g/.git/config; "
        f"git init -q src/i; echo '[include' > src/i/.git/config"
    )
    for folder in ("src", "src/d/e", "src/f", "src/g", "src/i"):
        subprocess.run(["git", "status"], cwd=machine.workspace / folder, check=False, capture_output=True)
    assert not (machine.outside / "evil").exists()
    assert said.count("core.fsmonitor in") == 2
    assert "src/g/.git/config (now config.disabled)" in said
    assert "src/i/.git/config (now config.disabled)" in said


def test_new_files_that_run_by_themselves_outside_are_set_aside(machine: Machine) -> None:
    names = ["src/.envrc", ".vscode/tasks.json", ".denizen/a.md", "skills/greet/SKILL.md"]
    said = machine.run("sh", "-c", f"for f in {' '.join(names)}; do mkdir -p $(dirname $f); echo x > $f; done").stdout
    assert [name for name in names if (machine.workspace / name).exists()] == []
    assert (machine.workspace / "src/.envrc.disabled").read_text() == "x\n"
    assert "src/.envrc (now .envrc.disabled)" in said


def test_a_hooks_folder_that_the_repository_names_cannot_be_made(machine: Machine) -> None:
    git(machine, "config", "core.hooksPath", "src/hooks")
    assert "src/hooks (now hooks.disabled)" in machine.shell("mkdir src/hooks; echo x > src/hooks/pre-commit")
    assert not (machine.workspace / "src/hooks").exists()


@pytest.mark.parametrize(
    "odd",
    [
        "printf '#' > odd/.git/config; truncate -s 200G odd/.git/config",
        'for i in $(seq 60); do echo "[alias]\nx$i = !x"; done >> odd/.git/config',
        "rm odd/.git/config; mkfifo odd/.git/config odd/.git/commondir",
        "cd odd/.git; rm config; ln -s commondir commondir; ln -s config config",
        "cd odd; for i in $(seq 250); do mkdir -p sixteen-letters-/.idea; cd sixteen-letters-; done",
        "n=$'odd/\\xff\\n'; git init -q $n; git -C $n config alias.$'x' $'!x\\xff'; echo x > $n/.envrc",
    ],
    ids=["huge", "many settings", "pipes", "loops", "deep", "not UTF-8"],
)
def test_odd_files_hide_nothing_else_and_stop_no_later_command(odd: str, machine: Machine) -> None:
    hook = "a/.git/hooks/post-checkout"
    said = machine.shell(
        "exec 2>/dev/null; cd src; git init -q odd; git init -q a; mkdir z; "
        f"echo x > {hook}; echo x > z/.envrc; ({odd}); true"
    )
    assert f"src/{hook} (now post-checkout.disabled)" in said
    assert "src/z/.envrc (now .envrc.disabled)" in said
    assert said.encode()
    assert machine.shell("echo second") == "second\n"


def test_a_workspace_whose_name_is_not_utf_8_is_looked_at(machine: Machine) -> None:
    folder = machine.user / os.fsdecode(b"src/\xff")
    folder.mkdir()
    assert ".envrc (now .envrc.disabled)" in machine.run("sh", "-c", "echo x > .envrc", workspace=folder).stdout


def test_a_bare_repository_as_the_workspace_gets_no_hooks_and_settings(machine: Machine) -> None:
    bare = machine.user / "bare"
    bare.mkdir()
    git(machine, "init", "--bare", "--template=", folder=str(bare))
    script = "mkdir hooks; echo x > hooks/pre-receive; printf '[core]\nhooksPath = x\n' > config.worktree"
    said = machine.run("sh", "-c", script, workspace=bare).stdout
    assert not (bare / "hooks/pre-receive").exists()
    assert "hooksPath" not in ((bare / "config.worktree").read_text() if (bare / "config.worktree").exists() else "")
    assert isinstance(machine.sandbox, LandlockAlone) or "hooks/pre-receive (now pre-receive.disabled)" in said


def test_settings_that_are_removed_are_kept_in_a_copy(machine: Machine) -> None:
    machine.shell("git init -q src/lib")
    for key, value in (("core.sshCommand", "ssh -i key"), ("diff.algorithm", "histogram"), ("commit.gpgSign", "true")):
        git(machine, "config", key, value, folder="src/lib")
    before = (machine.workspace / "src/lib/.git/config").read_text()
    assert "core.sshcommand in src/lib/.git/config (kept in config.disabled)" in machine.shell("true")
    assert (machine.workspace / "src/lib/.git/config.disabled").read_text() == before
    assert (machine.workspace / "src/lib/.git/config").read_text() == before.replace("\tsshCommand = ssh -i key\n", "")


def test_a_repository_that_the_user_puts_in_place_of_a_commands_keeps_its_hooks(machine: Machine) -> None:
    machine.shell("git init -q src/lib")
    shutil.rmtree(machine.workspace / "src/lib")
    git(machine, "init", "src/lib2")
    hook = write(machine, "src/lib2/.git/hooks/pre-commit", "exit 0\n")
    assert machine.shell("true") == ""
    assert hook.exists()


def test_a_new_repository_can_be_worked_with(machine: Machine) -> None:
    machine.shell("git init -q src/new; cd src/new; git config user.name A; git config user.email a@example.org")
    machine.shell("cd src/new; echo x > file; git add file; git commit -qm One; git worktree add -q ../linked")
    said = machine.shell("cd src/linked; git commit -q --allow-empty -m Two; git log --format=%s")
    assert said == "Two\nOne\n"


def test_git_can_be_read(machine: Machine) -> None:
    assert machine.shell("git log --format=%s; git status --short").startswith("The first\n?? denizen.toml\n")


def test_a_linked_worktree_can_be_read(machine: Machine) -> None:
    linked = machine.user / "linked"
    git(machine, "worktree", "add", str(linked))
    ran = machine.run("sh", "-c", "git log --format=%s; echo x > README; git commit -am Second", workspace=linked)
    assert ran.stdout.startswith("The first\n")
    assert ran.returncode
    assert (linked / "README").read_text() == "x\n"


def test_a_git_file_of_a_stranger_opens_no_other_place(machine: Machine) -> None:
    for target in (machine.user / ".ssh", machine.user):
        (machine.user / "trap").mkdir(exist_ok=True)
        (machine.user / "trap/.git").write_text(f"gitdir: {target}\n")
        ran = machine.run("sh", "-c", f"cat {machine.user}/.ssh/*", workspace=machine.user / "trap")
        assert "canary" not in ran.stdout


def test_a_link_in_place_of_the_repositorys_data_is_refused(machine: Machine) -> None:
    (machine.user / "other").mkdir()
    (machine.user / "other/.git").symlink_to(machine.workspace / ".git")
    with pytest.raises(ToolRefused, match="is a link"):
        machine.sandbox.wrap(["true"], workspace=machine.user / "other")


def test_folders_of_a_setgid_workspace_can_be_changed_and_copied_and_no_file_keeps_the_bit(machine: Machine) -> None:
    for folder in (machine.workspace, machine.workspace / "src"):
        folder.chmod(0o2775)
    said = machine.shell(
        "cd src; mkdir sub; chmod 755 sub && chmod u+w sub && cp -a sub copy; "
        "cp /bin/true a; cp a b; chmod 2755 a; stat -c %a a; chmod 4755 b 2>/dev/null || echo refused"
    )
    assert said == "2755\nrefused\n"
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (machine.workspace / "src").iterdir()}
    assert (modes["sub"], modes["copy"], modes["a"] & 0o6000, modes["b"] & 0o6000) == (0o2755, 0o2755, 0, 0)


@pytest.mark.parametrize("kind", [Bubblewrap, Landlock, LandlockSharingProcesses])
def test_semaphores_and_shared_memory_work_where_there_are_namespaces(tmp_path: Path, kind: NewSandbox) -> None:
    machine = new_machine(tmp_path, kind)
    said = machine.python(
        "import multiprocessing, os\nfrom multiprocessing.shared_memory import SharedMemory\n"
        "if __name__ == '__main__':\n"
        " with multiprocessing.Lock(): memory = SharedMemory('denizen-test', create=True, size=1)\n"
        " print(os.listdir('/dev/shm'))\n memory.unlink()"
    )
    assert said == "['denizen-test']\n"
