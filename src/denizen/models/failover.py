"""Fail-over: a model call is made again with the next auth profile, then with the next model, until one answers.

Decisions, "Fail-over": a profile that failed rests for 1 s, doubling to 60 s, reset by a success; when all
rest, the call waits for the shortest. Added to it: `Retry-After` where longer, streams that die, fall-back models,
and sessions that stay on a profile.
"""

import itertools
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

import msgspec

from denizen.errors import ModelError
from denizen.events import Failed, Finished, Retrying, StreamEvent, TextDelta
from denizen.models.profiles import PROFILE_REST, Attempt, AuthProfile, Candidate
from denizen.ports import CountingModel, KnownModel, Limits, ModelRequest
from denizen.runtime.clock import BackOff, Clock

_T = TypeVar("_T")

STICKY_S = {"5m": 300.0, "1h": 3600.0}
"""Seconds that a session stays where its last call went well: as long as providers keep a prompt in their caches."""

MAX_SESSIONS = 4096
"""The most sessions that are remembered for that."""

MAX_REST_WAIT_S = 600.0
"""Seconds that a call waits for a resting profile at most; one that must rest longer is passed over."""

MAX_REST_WAIT_BEFORE_FALLBACK_S = 60.0
"""The same while a further model may be tried sooner: no profile rests longer unless its provider asks for that."""


