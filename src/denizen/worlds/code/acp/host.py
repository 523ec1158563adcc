"""An editor as a host: events become updates, in order, and questions become requests."""

import asyncio
from collections.abc import Sequence

from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    ToolCallUpdate,
)

from denizen.events import Done, LlmStart, LlmStream, RunEvent, RunResult, TextDelta
from denizen.ports import Answer, Ask, Control, Parked
from denizen.worlds.code.acp.conversation import AUTO, Conversation
from denizen.worlds.code.acp.updates import Updates

OPTIONS = [
    PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="no", name="Refuse", kind="reject_once"),
]

_FORM = ElicitationSchema(
    properties={"answer": ElicitationStringPropertySchema(type="string", title="Answer")}, required=["answer"]
)


class Editor:
    """The editor for one turn of the session `session_id`; `send` runs beside the turn until it is cancelled.

    `has_forms`: it can show a question with a field for the answer.
    """

    def __init__(self, client: Client, session_id: str, conversation: Conversation, *, has_forms: bool) -> None:
        self._client = client
        self._session_id = session_id
        self._conversation = conversation
        self._has_forms = has_forms
        self._updates = Updates(conversation.agent, conversation.session.entries)
        self._events: asyncio.Queue[RunEvent] = asyncio.Queue()
        self._streamed = False
        self._failed: Exception | None = None

    def emit(self, event: RunEvent) -> None:
        """Pass the event on, in its turn; an answer that didn't stream is said when it is final."""
        match event:
            case LlmStart():
                self._streamed = False
            case LlmStream(event=TextDelta()):
                self._streamed = True
            case Done(result=RunResult(stop_reason="answered", reply=reply)) if not self._streamed:
                self._events.put_nowait(LlmStream(TextDelta(reply)))
            case _:
                pass
        self._events.put_nowait(event)

    def controls(self) -> Sequence[Control]:
        """Nothing comes in: cancelling ends the turn's task."""
        return ()

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask for permission, unless the user chose to give it always, or for an answer to a question of the agent."""
        await self._events.join()
        if not request.tool_name:
            return await self._answer(request) if self._has_forms else Parked()
        if self._conversation.mode == AUTO and not request.quotation:
            return Answer(request.call_id, allow=True)
        call = self._updates.announced(request)
        await self._client.session_update(self._session_id, call)
        update = ToolCallUpdate(**call.model_dump(exclude={"session_update"}))
        answer = await self._client.request_permission(self._session_id, update, OPTIONS)
        match answer.outcome:
            case AllowedOutcome(option_id="once" | "session" | "always" as scope):
                return Answer(request.call_id, allow=True, scope=scope)
            case _:
                return Answer(request.call_id, allow=False)

    async def _answer(self, request: Ask) -> Answer:
        mode = ElicitationFormSessionMode(
            session_id=self._session_id, tool_call_id=request.call_id, requested_schema=_FORM
        )
        given = await self._client.create_elicitation(request.question, mode)
        if isinstance(given, AcceptElicitationResponse) and given.content:
            return Answer(request.call_id, allow=True, text=str(given.content["answer"]))
        return Answer(request.call_id, allow=False, text="the user didn't answer", unasked=True)

    async def send(self) -> None:
        """Send what was emitted, in order, for ever; after a failure nothing more, and the turn goes on."""
        while True:
            event = await self._events.get()
            try:
                if self._failed is None:
                    for update in self._updates.of(event):
                        await self._client.session_update(self._session_id, update)
            except Exception as error:  # noqa: BLE001 (the editor's side: `sent` tells of it)
                self._failed = error
            finally:
                self._events.task_done()

    async def sent(self) -> None:
        """Return when all that was emitted is sent. Raises what sending failed with."""
        await self._events.join()
        if self._failed:
            raise self._failed
