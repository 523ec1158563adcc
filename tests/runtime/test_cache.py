"""A cache within bounds."""

from denizen.runtime.cache import BoundedCache, SharedCache


def kept(cache: BoundedCache[str]) -> str:
    return "".join(key for key in "abcde" if cache.take(key))


def test_oldest_go_when_there_are_too_many() -> None:
    cache = BoundedCache[str](most=2, room=100)
    for key in "abc":
        cache.put(key, key, 1)
    assert kept(cache) == "bc"


def test_oldest_go_when_all_are_too_large() -> None:
    cache = BoundedCache[str](most=9, room=10)
    for key, size in (("a", 4), ("b", 4), ("c", 3)):
        cache.put(key, key, size)
    assert kept(cache) == "bc"


def test_what_is_too_large_by_itself_is_not_kept_and_displaces_nothing() -> None:
    cache = BoundedCache[str](most=9, room=10)
    cache.put("a", "a", 1)
    cache.put("b", "b", 2)
    cache.put("b", "b", 11)
    cache.put("c", "c", 11)
    assert kept(cache) == "a"


def test_what_is_put_again_is_the_latest_and_counts_once() -> None:
    cache = BoundedCache[str](most=2, room=10)
    for key in "aba":
        cache.put(key, key, 5)
    cache.put("c", "c", 5)
    assert kept(cache) == "ac"


def test_what_was_taken_takes_no_room() -> None:
    cache = BoundedCache[str](most=9, room=10)
    cache.put("a", "a", 10)
    assert cache.take("a") == "a"
    assert cache.take("a") is None
    cache.put("b", "b", 10)
    assert kept(cache) == "b"


class Thing:
    """A value that can be held."""


def test_what_was_dropped_is_found_while_somebody_holds_it() -> None:
    cache, held = SharedCache[Thing](most=1, room=10), Thing()
    cache.put("a", held, 1)
    cache.put("b", Thing(), 1)
    cache.put("c", Thing(), 1)
    assert cache.take("a") is held
    assert cache.take("b") is None
