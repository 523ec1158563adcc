"""Session keys have one spelling, and each has a file of its own."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.errors import SessionError
from denizen.sessions.key import SessionKey, key_of, session_key, short_name, transcript_path

ROOT = Path("/sessions")
WORK = "agent:main:channel:cli:account:default:peer:direct:work"

names = st.text(min_size=1).filter(lambda text: text.strip())
keys = st.builds(SessionKey, names, st.sampled_from(["direct", "group", "channel"]), names, names, names)


def test_short_name_is_a_session_of_the_terminal() -> None:
    assert session_key("work") == WORK
    assert session_key("work", agent="Coder") == WORK.replace("main", "coder")


def test_whole_key_stays_as_it_is() -> None:
    key = "agent:main:channel:cli:account:default:peer:direct:user_123"
    assert session_key(key) == key


def test_parts_can_be_distinguished() -> None:
    key = SessionKey.parse("agent:main:channel:irc:account:libera:peer:channel:%23denizen")
    assert key == SessionKey(agent="main", channel="irc", account="libera", kind="channel", peer="#denizen")


@pytest.mark.parametrize("spelled", ["Work", " work ", WORK.upper(), f"\t{WORK}\n", "w%6frk".join(WORK.split("work"))])
def test_case_and_space_and_needless_escapes_make_no_difference(spelled: str) -> None:
    assert session_key(spelled) == WORK


def test_ids_that_channels_bring_differ_in_all_that_names_at_a_terminal_do_not() -> None:
    ids = ["team", "Team", " team", "e\u0301", "\u00e9", "\u00c9"]
    keys = [str(SessionKey(each, channel="irc")) for each in ids]
    assert len({*map(session_key, keys)}) == len(ids)
    assert len({str(transcript_path(ROOT, key)).casefold() for key in keys}) == len(ids)
    assert keys[1] == "agent:main:channel:irc:account:default:peer:direct:%54eam"
    assert short_name(str(SessionKey("Team"))) == str(SessionKey("Team")), "typed, its name is another session's"


@pytest.mark.parametrize(
    ("peer", "escaped"),
    [
        ("a:b", "a%3ab"),
        ("a/b", "a%2fb"),
        ("a%3ab", "a%253ab"),
        ("..", "%2e."),
        ("é", "%c3%a9"),
        ("Ann", "%41nn"),
        ("+49 1", "%2b49%201"),
    ],
)
def test_what_is_unsafe_is_escaped(peer: str, escaped: str) -> None:
    assert str(SessionKey(peer)).endswith(f":direct:{escaped}")


def test_colons_of_the_last_part_need_no_escape() -> None:
    assert (
        SessionKey.parse("agent:main:channel:matrix:account:me:peer:group:!room:example.org").peer
        == "!room:example.org"
    )


@pytest.mark.parametrize(
    "text", ["agent:main", "agent:main:channel:cli:account:default:peer:enemy:x", WORK[:-4], WORK.replace("cli", "%20")]
)
def test_malformed_key_is_an_error(text: str) -> None:
    with pytest.raises(SessionError, match="agent:ID:channel:NAME"):
        session_key(text)


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_empty_name_is_an_error(name: str) -> None:
    with pytest.raises(SessionError, match="empty"):
        session_key(name)


@given(names)
def test_normal_spelling_stays(name: str) -> None:
    once = session_key(name) if not name.strip().lower().startswith("agent:") else session_key("x" + name)
    assert session_key(once) == once


@given(keys)
def test_key_is_read_back_from_its_text_and_its_file(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key
    assert key_of(transcript_path(ROOT, str(key))) in ("", str(key))


@given(keys, keys)
@example(SessionKey("b", channel="a", account="c+d"), SessionKey("b", channel="a", account="c", kind="direct"))
@example(SessionKey("x" * 500), SessionKey("x" * 501))
def test_different_keys_have_different_files(one: SessionKey, other: SessionKey) -> None:
    paths = {str(transcript_path(ROOT, str(key))).casefold() for key in (one, other)}
    assert len(paths) == len({one, other})


@given(keys)
@example(SessionKey("../../x" * 100, agent=".."))
def test_file_is_two_safe_steps_below_the_root(key: SessionKey) -> None:
    path = transcript_path(ROOT, str(key))
    assert path.parent.parent == ROOT
    for name in (path.parent.name, path.name):
        assert name.isascii()
        assert name.islower() or not name.isalpha()
        assert not name.startswith(".")
        assert len(name) < 200


def test_file_of_somebody_else_has_no_key() -> None:
    assert key_of(ROOT / "main" / "cli+default+enemy+x.jsonl") == ""
    assert key_of(ROOT / "main" / "notes.jsonl") == ""
