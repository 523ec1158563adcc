"""Daily spending limits for senders and groups."""

from collections.abc import Callable

import pytest
from tests.engine.scene import call, say
from tests.worlds.chat.conftest import Scene, Serve
from tests.worlds.chat.turns.test_sender_access import ANN, NOBODY, accepted, written

from denizen.ports import ChannelSettings
from denizen.testing import FakeClock, MemoryChannel

DAY_S = 86_400.0


async def test_sender_over_the_cap_is_notified_once_a_day_and_no_model_is_called(serve: Serve) -> None:
    clock, dear = FakeClock(), say("plums", cost_usd=0.6)
    async with serve(dear, dear, dear, channels=[MemoryChannel()], clock=clock, sender_day_usd=1.0) as scene:
        for number in range(5):
            await accepted(scene, written(f"question {number}", "ann"))
        await scene.settled()
        replies = await scene.contents(3, "ann", "memory")
        assert replies[:2] == ["plums", "plums"]
        assert "Today's budget of this sender is spent: $1.2000 of $1" in replies[2]
        assert (len(replies), len(scene.model.requests)) == (3, 2)
        await accepted(scene, written("another sender", "ben"))
        assert await scene.contents(1, "ben", "memory") == ["plums"]
        await clock.sleep(DAY_S)
        assert "spent" not in await _answer(scene, 4)


async def _answer(scene: Scene, number: int) -> str:
    await accepted(scene, written("a new day", "ann"))
    return (await scene.contents(number, "ann", "memory"))[-1]


async def test_turn_ends_at_the_cap(serve: Serve) -> None:
    dear = call(("look", {}), cost_usd=0.6)
    async with serve(dear, dear, dear, channels=[MemoryChannel()], sender_day_usd=1.0) as scene:
        await accepted(scene, written("look around", "ann"))
        assert "Today's budget of this sender" in (await scene.contents(1, "ann", "memory"))[0]
        assert len(scene.model.requests) == 2


async def test_channels_of_a_person_count_together_and_owners_have_no_cap(serve: Serve) -> None:
    dear: Callable[[], object] = lambda: say("plums", cost_usd=0.6)  # noqa: E731
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    people = {"ann": ANN, "boss": {"irc": "boss", "owner": True}}
    config = {"people": people}
    lines = [dear() for _ in range(5)]
    async with serve(*lines, channels=channels, allow=NOBODY, config=config, sender_day_usd=0.5) as scene:
        await accepted(scene, written("1", "ann", "irc"))
        await scene.contents(1, "ann", "irc")
        await accepted(scene, written("2", "@ann:example.org", "matrix"))
        assert "spent" in (await scene.contents(1, "@ann:example.org", "matrix"))[0]
        await accepted(scene, written("1", "boss", "irc"), written("2", "boss", "irc"))
        assert await scene.contents(2, "boss", "irc") == ["plums", "plums"]


@pytest.mark.parametrize(("thread", "names"), [("den/t1", {"thread": "t1"}), ("77", {"thread": "77", "room": "den"})])
async def test_group_has_a_cap_over_all_members_and_threads(serve: Serve, thread: str, names: dict[str, str]) -> None:
    allow = ChannelSettings(allow=["ann", "ben"])
    dear = say("plums", cost_usd=0.6)
    async with serve(dear, dear, channels=[MemoryChannel()], allow=allow, group_day_usd=0.5) as scene:
        await accepted(scene, written("1", "ann", is_group=True))
        await scene.contents(1, "den", "memory")
        await accepted(scene, written("2", "ben", is_group=True, chat=thread, **names))
        assert "budget of this group" in (await scene.contents(1, thread, "memory"))[0]
        await accepted(scene, written("3", "ben"))
        assert await scene.contents(1, "ben", "memory") == ["plums"], "the cap is the group's"
