"""What was used last is kept, within bounds."""

from denizen.recent import Recent


def kept(recent: Recent[str]) -> str:
    return "".join(key for key in "abcde" if recent.take(key))


def test_oldest_go_when_there_are_too_many() -> None:
    recent = Recent[str](most=2, room=100)
    for key in "abc":
        recent.put(key, key, 1)
    assert kept(recent) == "bc"


def test_oldest_go_when_all_are_too_large() -> None:
    recent = Recent[str](most=9, room=10)
    for key, size in (("a", 4), ("b", 4), ("c", 3)):
        recent.put(key, key, size)
    assert kept(recent) == "bc"


def test_what_is_too_large_by_itself_is_not_kept_and_displaces_nothing() -> None:
    recent = Recent[str](most=9, room=10)
    recent.put("a", "a", 1)
    recent.put("b", "b", 2)
    recent.put("b", "b", 11)
    recent.put("c", "c", 11)
    assert kept(recent) == "a"


def test_what_is_put_again_is_the_latest_and_counts_once() -> None:
    recent = Recent[str](most=2, room=10)
    for key in "aba":
        recent.put(key, key, 5)
    recent.put("c", "c", 5)
    assert kept(recent) == "ac"


def test_what_was_taken_takes_no_room() -> None:
    recent = Recent[str](most=9, room=10)
    recent.put("a", "a", 10)
    assert recent.take("a") == "a"
    assert recent.take("a") is None
    recent.put("b", "b", 10)
    assert kept(recent) == "b"
