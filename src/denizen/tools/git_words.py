"""Which words git is given: commands that only read, with options that are known to be harmless, and no others."""

import difflib
import os
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from denizen.config.rules import DeniedPaths
from denizen.errors import ToolRefused

_PATCHES = """
    -p -u --patch -s --no-patch --raw --patch-with-stat --patch-with-raw --stat[=] --stat-width= --stat-count=
    --stat-name-width= --numstat --shortstat --dirstat[=] --cumulative --summary --compact-summary --name-only
    --name-status -z -U= --unified= -W --function-context --inter-hunk-context= --minimal --patience --histogram
    --diff-algorithm= --anchored= --indent-heuristic --no-indent-heuristic --color[=] --no-color --color-moved[=]
    --no-color-moved --color-words[=] --word-diff[=] --word-diff-regex= -M[=] --find-renames[=] -C[=] --find-copies[=]
    --find-copies-harder -B[=] --break-rewrites[=] -D --irreversible-delete -l= --no-renames --rename-empty
    --no-rename-empty --diff-filter= -S= -G= --find-object= --pickaxe-all --pickaxe-regex --check --full-index --binary
    --abbrev[=] -a --text -b -w -I= --ignore-matching-lines= --ignore-all-space --ignore-space-change
    --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines -R --exit-code --quiet --relative[=] --no-relative
    --src-prefix= --dst-prefix= --no-prefix --default-prefix --line-prefix= --ws-error-highlight= --no-ext-diff
    --no-textconv -c --cc -m --combined-all-paths -r -t --end-of-options
"""
_COMMITS = """
    -n= --max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= --grep-reflog=
    --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings -P --perl-regexp
    --basic-regexp --oneline --pretty[=] --format= --date= --relative-date --graph --no-graph --follow --decorate[=]
    --no-decorate --decorate-refs= --decorate-refs-exclude= --clear-decorations --source --full-diff -L= --all
    --branches[=] --tags[=] --remotes[=] --glob= --exclude= --merges --no-merges --min-parents= --max-parents=
    --first-parent --reverse --topo-order --date-order --author-date-order --not --boundary --left-right --left-only
    --right-only --cherry --cherry-pick --cherry-mark --merge --ancestry-path[=] --full-history --dense --sparse
    --simplify-merges --simplify-by-decoration --show-pulls --parents --children --abbrev-commit --no-abbrev-commit
    --no-abbrev -g --walk-reflogs --reflog --no-walk[=] --do-walk --mailmap --no-mailmap --use-mailmap --notes[=]
    --no-notes --expand-tabs[=] --no-expand-tabs --encoding= --log-size -q
"""
_OFFERED = {
    "status": """
        -s --short -b --branch --show-stash --porcelain[=] --long -u[=] --untracked-files[=] --ignored[=] -z
        --ahead-behind --no-ahead-behind --renames --no-renames --find-renames[=] --column[=] --no-column
    """,
    "log": _COMMITS + _PATCHES,
    "diff": _PATCHES + "--cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs",
    "show": _COMMITS + _PATCHES,
    "blame": """
        -L= -b -c -e -f -l -n -p -s -t -w -M[=] -C[=] --root --show-stats --show-name --show-number --show-email
        --porcelain --line-porcelain --incremental --first-parent --reverse --since= --date= --abbrev= --ignore-rev=
        --minimal --color-lines --color-by-age --encoding=
    """,
}
"""The options of each command; `=`: with a value, `[=]`: with one that is attached, or none."""
_SHELL = frozenset({"|", ">", ">>", "2>&1", "2>/dev/null", "&&", "||", ";"})
_BEYOND_PATHS: Mapping[str, tuple[str, ...]] = {
    "log": ("--full-diff", "--follow", "-L"),
    "show": ("--full-diff", "--follow", "-L"),
    "blame": ("-C",),
    "diff": (),
    "status": (),
}
"""Options that show more than the paths that are asked for."""
_NUMBER = re.compile(r"-\d+")


def checked_words(args: str, workspace: Path) -> tuple[str, list[str]]:
    """The command of a command line, and its words as git reads them: each option by itself, its value attached.

    Raises ToolRefused for what isn't known to be harmless, and for paths outside the workspace.
    """
    try:
        words = shlex.split(args)
    except ValueError as error:
        raise ToolRefused(f"git: {args!r} can't be read as a command line: {error}") from error
    while words and words[0] in {"git", "--no-pager"}:
        words = words[1:]
    command = words[0] if words else ""
    if command not in _OFFERED:
        raise ToolRefused(f"git {command} isn't offered here, only {', '.join(_OFFERED)}; for others use bash")
    return command, [*_read(command, iter(words[1:]), workspace)]