class Failover:
    """The candidates as one model: the auth profiles of a model first, then the fall-back models, in order.

    Each model gets one try and `max_retries` more, over all its profiles. `auth`, `rate_limit`, `billing` and `timeout`
    are tried again, but a key that was refused isn't within the same call; `quota` goes on to the next model at once;
    `context_overflow` and `unknown` end the call. One instance serves all sessions of a process.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        clock: Clock,
        *,
        max_retries: int = 3,
        cooldown: BackOff = PROFILE_REST,
    ) -> None:
        profiles = [AuthProfile(candidate, clock, cooldown) for candidate in candidates]
        self.name = candidates[0].name
        self.local = all(isinstance(each.model, KnownModel) and each.model.local for each in candidates)
        self._models = [list(group) for _, group in itertools.groupby(profiles, key=lambda each: each.name)]
        self._alone = len(profiles) == 1
        self._max_retries = max_retries
        self._clock = clock
        self._homes: OrderedDict[str, tuple[AuthProfile, float]] = OrderedDict()
        self._asked: OrderedDict[str, AuthProfile] = OrderedDict()

    def limits(self, session_key: str = "") -> Limits:
        """Those of the model that the session asked last, else of the first."""
        profile = self._asked.get(session_key, self._models[0][0])
        return msgspec.structs.replace(profile.limits(), cache_s=STICKY_S[profile.candidate.settings.cache_life])

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """As the model counts it that the session asked last, else the first; None while its profile rests."""
        profile = self._asked.get(request.session_key, self._models[0][0])
        model = profile.candidate.model
        if profile.rest() or not isinstance(model, CountingModel):
            return None
        return await model.count_tokens(profile.candidate.request(request))

    async def close(self) -> None:
        for profile in itertools.chain.from_iterable(self._models):
            if isinstance(profile.candidate.model, KnownModel):
                await profile.candidate.model.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """The first complete answer; a `Retrying` before each further attempt takes back what had streamed.

        Its `attempt` counts the retries of the call from 1; `profile_id` and `model` are those of the new attempt.
        """
        session_key = request.session_key
        call = _Call(self._plan(session_key), self._max_retries)
        if (first := call.profile) and first.error and first.rest():  # after an earlier call
            first.shorten_rest()
            yield call.announce(first, first.error)
        while profile := call.profile:
            shown: list[str] = []
            error: ModelError | None = None
            if session_key and not self._alone:
                _remember(self._asked, session_key, profile)
            sent = await profile.fitted(request)
            async with await profile.attempt(sent) as attempt:
                async for event in attempt.events:
                    if type(event) is TextDelta:  # nearly always
                        shown.append(event.delta)
                    elif type(event) is Finished:
                        yield self._finished(event, attempt, session_key)
                        return
                    elif type(event) is Failed:
                        error = event.error
                        break
                    elif type(event) is Retrying:  # a gateway's own fail-over took back what it had streamed
                        shown.clear()
                        call.retries += 1
                        event = msgspec.structs.replace(event, attempt=call.retries)
                    attempt.answering()
                    yield event
                error = error or ModelError(f"{profile.name} ended its answer without saying how.")
                attempt.failed(error)
            if (
                profile.limits.learn(error)
                and (await profile.fitted(request)).max_tokens < sent.max_tokens
                and not shown
            ):
                continue  # it asked for more than this model can answer, or than its window has left
            call.failed(profile, error)
            if call.profile:
                call.retries += 1
                yield call.announce(call.profile, error, "".join(shown))
        yield Failed(call.verdict())

    def _plan(self, session_key: str) -> list[list[AuthProfile]]:
        """The models and their profiles in the order of this call: where the session is at home, then who is ready."""
        if self._alone:
            return [[*self._models[0]]]
        home, since = self._homes.get(session_key, (None, 0.0))
        if home and self._clock.monotonic() >= since + STICKY_S[home.candidate.settings.cache_life]:
            home = None
        models = sorted(self._models, key=lambda each: (home not in each, min(map(AuthProfile.rest, each)) > 0))
        return [sorted(each, key=lambda profile: profile is not home) for each in models]

    def _finished(self, event: Finished, attempt: Attempt, session_key: str) -> Finished:
        attempt.succeeded()
        if session_key and not self._alone:
            _remember(self._homes, session_key, (attempt.profile, self._clock.monotonic()))
        usage, cost = event.message.usage, attempt.profile.candidate.cost
        if cost is None or usage.cost_usd is not None:  # some providers say what a call cost
            return event
        usage = msgspec.structs.replace(usage, cost_usd=cost(usage))
        return Finished(msgspec.structs.replace(event.message, usage=usage))


class _Call:
    """A call's next attempt (`profile`, None at the end), and its final error."""

    def __init__(self, models: list[list[AuthProfile]], max_retries: int) -> None:
        self.retries = 0
        self._models = models
        self._max_retries = max_retries
        self._retries_left = 0
        self._profiles: list[AuthProfile] = []
        self._refused: defaultdict[str, list[AuthProfile]] = defaultdict(list)
        self._ends: dict[str, tuple[AuthProfile, ModelError]] = {}
        self.profile = self._next_model()

    def failed(self, profile: AuthProfile, error: ModelError) -> None:
        """Choose the profile of the next attempt."""
        error.profile_id = profile.id
        self._ends[profile.name] = (profile, error)
        if error.kind == "auth":  # no more of this key in this call
            self._profiles.remove(profile)
            self._refused[profile.name].append(profile)
            if not self._profiles:  # with all keys refused there is nothing to wait for, nor in the next call
                for each in self._refused[profile.name]:
                    each.recover()
        self.profile = None
        if error.retriable and not error.silent and self._retries_left:
            self._retries_left -= 1
            self.profile = self._readiest()
        if not self.profile and (error.retriable or error.kind == "quota"):
            self.profile = self._next_model()

    def announce(self, profile: AuthProfile, error: ModelError, withdrawn: str = "") -> Retrying:
        """The event that announces an attempt with `profile` after `error`."""
        text = error.message.removeprefix(f"{profile.name}: ")
        kind, rest, name = error.kind, profile.rest(), profile.name
        return Retrying(self.retries, kind, profile.id, rest, withdrawn, name, text, asked=profile.asked)

    def verdict(self) -> ModelError:
        """The error of the failed call, with advice: a line for each model that was tried; the last one's kind."""
        from denizen.models.advice import with_advice

        lines: list[str] = []
        for profile, error in self._ends.values():
            refused = [each.candidate.key_from for each in self._refused[profile.name]]
            lines.append(with_advice(error, profile, refused, alone=len(self._ends) == 1))
        _, last = self._ends.popitem()[1]
        return ModelError(
            "\n".join(lines),
            kind=last.kind,
            status=last.status,
            retry_after=last.retry_after,
            provider=last.provider,
            profile_id=last.profile_id,
        )

    def _next_model(self) -> AuthProfile | None:
        while self._models:
            self._profiles = self._models.pop(0)
            self._retries_left = self._max_retries
            if ready := self._readiest():
                return ready
            resting = self._profiles[0]
            self._ends[resting.name] = (resting, resting.error or ModelError(f"{resting.name} rests."))
        return None

    def _readiest(self) -> AuthProfile | None:
        """The profile of the model that is ready first; None if each rests for too long."""
        if self._profiles and not self._profiles[0].error:
            return self._profiles[0]
        first = min(self._profiles, key=AuthProfile.rest, default=None)
        elsewhere = min((profile.rest() for model in self._models for profile in model), default=MAX_REST_WAIT_S)
        return (
            first
            if first and first.rest() <= max(MAX_REST_WAIT_BEFORE_FALLBACK_S, min(elsewhere, MAX_REST_WAIT_S))
            else None
        )


def _remember(sessions: OrderedDict[str, _T], key: str, value: _T) -> None:
    sessions[key] = value
    sessions.move_to_end(key)
    if len(sessions) > MAX_SESSIONS:
        sessions.popitem(last=False)
