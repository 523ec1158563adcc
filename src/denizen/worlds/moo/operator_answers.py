"""Answers to the operator's instructions from elsewhere, such as a chat."""

import asyncio

from denizen.ports import Session
from denizen.sessions.held import SessionRequest
from denizen.worlds.moo.listener import Kind
from denizen.worlds.moo.session_values import SessionValues

CUT_OFF = "It had this instruction, and was stopped before it answered. It isn't given it again: repeat it if needed."


class OperatorAnswers:
    """The instructions that wait for an answer: what the character says, or else does, in the cycle that sees them.

    The session keeps every id with its answer, so that none is instructed twice, even after a crash.
    """

    def __init__(self, session: Session, values: SessionValues) -> None:
        self._session = session
        self._values = values
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._unseen: list[str] = []
        self._seen: list[str] = []
        self._told: list[tuple[Kind, str]] = []

    async def is_new(self, request: SessionRequest) -> bool:
        """Whether nobody had an instruction of that id; it then waits for its answer."""
        name = _name(request.id)
        if request.id in self._waiting or self._values.get(name, str) is not None:
            return False
        self._waiting[request.id] = asyncio.get_running_loop().create_future()
        await self._values.keep(name, "")
        await self._session.sync()
        return True

    async def answer(self, request_id: str) -> str:
        """The answer to an instruction, once there is one."""
        if waiting := self._waiting.get(request_id):
            return await asyncio.shield(waiting)
        return self._values.get(_name(request_id), str) or CUT_OFF

    def take(self, request_id: str) -> None:
        """The character's window has the instruction."""
        self._unseen.append(request_id)

    def see(self) -> None:
        """The model is asked: it sees all instructions that were taken."""
        self._seen += self._unseen
        self._unseen.clear()

    def hear(self, kind: Kind, text: str) -> None:
        """The character says or does something."""
        if self._seen:
            self._told.append((kind, text))

    async def settle(self, problem: str) -> None:
        """The cycle is over: answer the instructions that it saw. The `problem` says why the model couldn't."""
        said, done = ([text for each, text in self._told if each == kind] for kind in ("thought", "action"))
        did = f"It said nothing. It sent: {'; '.join(done)}" if done else "It said nothing."
        text = "\n".join(said) or problem or did
        self._told.clear()
        while self._seen:
            request_id = self._seen.pop()
            await self._values.keep(_name(request_id), text)
            self._waiting.pop(request_id).set_result(text)


def _name(request_id: str) -> str:
    """The name of the state entry with an instruction's answer, which is empty until there is one."""
    return f"instruction {request_id}"
