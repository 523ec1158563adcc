"""What is understood of a shell command, and what is not."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.config.commands import SimpleCommand, possible_commands, simple_commands
from denizen.config.shell_script import UNKNOWN


def texts(command: str) -> list[str] | None:
    simple = simple_commands(command)
    return None if simple is None else [part.text for part in simple]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("git status", ["git status"]),
        ("  git status -s  ", ["git status -s"]),
        ("make && make test; ls", ["make", "make test", "ls"]),
        ("cat a|grep b |& sort", ["cat a", "grep b", "sort"]),
        ("sleep 9 & echo hi", ["sleep 9", "echo hi"]),
        ("one\ntwo\n", ["one", "two"]),
        ("echo 'a; rm b' \"c && d\"", ["echo 'a; rm b' \"c && d\""]),
        (r"echo a\;b", [r"echo a\;b"]),
        ("pytest -q 2>&1 | tail -5", ["pytest -q", "tail -5"]),
        ("find . -name x 2>/dev/null", ["find . -name x"]),
        ("make >/dev/null 2>&1 && ls", ["make", "ls"]),
        ("git show HEAD~3 a#b", ["git show HEAD~3 a#b"]),
        ("doing it", ["doing it"]),
    ],
)
def test_a_command_is_cut_into_its_simple_commands(command: str, parts: list[str]) -> None:
    assert texts(command) == parts


@pytest.mark.parametrize(
    "command",
    [
        "git status $(rm x)",
        "git status `rm x`",
        'git status "$(rm x)"',
        'echo "`rm x`"',
        "diff <(rm x) y",
        "echo hi > file",
        "echo hi >>file",
        "echo hi >&file",
        "ls 2>/dev/nullx",
        "cat < file",
        "cat <<END\nrm x\nEND",
        "git log $OPTIONS",
        "git log ${OPTIONS}",
        "(rm x)",
        "{ rm x; }",
        "echo {a,b}",
        "if true; then rm x; fi",
        "for i in 1 2; do rm x; done",
        "! rm x",
        "time rm x",
        "[[ -e x ]] && rm x",
        "git() { rm x; }; git",
        "git status # rm x",
        "git status \\\nrm x",
        "git status 'rm x",
        'git status "rm x',
        "git status \\",
        "git status\r\nrm x",
        "git\u00a0status",
        "git status \x00",
    ],
)
def test_what_could_do_anything_else_is_not_understood(command: str) -> None:
    assert simple_commands(command) is None


def test_quotes_are_removed_from_a_programs_name() -> None:
    simple = simple_commands("""'r'"m" -\\rf x""")
    assert simple is not None
    assert [part.unquoted for part in simple] == ["rm -rf x"]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("if true; then rm x; fi", ["true", "rm x"]),
        ("echo $(rm x) `rm y`", [f"echo {UNKNOWN} {UNKNOWN}", "rm x", "rm y"]),
        ("ls -l; rm x", ["ls -l", "rm x"]),
        ("git pu\\\nsh", ["git push"]),
        (r"""g\it $'\x70\165'"sh" $"a \$b" """, ["git push a $b"]),
        ("X=push; git $X", ["X=push", "git push"]),
        ("for f in a b; do rm $f; done", ["rm a", "rm b"]),
        ("X=pull; read X; git $X", ["X=pull", "read X", f"git {UNKNOWN}"]),
        ("X=pull; X+=s; git $X", ["X=pull", "X+=s", "git pull", f"git {UNKNOWN}"]),
        ("git {push,pull} a*", [f"git {UNKNOWN} a{UNKNOWN}"]),
        ("$HOME/bin/git x", ["/bin/git x"]),
        ("sh -c 'rm $1' sh x", ["sh -c rm $1 sh x", f"rm {UNKNOWN}"]),
        ("ls | xargs -0 rm", ["ls", "xargs -0 rm", f"rm {UNKNOWN}"]),
        ("find . -exec rm {} +", ["find . -exec rm {} +", f"rm {UNKNOWN} +"]),
        ("rm x; (((", ["rm x", UNKNOWN]),
    ],
)
def test_all_that_a_shell_may_run_is_found(command: str, found: list[str]) -> None:
    assert [part.unquoted or part.text for part in possible_commands(command)] == found


@pytest.mark.parametrize(
    "command", ["then rm x", "sudo rm x", "A=1 env B='2' rm x", "! time rm x", "nice -n 5 /bin/rm -f x"]
)
def test_the_program_that_matters_comes_after_its_prefixes(command: str) -> None:
    assert "rm x" in SimpleCommand(command, command).effective_commands()


words = st.text("abc;&|'\"\\ \n#", max_size=12)


@given(words)
def test_what_is_understood_is_what_the_shell_understands(command: str) -> None:
    simple = simple_commands(command)
    if simple is None:
        return
    for part in simple:
        # were there a separator or an open quote left in it, the shell would not print it as one line of words
        shell = ["bash", "-c", f"printf '%s ' {part.text}"]
        printed = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
        assert printed.split() == part.unquoted.split()
