"""What a command's words become: the tool's arguments."""

import pytest
from tests.actions.shell.offer import args, read, run

from denizen.ports import MISUSED


def refusal(text: str) -> str:
    """Why its only command is refused."""
    return str(args(text)[MISUSED])


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("view x", "x"),
        ("view x; rm -rf y", "x; rm -rf y"),
        ("view x | y && z > w", "x | y && z > w"),
        ("view a  b", "a  b"),
        ("view 'a b'", "a b"),
        ('view "a \\"b\\" c"', 'a "b" c'),
        ("view a\\ b", "a b"),
        ("view $'a\\tb\\n'", "a\tb\n"),
        ("view it's", "it's"),
        ("view f(1).txt", "f(1).txt"),
        ("view ')'", ")"),
        ('view ")"', ")"),
        ("view \\)", ")"),
        ("view a-d'('", "a-d("),
        ("view $(find x)", "$(find x)"),
        ("view $HOME/*", "$HOME/*"),
        ("view C:\\dir\\file", "C:\\dir\\file"),
        ("view 'a'b\"c\"", "abc"),
        ("view a\\\n  b", "a\\\n  b"),
        ("view <<< 'a b'", "a b"),
        ("view -- --depth", "--depth"),
        ("view --path x", "x"),
        ("view '--depth'", "--depth"),
        ("view ''", ""),
    ],
)
def test_words_are_read_as_in_a_shell_and_nothing_is_expanded(command: str, path: str) -> None:
    assert args(f"$({command})") == {"path": path}


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("view x --types-only", {"path": "x", "types_only": True}),
        ("view --types_only x", {"path": "x", "types_only": True}),
        ("view x --no-types-only", {"path": "x", "types_only": False}),
        ("view x --types-only=false", {"path": "x", "types_only": False}),
        ("view x --types-only true", {"path": "x", "types_only": True}),
        ("view x --depth 2 --lines 3-7", {"path": "x", "depth": 2, "lines": "3-7"}),
        ("view --depth=2 x --lines='3 - 7'", {"path": "x", "depth": 2, "lines": "3 - 7"}),
        ("view x --depth 1 --depth -2", {"path": "x", "depth": -2}),
        ("grep 'a b' src --mode files", {"pattern": "a b", "path": "src", "mode": "files"}),
        ("text-search a", {"pattern": "a"}),
        ("text-search a --in src", {"pattern": "a", "path": "src"}),
        ("write x 'a'", {"path": "x", "content": "a"}),
        ("write x a b", {"path": "x", "content": "a b"}),
        ("write --content 'a b' x", {"path": "x", "content": "a b"}),
        ("edit f a b --all", {"path": "f", "old": "a", "new": "b", "all": True}),
        ("keep", {}),
        ("keep all", {"outputs": "all"}),
        ("keep 2", {"outputs": 2}),
        ("keep 2 3", {"outputs": [2, 3]}),
        ("task", {}),
        ("task add Fix the parser's bug (soon)", {"action": "add", "text": "Fix the parser's bug (soon)"}),
        ("task add --under 1 Fix it", {"action": "add", "text": "Fix it", "under": "1"}),
        ("tag a 'b c'", {"names": ["a", "b c"]}),
        ('tag \'["a", "b"]\'', {"names": ["a", "b"]}),
        ("tag a --marks '{\"m\": 1}'", {"names": ["a"], "marks": {"m": 1}}),
        ("tag a --sizes 1 --sizes 2.5", {"names": ["a"], "sizes": [1, 2.5]}),
        ("web-fetch http://x/y?a=b&c --start-at 5", {"url": "http://x/y?a=b&c", "start_at": 5}),
        ("clear", {}),
    ],
)
def test_places_options_and_types_come_from_the_schema(command: str, given: dict[str, object]) -> None:
    assert args(f"$({command})") == given


def test_a_document_is_a_word_of_many_lines() -> None:
    reply = "$(edit f <<OLD <<'NEW'\nprint(')')\nOLD\nit's \"new\" (\n\tNEW \n) $(view x)"
    assert run(reply) == [
        ("edit", {"path": "f", "old": "print(')')\n", "new": 'it\'s "new" (\n'}),
        ("view", {"path": "x"}),
    ]


def test_a_document_may_end_in_the_line_that_closes_the_command() -> None:
    assert args("$(write f <<-END\n\ta\nEND)") == {"path": "f", "content": "a\n"}


def test_lines_may_end_as_elsewhere() -> None:
    assert args("$(write f <<END\r\na\r\nEND\r\n)") == {"path": "f", "content": "a\r\n"}


def test_two_smaller_signs_without_a_line_that_ends_a_document_are_what_they_are() -> None:
    assert args("$(grep x<<n\n)") == {"pattern": "x<<n"}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("run cargo test -- --nocapture", "cargo test -- --nocapture"),
        ("run a 'b)' | c && d; e > f", "a 'b)' | c && d; e > f"),
        ('run echo $(date) "it\'s" $((1<<2))', 'echo $(date) "it\'s" $((1<<2))'),
        ("run sed -e's/(/x/' f", "sed -e's/(/x/' f"),
        ("run cut -d')' -f1", "cut -d')' -f1"),
        ("run cat <<'E'\n:)\nE\n", "cat <<'E'\n:)\nE"),
        ('run cat <<< "a ) b"', 'cat <<< "a ) b"'),
        ("run 'cargo test'", "cargo test"),
        ("run 'my prog' x", "'my prog' x"),
        ("run -- ls", "ls"),
        ("run tr '\\' '/'", "tr '\\' '/'"),
        ("run <<'E'\ncase x in\n  a) ls;;\nesac\nE\n", "case x in\n  a) ls;;\nesac\n"),
    ],
)
def test_a_command_line_stays_as_it_is(command: str, line: str) -> None:
    assert args(f"$({command})") == {"command": line}


