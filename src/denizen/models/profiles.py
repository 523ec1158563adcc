"""Auth profiles: what their models take, and which one rests after a failure, and for how long."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from denizen.config.settings import UNSET, ModelSettings
from denizen.errors import ModelError
from denizen.events import Failed, StreamEvent
from denizen.messages import Usage
from denizen.models.catalogue import max_answer_tokens
from denizen.models.reasoning import room
from denizen.ports import SURELY_HELD, KnownModel, Limits, Model, ModelRequest
from denizen.runtime.clock import BackOff, Clock

MIN_ANSWER_TOKENS = 1024
"""Tokens that an answer may take although the context seems to fill the window: that is an estimate."""


class LearnedLimits(msgspec.Struct):
    """A model's window and longest answer in tokens, as its server reported them; 0: not yet."""

    window: int = 0
    longest: int = 0
    asked: bool = False


LEARNED_LIMITS: dict[tuple[str, str], LearnedLimits] = {}
"""By server and model, for all agents of the process."""


class ModelLimits(msgspec.Struct, frozen=True):
    """The limits of one model; without a name, of one that says them itself by `known`.

    `ask` asks its server for the window (0: it doesn't say), once per process; else `known` is the catalogue's, slow to
    read. A configured window counts where it is smaller than what the server says.
    """

    model: str = ""
    configured: int = 0
    known: Callable[[], Limits] = Limits
    ask: Callable[[], int] | None = None
    learnt: LearnedLimits = msgspec.field(default_factory=LearnedLimits)

    def __call__(self) -> Limits:
        """Both; blocks while the server is asked or the catalogue is read."""
        if self.ask and not self.learnt.asked:
            self.learnt.window = self.learnt.window or self.ask()
            self.learnt.asked = True
        said = [tokens for tokens in (self.learnt.window, self.configured) if tokens]
        return Limits(min(said) if said else self.known().window, self._longest())

    def learn(self, error: ModelError) -> bool:
        """Take in the numbers of a refusal; whether they are news."""
        before = self.learnt.window, self.learnt.longest
        self.learnt.window = error.window or self.learnt.window
        self.learnt.longest = error.max_output or self.learnt.longest
        return before != (self.learnt.window, self.learnt.longest)

    def fitted(self, request: ModelRequest) -> ModelRequest:
        """The request with `max_tokens` that the model can give, in the room that is left of its window."""
        longest = min(request.max_tokens, self._longest())
        if request.tokens > SURELY_HELD or self.learnt.window or not self.model:
            window = self().window
            longest = min(longest, max(window - request.tokens, min(MIN_ANSWER_TOKENS, window // 4)))
        return request if longest == request.max_tokens else msgspec.structs.replace(request, max_tokens=longest)

    def _longest(self) -> int:
        return self.learnt.longest or (max_answer_tokens(self.model) if self.model else self.known().max_output)


Trial = asyncio.Future[ModelError | None]


PROFILE_REST = BackOff(1.0, 60.0)
"""How long a failed auth profile rests (decisions, "Fail-over")."""

LOCAL_REST = 4.0
"""The longest rest of a server on this machine, in seconds: nobody else uses it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model reached with one auth profile; candidates of one `name` that follow each other are tried in turn.

    `name` is `provider:model`; `key_from` says where the key comes from (a setting, an environment variable): who must
    fix it reads it. `cost` gives the US dollars of a call, None if its price isn't known. `limits` are the model's
    (None: what it says itself), and `settings` what the user set for it alone. `account` names
    server and key: candidates of one name and account rest together, whatever agents they belong to.
    """

    name: str
    model: Model
    profile_id: str = "default"
    key_from: str = ""
    cost: Callable[[Usage], float | None] | None = None
    limits: ModelLimits | None = None
    account: tuple[str, ...] = ()
    settings: ModelSettings = UNSET

    def request(self, asked: ModelRequest) -> ModelRequest:
        """The request with this model's own settings over the general ones, and room for its thoughts."""
        own = self.settings
        extra = {**asked.options.get("extra_body", {}), **own.extra_body}
        options = {**asked.options, **own.options} | ({"extra_body": extra} if extra else {})
        reasoning = asked.reasoning if own.reasoning is None else own.reasoning
        most = (own.max_tokens or asked.max_tokens) + room(self.name, reasoning)
        return msgspec.structs.replace(asked, options=options, max_tokens=most, reasoning=reasoning)


class Health(msgspec.Struct):
    """A candidate's health: its last failure (None: healthy), the number in a row, and the end of its rest."""

    error: ModelError | None = None
    failures: int = 0
    rests_until: float = 0.0


HEALTH: dict[tuple[Hashable, ...], Health] = {}
"""By clock, model and account, for all agents of the process."""


class AuthProfile:
    """A candidate and how it is, shared by all sessions.

    After a rest a single call tries it; the calls that wait for it meanwhile share what becomes of that trial, so that
    a provider in trouble isn't overrun the moment the rest is over.
    """

    def __init__(self, candidate: Candidate, clock: Clock, cooldown: BackOff) -> None:
        self.candidate = candidate
        self.name, self.id = candidate.name, candidate.profile_id
        own = candidate.model.limits if isinstance(candidate.model, KnownModel) else Limits
        self.limits = candidate.limits or ModelLimits(known=own)
        local = isinstance(candidate.model, KnownModel) and candidate.model.local
        self._clock = clock
        self._cooldown = replace(cooldown, max_s=min(cooldown.max_s, LOCAL_REST)) if local else cooldown
        known = (clock, candidate.name, *candidate.account)
        self._health = HEALTH.setdefault(known, Health()) if candidate.account else Health()
        self._trial: Trial | None = None
        self._knows_limits = False

    async def fitted(self, asked: ModelRequest) -> ModelRequest:
        """The request to its model, within the model's limits."""
        if asked.tokens > SURELY_HELD and not self._knows_limits:
            await asyncio.to_thread(self.limits)  # may ask the server, or read the catalogue
            self._knows_limits = True
        return self.limits.fitted(self.candidate.request(asked))

    @property
    def error(self) -> ModelError | None:
        """Its last failure; None: it is well."""
        return self._health.error

    def rest(self) -> float:
        """Seconds until it may be tried again; 0: at once."""
        return max(0.0, self._health.rests_until - self._clock.monotonic()) if self.error else 0.0

    @property
    def asked(self) -> bool:
        """Whether its rest is as long as it is because the provider asks for that."""
        wish = self.error.retry_after if self.error else None
        return wish is not None and wish > self._cooldown.after(self._health.failures)

    async def attempt(self, request: ModelRequest) -> "Attempt":
        """A try of it, as soon as it may be tried."""
        while self.error:
            if self._trial:
                if failure := await asyncio.shield(self._trial):
                    return Attempt(self, _fail(failure), shared=True)
            elif delay := self.rest():
                await self._clock.sleep(delay)
            else:
                self._trial = asyncio.get_running_loop().create_future()
                return Attempt(self, self.candidate.model.stream(request), since=self.error, trial=self._trial)
        return Attempt(self, self.candidate.model.stream(request))

    def recover(self) -> None:
        """Forget its failures."""
        self._health.error = None
        self._health.failures = 0
        self._health.rests_until = 0.0

    def shorten_rest(self) -> None:
        """Count failures anew for a call that must wait: failures of earlier calls don't lengthen its waits."""
        if not self.asked:
            self._health.failures = 0
            soon = self._clock.monotonic() + self._cooldown.first_s
            self._health.rests_until = min(self._health.rests_until, soon)

    def fail(self, error: ModelError, since: ModelError | None) -> None:
        """Rest after an attempt that began after the failure `since`; attempts that fail side by side count once."""
        health = self._health
        if health.error is since:
            health.failures += 1
            health.error = error
        rest = max(self._cooldown.after(health.failures), error.retry_after or 0.0)
        health.rests_until = max(health.rests_until, self._clock.monotonic() + rest)

    def end(self, trial: Trial, failure: ModelError | None) -> None:
        """Tell those who wait for the trial what became of it."""
        if not trial.done():
            trial.set_result(failure)
        if self._trial is trial:
            self._trial = None


class Attempt:
    """One try of a profile, which learns from it: `events` is the model's answer.

    As a context manager it ends the answer, and lets those go on who wait for it, however it is left.
    """

    __slots__ = ("_shared", "_since", "_trial", "events", "profile")

    def __init__(
        self,
        profile: AuthProfile,
        events: AsyncIterator[StreamEvent],
        *,
        since: ModelError | None = None,
        trial: Trial | None = None,
        shared: bool = False,
    ) -> None:
        self.profile = profile
        self.events = events
        self._since = since
        self._trial = trial
        self._shared = shared

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.answering()
        if isinstance(self.events, AsyncGenerator):
            await self.events.aclose()

    def answering(self, failure: ModelError | None = None) -> None:
        """The provider answers: those who wait may try, too; with `failure` they have failed alike."""
        if self._trial:
            self.profile.end(self._trial, failure)
            self._trial = None

    def succeeded(self) -> None:
        """The answer is complete."""
        if self._since and self.profile.error is self._since:
            self.profile.recover()

    def failed(self, error: ModelError) -> None:
        """It came to nothing; the profile rests where another try may help."""
        if error.retriable and not self._shared:
            self.profile.fail(error, self._since)
            self.answering(error)


async def _fail(error: ModelError) -> AsyncGenerator[StreamEvent]:
    yield Failed(error)
