"""`denizen code`: one task in a project, by the real program and over real HTTP."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.model import Model, refuses

IDENTITY = {
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}
WRITES = "I write it.\n$(write made.txt 'new\n')"


@pytest.fixture
def committed(repo: Path) -> Path:
    """The repository, with a first commit."""
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "first")
    return repo


def git(repo: Path, *words: str) -> str:
    """What git says, to somebody who has a name."""
    command, environ = ["git", "-C", repo, *words], {**os.environ, **IDENTITY}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout


def test_only_the_answer_is_printed_and_commands_are_progress(denizen: Run, model: Model) -> None:
    model.plays("Let me look.\n$(view .)", "$(done It prints hello.)")
    ran = denizen("code", "What does it do?")
    assert (ran.out, ran.status) == ("It prints hello.\n", 0)
    assert "view" in ran.err
    assert "hello.py" in str(model.requests[1]["messages"])


def test_a_command_is_shown_by_what_it_is_about(denizen: Run, model: Model) -> None:
    model.plays("$(view hello.py)", "$(keep 1)\n$(edit hello.py insert '# hello')\n$(analyze length hello.py)", "Done.")
    told = denizen("code", "Say hello").err
    assert "✓ keep 1 · " in told
    assert "✓ edit insert hello.py · " in told
    assert "✓ analyze length hello.py · " in told


def test_a_command_is_shown_by_the_name_that_the_model_wrote(denizen: Run, model: Model) -> None:
    model.plays("$(replace hello.py hello bye)\n$(text-search bye)\n$(grep bye)\n$(run true)", "Done.")
    told = denizen("code", "--yes", "Say bye").err
    assert {line.split()[1] for line in told.splitlines() if line.startswith("  ✓")} == {
        *("replace", "text-search", "grep", "run")
    }


def test_the_model_gets_the_grammar_and_no_schemas(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    denizen("code", "hi")
    assert "$(done" in model.requests[0]["messages"][0]["content"]
    assert "tools" not in model.requests[0]


def test_native_calls_are_one_setting_away(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    denizen("code", "hi", "--actions", "native")
    names = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert {"view", "analyze", "edit_symbol", "task", "keep", "note", "checkpoint", "rollback", "ask"} <= {*names}


def test_commit_makes_one_commit_of_what_the_agent_changed(denizen: Run, model: Model, committed: Path) -> None:
    (committed / "mine.txt").write_text("the user's own, not committed")
    git(committed, "add", "mine.txt")
    model.plays(WRITES, "$(done Made.\n\n## Commit\nAdd a file\n\nIt was asked for.)")
    ran = denizen("code", "--commit", "Make a file", **IDENTITY)
    assert (ran.status, ran.out) == (0, "Made.\n"), ran.err
    assert ": Add a file (1 file)\n" in ran.err
    assert git(committed, "log", "-1", "--format=%B").strip() == "Add a file\n\nIt was asked for."
    assert git(committed, "show", "--name-only", "--format=").split() == ["made.txt"]
    assert git(committed, "status", "--porcelain").split() == ["A", "mine.txt"]


@pytest.mark.parametrize("how", [["--commit"], ["--commit", "--shadow"]], ids=["in place", "in a copy"])
def test_what_commands_and_checks_leave_is_not_committed(
    denizen: Run, model: Model, committed: Path, how: list[str]
) -> None:
    leaves = "mkdir -p __pycache__ && touch __pycache__/hello.pyc"
    model.plays(
        f"$(write made.py 'x = 1\n')\n$(run {leaves} && echo log > run.log && echo '# more' >> hello.py)",
        "$(done Made.\n\n## Commit\nAdd a file)",
    )
    check = f"{leaves} && echo passed > report.txt"
    ran = denizen("code", "--yes", *how, "--validate", check, "Make a file", **IDENTITY)
    assert ran.status == 0, ran.err
    assert git(committed, "show", "--name-only", "--format=").split() == ["hello.py", "made.py"]
    assert "because commands made them, not edits: report.txt, run.log" in ran.err
    assert (committed / "__pycache__").exists() == ("--shadow" not in how)


def test_a_message_that_came_to_nothing_is_reported(denizen: Run, model: Model, committed: Path) -> None:
    hook = committed / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho no; exit 1\n")
    hook.chmod(0o755)
    model.plays(WRITES, "$(done Made.\n\n## Commit\nAdd a file)")
    ran = denizen("code", "--commit", "Make a file", **IDENTITY)
    assert (ran.status, ran.out) == (1, "Made.\n")
    assert "The message would have been:\nAdd a file\n" in ran.err


def test_explain_shows_the_steps_where_the_answer_does_not(denizen: Run, model: Model) -> None:
    model.plays("$(view .)", "$(done Hello.)")
    ran = denizen("code", "--explain", "What is here?")
    assert ran.out == "Hello.\n\n## Steps\n1. view .\n"
    assert "## Steps" in str(model.requests[0]["messages"][-1])


def test_an_audit_is_a_table_and_sarif(denizen: Run, model: Model, tmp_path: Path) -> None:
    model.plays("LOW hello.py:1 no newline is read\nHIGH hello.py:1 prints a secret")
    sarif = tmp_path / "audit.sarif"
    ran = denizen("code", "--role", "auditor", "--sarif", str(sarif), "Audit it")
    assert ran.out.splitlines() == [
        "| severity | place | finding |",
        "|---|---|---|",
        "| HIGH | hello.py:1 | prints a secret |",
        "| LOW | hello.py:1 | no newline is read |",
    ]
    results = json.loads(sarif.read_bytes())["runs"][0]["results"]
    assert [(each["level"], each["message"]["text"]) for each in results] == [
        ("error", "prints a secret"),
        ("note", "no newline is read"),
    ]


def test_an_auditor_changes_nothing(denizen: Run, model: Model, repo: Path) -> None:
    model.plays(WRITES, "No findings.")
    ran = denizen("code", "--role", "auditor", "Audit it")
    assert ran.out == "No findings.\n"
    assert not (repo / "made.txt").exists()


def test_the_difference_goes_with_the_task(denizen: Run, model: Model, committed: Path) -> None:
    (committed / "hello.py").write_text('print("good bye")\n')
    (committed / "new.py").write_text("")
    model.plays("It says good bye.")
    denizen("code", "--diff", "HEAD", "Review this")
    assert "?? new.py" in json.dumps(model.requests[0]["messages"][-1])
    assert '+print(\\"good bye\\")' in json.dumps(model.requests[0]["messages"][-1])


def test_a_base_that_is_none_is_wrong_use(denizen: Run, model: Model, committed: Path) -> None:
    ran = denizen("code", "--diff", "nowhere", "Review this")
    assert ran.status == 2
    assert "nowhere" in ran.err


def test_a_base_is_a_commit_and_never_an_option(denizen: Run, model: Model, committed: Path, tmp_path: Path) -> None:
    for base in (f"--output={tmp_path / 'stolen'}", "HEAD --stat"):
        assert denizen("code", f"--diff={base}", "Review this").status == 2
    assert not (tmp_path / "stolen").exists()
    assert not model.requests


def test_what_cannot_be_had_is_said_before_anything_is_spent(denizen: Run, model: Model, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "--role auditor" in denizen("code", "--sarif", "audit.sarif", "Audit it").err
    assert "isn't in a git repository" in denizen("code", "--workspace", str(elsewhere), "--commit", "Do it").err
    assert not model.requests


def test_without_git_it_works_where_nothing_rests_on_checkpoints(
    denizen: Run, model: Model, repo: Path, tmp_path: Path
) -> None:
    model.plays("$(write a.txt one)", "Done.")
    ran = denizen("code", "Write it", PATH=str(tmp_path))
    assert (ran.status, (repo / "a.txt").read_text()) == (0, "one")
    assert "can't be undone" in ran.err
    ran = denizen("code", "--rollback", "Write it", PATH=str(tmp_path))
    assert (ran.status, "need git" in ran.err) == (1, True)


def test_a_commit_that_git_would_put_nobodys_name_under_is_said_before_anything_is_spent(
    denizen: Run, model: Model, repo: Path
) -> None:
    subprocess.run(["git", "-C", repo, "config", "user.useConfigOnly", "true"], check=True)
    ran = denizen("code", "--commit", "Do it", GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    assert ran.status == 2
    assert "git config --global user.name" in ran.err
    assert not model.requests


def test_nothing_to_commit_is_no_failure(denizen: Run, model: Model, committed: Path) -> None:
    model.plays("All is well.")
    ran = denizen("code", "--commit", "Fix what is broken", **IDENTITY)
    assert (ran.status, git(committed, "log", "--format=%s")) == (0, "first\n")
    assert "there is nothing to commit" in ran.err


def test_work_without_a_check_says_so(denizen: Run, model: Model) -> None:
    model.plays("Better now.")
    assert "isn't checked" in denizen("code", "--role", "refactorer", "Make it better").err


def test_a_parked_task_is_answered_and_still_checked_and_in_its_role(
    denizen: Run, model: Model, committed: Path
) -> None:
    model.plays("$(ask Which one?)")
    job = ("--role", "investigator", "--validate", "test -e made.txt", "--tries", "1")
    assert denizen("code", "--session", "s", *job, "Find it").status == 4
    model.plays(WRITES, "Found.")
    ran = denizen("answer", "s", "the", "first")
    assert (ran.status, (committed / "made.txt").exists()) == (1, False)
    assert "test -e made.txt fails" in ran.err
    assert "read-only" in str(model.requests[2]["messages"])


def test_what_a_failed_task_did_is_brought_back_by_redo(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "Done.")
    denizen("code", "--rollback", "--session", "s", "--validate", "false", "--tries", "1", "Make a file")
    assert not (committed / "made.txt").exists()
    assert "its file changes were undone" in denizen("sessions", "show", "s").out
    assert "redone: Make a file" in denizen("chat", "--session", "s", piped="/redo\n").err
    assert (committed / "made.txt").read_text() == "new\n"
    assert "were undone" not in denizen("sessions", "show", "s").out
    assert "undone: Make a file" in denizen("chat", "--session", "s", piped="/undo\n").err
    assert not (committed / "made.txt").exists()


def test_a_rollback_that_the_users_changes_forbid_says_how_to_force_it(
    denizen: Run, model: Model, committed: Path
) -> None:
    model.plays(WRITES, "$(ask Is that all?)")
    denizen("code", "--rollback", "--session", "s", "--validate", "false", "--tries", "1", "Make a file")
    (committed / "made.txt").write_text("mine")
    model.plays("Made.")
    told = denizen("answer", "s", "yes").err
    assert "made.txt. Keep a copy of what matters, or force it (in a chat: /undo force" in told
    assert (committed / "made.txt").read_text() == "mine"
    denizen("chat", "--session", "s", piped="/undo force\n")
    assert not (committed / "made.txt").exists()


def test_a_task_in_a_copy_is_undone_like_any_other(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "Done.")
    denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    assert (committed / "made.txt").exists()
    assert "undone: Make a file" in denizen("chat", "--session", "s", piped="/undo\n").err
    assert not (committed / "made.txt").exists()


def test_a_checkpoint_takes_files_and_conversation_back_together(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(write a.txt one)\n$(checkpoint one)\n$(write a.txt two)", "Done.")
    denizen("code", "--session", "s", "Write it twice")
    model.plays("$(write b.txt three)", "Done, too.")
    denizen("code", "--session", "s", "Write another")
    ran = denizen("checkpoints", "restore", "one", "--session", "s")
    assert ran.status == 0, ran.err
    assert ((repo / "a.txt").read_text(), (repo / "b.txt").exists()) == ("one", False)
    assert "Write another" not in denizen("sessions", "show", "s").out
    model.plays("$(done It says one.)")
    assert denizen("code", "--session", "s").out == "It says one.\n"
    assert "branched off before" in str(model.requests[-1]["messages"])


def test_a_checkpoint_restored_with_its_session_is_redone(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(write a.txt one)", "Done.")
    denizen("code", "--session", "s", "Write it")
    *_, first = [json.loads(line) for line in denizen("checkpoints", "list", "--json").out.splitlines()]
    denizen("checkpoints", "restore", first["id"], "--session", "s")
    assert not (repo / "a.txt").exists()
    assert "redone: Write it" in denizen("chat", "--session", "s", piped="/redo\n").err
    assert (repo / "a.txt").read_text() == "one"
    assert "no session" in denizen("checkpoints", "restore", first["id"], "--session", "other").err.lower()


def test_a_failing_check_is_reported_and_rolled_back(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "Done.", "Done again.")
    ran = denizen("code", "--validate", "test ! -e made.txt", "--tries", "2", "--rollback", "Make a file")
    assert ran.status == 1
    assert "test ! -e made.txt fails" in ran.err
    assert git(committed, "status", "--porcelain") == ""


@pytest.mark.parametrize("how", [[], ["--shadow"]], ids=["in place", "in a copy"])
def test_a_check_that_failed_before_the_task_does_not_fail_it(
    denizen: Run, model: Model, committed: Path, how: list[str]
) -> None:
    (committed / "Makefile").write_text("check:\n\t@echo an old failure; exit 1\n")
    model.plays(WRITES, "Made.", "Made. The old failure has nothing to do with it.")
    ran = denizen("code", "--yes", *how, "--validate", "auto", "Make a file")
    assert (ran.status, ran.out) == (0, "Made. The old failure has nothing to do with it.\n"), ran.err
    assert "an old failure" in str(model.requests[0]["messages"])
    assert "failed in the same way before the task" in model.told(2)
    assert "make check fails already, before the task: make: *** " in ran.err
    assert "make check fails as it did before the task began" in ran.err
    assert (committed / "made.txt").exists()


def test_a_new_failure_of_a_check_that_failed_before_fails_the_task(
    denizen: Run, model: Model, committed: Path
) -> None:
    (committed / "Makefile").write_text(
        "check:\n\t@echo an old failure; test ! -e made.txt || echo a new one; exit 1\n"
    )
    model.plays(WRITES, "Made.", "Made again.")
    ran = denizen("code", "--yes", "--validate", "auto", "--tries", "2", "--rollback", "Make a file")
    assert ran.status == 1
    assert "a new one" in model.told(2)
    assert not (committed / "made.txt").exists()


def test_shadow_edits_reach_the_project_only_if_they_pass(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "Done.")
    job = ("--shadow", "--session", "s", "Make a file", "--validate")
    ran = denizen("code", *job, "test ! -e made.txt", "--tries", "1")
    assert (ran.status, git(committed, "status", "--porcelain")) == (1, "")
    assert "its copy was deleted" in ran.err
    model.plays(WRITES, "Done.")
    ran = denizen("code", *job, "test -e made.txt")
    assert "its file changes were undone" in str(model.requests[2]["messages"])
    assert (ran.status, (committed / "made.txt").read_text()) == (0, "new\n"), ran.err


@pytest.mark.parametrize("how", ["a folder", "a link to a place outside"])
@pytest.mark.needs("bwrap")
def test_commands_in_a_copy_read_the_ignored_folders_of_the_project_and_nothing_that_those_link_to(
    denizen: Run, model: Model, committed: Path, how: str
) -> None:
    """Such as `.venv`, without which no check can run; the project is in a home that commands don't see."""
    place = committed / ".env" if how == "a folder" else committed.parent / "private"
    place.mkdir()
    (place / "made").write_text("by the user")
    if how != "a folder":
        (committed / ".env").symlink_to(place)
    (committed / ".git/info/exclude").write_text(".env\n")
    model.plays(WRITES, "$(done Made.)")
    ran = denizen(
        "code", "--shadow", "--validate", "cat .env/made", "--tries", "1", "Make a file", HOME=str(committed.parent)
    )
    assert (committed / "made.txt").exists() is (ran.status == 0) is (how == "a folder"), ran.err