def test_options_stand_before_a_command_line() -> None:
    assert args("$(run --timeout 5 make --timeout 6)") == {"command": "make --timeout 6", "timeout": 5}


@pytest.mark.parametrize(
    ("prose", "text"),
    [
        ("it's the user's (first) one", "it's the user's (first) one"),
        ("a -- b --weight c; `f(` d", "a -- b --weight c; `f(` d"),
        ('he said "a) b" once', 'he said "a) b" once'),
        ('the 5" disk', 'the 5" disk'),
        ('"all of it"', "all of it"),
        ("'tis so", "'tis so"),
        ("odd \\) here", "odd ) here"),
        ("\\(x^2\\) is math", "\\(x^2\\) is math"),
        ("back\\slash \\d+", "back\\slash \\d+"),
        ("  a\n\n  b  ", "a\n\n  b"),
        ("steps: 1) read 2) write", "steps: 1) read 2) write"),
    ],
)
def test_prose_needs_no_quotes(prose: str, text: str) -> None:
    assert args(f"$(note {prose})") == {"text": text}
    assert args(f"$(ask {prose})") == {"question": text}
    assert args(f"$(memorize {prose})") == {"text": text}


def test_two_notes_in_a_line_are_two() -> None:
    assert run('$(note the 5" disk) $(note the 3" disk (old)) and more') == [
        ("note", {"text": 'the 5" disk'}),
        ("note", {"text": 'the 3" disk (old)'}),
    ]


def test_options_come_before_prose_or_after_what_is_quoted() -> None:
    fact = {"text": "JWT (in cookies)", "weight": 0.8}
    assert args("$(memorize --weight 0.8 JWT (in cookies))") == fact
    assert args('$(store "JWT (in cookies)" --weight 0.8)') == fact


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("view", "path is missing"),
        ("write", "path and content are missing"),
        ("view x --dept 2", "unknown option --dept; did you mean --depth?"),
        ("view x --depth", "--depth needs a value: integer"),
        ("view x --depth --types-only", "--depth needs a value: integer"),
        ("view x --depth two", "depth must be integer, not 'two'"),
        ("view x --types-only=maybe", "types-only must be boolean, not 'maybe'"),
        ("grep x --mode words", "mode must be one of files, lines, not 'words'"),
        ("edit f a b 'c d'", "too many words: new takes one, so quote all of it together"),
        ("tag a --marks x", "marks must be a JSON object, not 'x'"),
        ("clear all", "it takes no 'all'"),
    ],
)
def test_a_misuse_says_what_is_wrong_and_how_it_is_used(command: str, why: str) -> None:
    name = command.split(maxsplit=1)[0]
    said = refusal(f"$({command})").splitlines()
    assert said[0] == f"{name}: {why}"
    assert said[1].startswith(f"usage: $({name}")


def test_an_unknown_command_names_the_nearest() -> None:
    [call] = read("$(veiw x)").calls
    assert call.name == "veiw"
    assert "did you mean $(view)?" in str(call.args[MISUSED])


@pytest.mark.parametrize(
    ("said", "meant"), [("cat", "view"), ("search", "text-search"), ("shell", "run"), ("finish", "done")]
)
def test_a_name_from_elsewhere_leads_to_the_command_that_does_the_job(said: str, meant: str) -> None:
    [call] = read(f"$({said} x)").calls
    assert f"did you mean $({meant})?" in str(call.args[MISUSED])


@pytest.mark.parametrize(
    "said",
    [
        "It's Node (20). --weight 0.8 --context the build",
        "It's Node (20). --context 'the build' --weight=0.8",
        "\"It's Node (20).\" --context 'the build' --weight 0.8",
        "It's Node (20)., {context = 'the build', weight = 0.8}",
        '"It\'s Node (20).", { context: "the build", weight: 0.8 }',
    ],
)
def test_options_may_follow_prose_or_be_in_a_table(said: str) -> None:
    assert args(f"$(store {said})") == {"text": "It's Node (20).", "weight": 0.8, "context": "the build"}


@pytest.mark.parametrize(
    "said",
    ["the flag --weight needs a number", "use --wait 3", "pass --weight much", "a set {1, 2}", "an object {a: 1}"],
)
def test_what_is_no_option_of_the_command_is_part_of_the_prose(said: str) -> None:
    assert args(f"$(store {said})") == {"text": said}


@pytest.mark.parametrize(
    "said",
    [
        "JWT, in cookies, the auth module, 0.8",
        "'JWT, in cookies', the auth module, 0.8",
        "\"JWT, in cookies\", 'the auth module', .8",
    ],
)
def test_a_fact_may_be_followed_by_its_context_and_its_weight(said: str) -> None:
    assert args(f"$(store {said})") == {"text": "JWT, in cookies", "context": "the auth module", "weight": 0.8}


@pytest.mark.parametrize("said", ["We use Python, Node, 20", "It has pears, 5, 0.8", "It weighs 1, 0.5"])
def test_what_only_looks_like_context_and_weight_is_prose(said: str) -> None:
    assert args(f"$(store {said})") == {"text": said}


def test_prose_of_a_command_without_options_keeps_all_that_looks_like_one() -> None:
    assert args("$(note the tests need --weight 0.8)") == {"text": "the tests need --weight 0.8"}
