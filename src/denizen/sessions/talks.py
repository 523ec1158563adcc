"""The talks of one session: each begins at its root, and the earlier ones stay as branches."""

import msgspec

from denizen.entries import EARLIER, StateEntry, UserEntry
from denizen.ports import Session, Talk
from denizen.sessions.index import title_of

_MAX_EARLIER = 100


async def start_new_talk(session: Session) -> Talk | None:
    """Move the head to the root; the talk so far, which the index lists by its title. None: nothing was said in it."""
    entries = session.entries
    first = next((each.message for each in entries if isinstance(each, UserEntry)), None)
    if first is None:
        return None
    marks = (each.read(list[Talk]) for each in entries if isinstance(each, StateEntry) and each.name == EARLIER)
    talk = Talk(title_of(first), session.head)
    earlier = [talk, *(next(marks, None) or ())][:_MAX_EARLIER]
    await session.move_head(entries[0].id)
    await session.append(StateEntry(name=EARLIER, value=msgspec.to_builtins(earlier)))
    return talk
