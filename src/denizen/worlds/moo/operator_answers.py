"""Answers to the operator's instructions from elsewhere, such as a chat."""

import asyncio

import msgspec

from denizen.ports import Sent, Session
from denizen.worlds.moo.chain import OFFLINE
from denizen.worlds.moo.listener import Kind
from denizen.worlds.moo.server_text import CommandOutput
from denizen.worlds.moo.session_values import SessionValues

CUT_OFF = (
    "It was stopped after it got this instruction, before it answered. It won't get it again: repeat it if needed."
)
PAGE_CUT_OFF = msgspec.json.encode(Sent("unknown", "The character was stopped while it paged.")).decode()
PAGE_RETRY_S = 60.0
"""Seconds before a page is sent again, if the player or the character isn't signed in."""
PAGE_LATER = msgspec.json.encode(Sent("later", "It isn't signed in.", retry_after=PAGE_RETRY_S)).decode()
_PAGED = "Your message has been sent."


class OperatorAnswers:
    """Requests that wait for an answer. An instruction's is what the character says or does in the cycle that sees it.

    The session keeps every id with its answer, so that none has an effect twice, even after a crash.
    """

    def __init__(self, session: Session, values: SessionValues) -> None:
        self._session = session
        self._values = values
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._unseen: list[str] = []
        self._seen: list[str] = []
        self._outputs: list[tuple[Kind, str]] = []

    async def is_new(self, request_id: str) -> bool:
        """Whether the id is new; if so, its request now waits for an answer."""
        name = _name(request_id)
        if request_id in self._waiting or self._values.get(name, str) is not None:
            return False
        self._waiting[request_id] = asyncio.get_running_loop().create_future()
        await self._values.keep(name, "")
        await self._session.sync()
        return True

    async def answer(self, request_id: str) -> str:
        """Wait for the answer to a request; empty if an earlier process stopped before it answered."""
        if waiting := self._waiting.get(request_id):
            return await asyncio.shield(waiting)
        return self._values.get(_name(request_id), str) or ""

    def add_to_window(self, request_id: str) -> None:
        """Note that the character's window contains the instruction."""
        self._unseen.append(request_id)

    def mark_seen(self) -> None:
        """Note that the model is called and sees all instructions in the window."""
        self._seen += self._unseen
        self._unseen.clear()

    def add_output(self, kind: Kind, text: str) -> None:
        """Note what the character says or does."""
        if self._seen:
            self._outputs.append((kind, text))

    async def end_cycle(self, problem: str) -> None:
        """Answer the instructions that the cycle saw. `problem` says why the model failed, if it did."""
        said, done = ([text for each, text in self._outputs if each == kind] for kind in ("thought", "action"))
        did = f"It said nothing. It sent: {'; '.join(done)}" if done else "It said nothing."
        text = "\n".join(said) or problem or did
        self._outputs.clear()
        while self._seen:
            await self.save_answer(self._seen.pop(), text)

    async def save_answer(self, request_id: str, text: str, *, is_final: bool = True) -> None:
        """Store the answer to a request. Unless it is final, the id counts as new again."""
        await self._values.keep(_name(request_id), text if is_final else None)
        self._waiting.pop(request_id).set_result(text)


def _name(request_id: str) -> str:
    """The name of the state entry with an instruction's answer, which is empty until there is one."""
    return f"instruction {request_id}"


def page_outcome(output: CommandOutput) -> Sent:
    """The outcome of a page, from the world's answer."""
    said = " ".join([*output.lines, output.problem]).strip()
    if _PAGED in said:
        return Sent()
    if OFFLINE.search(said) or output.problem.startswith("not sent:"):
        return Sent("later", said, retry_after=PAGE_RETRY_S)
    return Sent("unknown" if output.problem else "failed", said)