def without_denied(command: str, words: Sequence[str], denied: DeniedPaths) -> list[str]:
    """The words with all denied paths left out of what they ask for.

    Raises ToolRefused for a word that names one, and for options that would show some whatever paths are asked for.
    """
    for word in words:
        named = (word, word.partition(":")[2], word.rpartition(":")[2])  # COMMIT:PATH, :0:PATH
        if any(posixpath.normpath(path) in denied for path in named if path):
            raise ToolRefused(f"git: {word} is denied by the user's policy")
        if word.startswith(_BEYOND_PATHS[command]):
            raise ToolRefused(f"git {command} {word} isn't offered where the user's policy denies paths")
    if command == "blame":
        return [*words]
    patterns = [f":(top,exclude){pattern}" for pattern in denied.patterns]
    return [*words, *patterns]


def _read(command: str, words: Iterator[str], workspace: Path) -> Iterator[str]:
    offered = _kinds(command)
    for word in words:
        if word == "--":
            yield word
            yield from (_path(path, workspace) for path in words)
        elif not word.startswith("-") or word == "-":
            yield _place(word, workspace)
        elif word.startswith("--"):
            yield _long(command, offered, word, words)
        elif "-n" in offered and command != "blame" and _NUMBER.fullmatch(word):
            yield word
        else:
            yield from _letters(command, offered, word, words)


def _kinds(command: str) -> Mapping[str, str]:
    """The options that a command is offered with: "", "=" or "[=]" by name."""
    options = (re.match(r"([^=\[]+)(.*)", option) for option in _OFFERED[command].split())
    return {option[1]: option[2] for option in options if option}


def _long(command: str, offered: Mapping[str, str], word: str, words: Iterator[str]) -> str:
    name, sign, _ = word.partition("=")
    kind = offered.get(name)
    if kind is None or (sign and not kind):
        raise _not_offered(command, word, offered)
    return f"{name}={_value(command, name, words)}" if kind == "=" and not sign else word


def _letters(command: str, offered: Mapping[str, str], word: str, words: Iterator[str]) -> Iterator[str]:
    """The options of a bundle, `-pw` or `-pSword`, one by one."""
    for at, letter in enumerate(word[1:], 2):
        name, rest = f"-{letter}", word[at:]
        kind = offered.get(name)
        if kind is None:
            raise _not_offered(command, word, offered)
        if kind:
            yield name + (rest or (_value(command, name, words) if kind == "=" else ""))
            return
        yield name


def _value(command: str, name: str, words: Iterator[str]) -> str:
    value = next(words, "")
    if not value:
        raise ToolRefused(f"git {command} {name} needs a value")
    return value


def _not_offered(command: str, word: str, offered: Mapping[str, str]) -> ToolRefused:
    near = difflib.get_close_matches(word, offered, n=3)
    return ToolRefused(
        f"git {command} {word} isn't offered here, where options only read this repository"
        f"{': did you mean ' + ' or '.join(near) if near else ''}; for others use bash"
    )


def _path(word: str, workspace: Path) -> str:
    """What stands behind `--`, from where blame takes a revision to the front again, whatever it looks like."""
    if word.startswith("-"):
        raise ToolRefused(f"git: {word!r} looks like an option; the path of such a file begins with ./")
    return _place(word, workspace)


def _place(word: str, workspace: Path) -> str:
    """A revision or a path. Raises ToolRefused for one outside the workspace, and for a sign of a shell."""
    if word in _SHELL:
        raise ToolRefused(f"git is asked without a shell, which would know {word}; leave it out, or use bash")
    if is_outside(word, workspace):
        raise ToolRefused(f"git: {word!r} is outside the workspace")
    return word


def is_outside(word: str, workspace: Path) -> bool:
    """Whether a path leads out of the workspace, also by a link."""
    place = os.path.normpath(workspace / word)
    within = Path(place).is_relative_to(workspace)
    return "\0" in word or not within or not Path(os.path.realpath(place)).is_relative_to(workspace.resolve())