def test_a_model_that_fails_in_the_middle_of_a_copy_leaves_it(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, refuses(400, "no"))
    ran = denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    assert (ran.status, git(committed, "status", "--porcelain")) == (1, "")
    assert "Continue there: denizen code --session s\n" in ran.err
    model.plays("Made.")
    ran = denizen("code", "--session", "s")
    assert (ran.status, (committed / "made.txt").read_text()) == (0, "new\n"), ran.err


def test_a_copy_that_nothing_was_changed_in_is_not_kept(
    denizen: Run, model: Model, committed: Path, tmp_path: Path
) -> None:
    (committed / ".gitignore").write_text("ignored\n")
    (committed / "ignored").touch()
    model.plays(refuses(400, "no"))
    ran = denizen("code", "--shadow", "--session", "s", "--validate", "true", "Make a file", TMPDIR=str(tmp_path))
    assert (ran.status, [*tmp_path.glob("denizen-*")]) == (1, [])
    assert "nothing changed in the copy" in ran.err
    assert "nothing left to do" in denizen("code", "--session", "s").err


def test_a_question_in_a_copy_is_answered_there(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "$(ask Is that all?)")
    job = ("--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    ran = denizen("code", *job)
    assert (ran.status, (committed / "made.txt").exists()) == (4, False)
    assert "are in the copy" in ran.err
    model.plays("Made.")
    ran = denizen("answer", "s", "yes")
    assert (ran.status, (committed / "made.txt").read_text()) == (0, "new\n"), ran.err


@pytest.mark.parametrize("host", ["ask", "chat"])
def test_a_task_in_a_copy_is_gone_on_with_there_by_every_host(
    denizen: Run, model: Model, committed: Path, host: str
) -> None:
    model.plays(WRITES, "$(ask Is that all?)")
    denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    model.plays("Made.")
    ran = denizen(host, "--session", "s", "--yes")
    assert (ran.status, (committed / "made.txt").read_text()) == (0, "new\n"), ran.err


def test_a_message_to_a_task_in_a_copy_is_taken_in_there(denizen: Run, model: Model, committed: Path) -> None:
    model.plays(WRITES, "$(ask Is that all?)")
    denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    model.plays("$(write other.txt x)", "Made both.")
    ran = denizen("ask", "--session", "s", "--yes", "Make another file, too")
    made = [(committed / name).exists() for name in ("made.txt", "other.txt")]
    assert (ran.status, made) == (0, [True, True]), ran.err


def test_what_cannot_be_applied_stays_in_the_copy_and_may_be_tried_again(
    denizen: Run, model: Model, committed: Path
) -> None:
    model.plays(WRITES, "$(ask Is that all?)")
    denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")
    (committed / "made.txt").write_text("mine")
    model.plays("Made.")
    ran = denizen("answer", "s", "yes")
    assert (ran.status, (committed / "made.txt").read_text()) == (1, "mine")
    (copy,) = re.findall(r"The work so far is in (/.+)\. Continue there: denizen code --session s\n", ran.err)
    assert (Path(copy) / "made.txt").read_text() == "new\n"
    assert "Put those changes elsewhere first" in ran.err
    (committed / "made.txt").unlink()
    model.plays("It is made.")
    ran = denizen("code", "--session", "s")
    assert (ran.status, (committed / "made.txt").read_text()) == (0, "new\n"), ran.err
    assert not Path(copy).exists()
    assert "nothing left to do" in denizen("code", "--session", "s").err


def test_risky_edits_are_asked_about_where_wanted(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(write hello.py '')", "I leave it.")
    ran = denizen("code", "--auto-approve", "medium", "--session", "risky", "Empty it")
    assert ran.status == 4, ran.err
    assert "risk is high" in ran.err
    assert (repo / "hello.py").read_text()


def test_risky_commands_are_asked_about_as_edits_are(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(run cat hello.py)", "$(run rm hello.py)", "I leave it.")
    ran = denizen("code", "--auto-approve", "low", "--session", "risky", "Delete it")
    assert ran.status == 4, ran.err
    assert "risk is high" in ran.err
    assert "cat hello.py" not in ran.err.partition("risk is high")[2]
    assert (repo / "hello.py").read_text()


def test_sessions_of_this_workspace_are_listed(denizen: Run, model: Model, tmp_path: Path) -> None:
    model.plays("Hello.", "Hello.")
    denizen("code", "--session", "here", "First")
    denizen("ask", "--session", "there", "--workspace", str(tmp_path), "Second")
    assert [line.split()[0] for line in denizen("code", "--list-sessions").out.splitlines()] == ["name", "here"]


def test_a_continued_task_keeps_its_role_and_what_was_noted(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(note hello.py greets)", "It greets.")
    denizen("code", "--role", "investigator", "What does it do?")
    model.plays(WRITES, "It cannot be changed here.")
    denizen("code", "--continue", "Change it")
    assert "hello.py greets" in str(model.requests[2]["messages"])
    assert not (repo / "made.txt").exists()


def test_a_session_is_replayed_and_what_differs_is_shown(denizen: Run, model: Model, repo: Path) -> None:
    model.plays("$(view hello.py --lines 1-1)\n$(text-search hello)", "It prints.")
    denizen("code", "--session", "told", "What does it do?")
    assert denizen("replay", "told").out.endswith("2 the same, 0 different\n")
    (repo / "hello.py").write_text('print("good bye")\n')
    ran = denizen("replay", "told")
    assert ran.status == 1
    assert "+" in ran.out
    assert "good bye" in ran.out
    assert (repo / "hello.py").read_text() == 'print("good bye")\n'


def test_a_session_without_checkpoints_is_not_replayed_and_it_says_where_they_are_kept(
    denizen: Run, model: Model, tmp_path: Path
) -> None:
    model.plays("Hello.")
    (tmp_path / "plain").mkdir()
    denizen("ask", "--session", "s", "--workspace", ".", "hi", cwd=tmp_path / "plain")
    ran = denizen("replay", "s", cwd=tmp_path / "plain")
    assert (ran.out, ran.status) == ("", 1)
    assert "They are kept in git repositories, and with the profile coder everywhere." in ran.err


def test_a_session_is_replayed_without_a_key(denizen: Run, model: Model, home: Path) -> None:
    model.plays("$(view hello.py)", "It prints.")
    denizen("code", "--session", "told", "What does it do?")
    (home / "denizen.toml").write_text('model = "openrouter:some/model"\n')
    assert denizen("ask", "hi").status == 2
    assert denizen("replay", "told").out.endswith("1 the same, 0 different\n")


def test_a_session_goes_on_with_the_profile_it_began_with(denizen: Run, model: Model) -> None:
    model.plays("$(note hello.py greets)", "It greets.")
    denizen("code", "--session", "tale", "What does it do?")
    model.plays("$(done As I said.)")
    assert denizen("ask", "--session", "tale", "Say it again").out == "As I said.\n"
    assert "hello.py greets" in str(model.requests[2]["messages"])


def test_a_session_that_is_not_there_is_not_made_by_going_on_with_it(denizen: Run, home: Path) -> None:
    for command in ("code", "ask"):
        ran = denizen(command, "--session", "nosuch")
        assert (ran.status, "no session nosuch" in ran.err) == (2, True)
    assert not (home / "sessions").exists()


def test_a_failed_check_is_shown_when_it_fails(denizen: Run, model: Model) -> None:
    model.plays("Done.", "$(write made.txt x)", "Now it is.")
    ran = denizen("code", "--validate", "test -e made.txt", "Make a file")
    assert (ran.status, ran.out) == (0, "Now it is.\n")
    assert ran.err.index("test -e made.txt fails") < ran.err.index("write made.txt")
    assert "the checks pass" in ran.err


def test_what_only_takes_longer_is_replayed_as_recorded(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "clock.sh").write_text("echo 1 passed in $(date +%N | cut -c1-3).5s\n")
    model.plays("$(run sh clock.sh)", "It passes.")
    denizen("code", "--session", "tale", "Test it")
    ran = denizen("replay", "tale", "--json")
    assert [json.loads(line)["differs"] for line in ran.out.splitlines()] == [False]


REFUSED = {
    "no such commit": ("code", "--diff", "nosuch", "Review it"),
    "no such role": ("code", "--role", "nosuch", "Review it"),
    "findings of nobody": ("code", "--sarif", "x.sarif", "Review it"),
    "in a session that is named": ("code", "--session", "new", "--diff", "nosuch", "Review it"),
    "no such schema": ("ask", "--output-schema", "hello.py", "Who?"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_a_refused_invocation_leaves_no_session_that_continue_takes(
    denizen: Run, model: Model, repo: Path, refused: str
) -> None:
    model.plays("$(done I am Ada.)", "$(done Ada.)")
    denizen("code", "--session", "ada", "Who are you?")
    assert denizen(*REFUSED[refused]).status == 2
    ran = denizen("code", "--continue", "Who?")
    assert (ran.out, ran.status) == ("Ada.\n", 0), ran.err
    assert "I am Ada." in str(model.requests[1])
    assert denizen("sessions", "list", "--json").out.count('"key"') == 1


def test_a_question_waits_for_no_checkpoint_before_something_is_changed(
    denizen: Run, model: Model, repo: Path, home: Path
) -> None:
    model.plays("$(view hello.py)", "$(done A greeting.)", "$(write hello.py changed)", "$(done Changed.)")
    denizen("code", "--session", "s", "What is hello.py?")
    assert [*(home / "checkpoints").glob("*")] == []
    denizen("code", "--session", "s", "Change it")
    assert [*(home / "checkpoints").glob("*")] != []
    denizen("chat", "--session", "s", piped="/undo\n")
    assert (repo / "hello.py").read_text() == 'print("hello")\n'
