"""Fail-over: a model call is made again with the next auth profile, then with the next model, until one answers.

Seed 003, "Auth profile failover": a profile that failed rests for 1 s, doubling to 60 s, reset by a success; when all
rest, the call waits for the shortest. Added to it: `Retry-After` where longer, streams that die, fall-back models,
and sessions that stay on a profile.
"""

import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence

import msgspec

from denizen.clock import Clock
from denizen.errors import ModelError
from denizen.events import Failed, Finished, Retrying, StreamEvent, TextDelta
from denizen.models.attempts import Call
from denizen.models.profiles import Attempt, Candidate, Cooldown, Profile
from denizen.ports import KnownModel, Limits, ModelRequest

WARM = 300.0
"""Seconds that a session stays where its last call went well: as long as providers keep a prompt in their caches."""

SESSIONS = 4096
"""How many sessions are remembered for that."""


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
        cooldown: Cooldown | None = None,
    ) -> None:
        profiles = [Profile(candidate, clock, cooldown or Cooldown()) for candidate in candidates]
        self.name = candidates[0].name
        self.local = all(isinstance(each.model, KnownModel) and each.model.local for each in candidates)
        self._models = [list(group) for _, group in itertools.groupby(profiles, key=lambda each: each.name)]
        self._alone = len(profiles) == 1
        self._max_retries = max_retries
        self._clock = clock
        self._homes: OrderedDict[str, tuple[Profile, float]] = OrderedDict()
        self._last = self._models[0][0]

    def limits(self) -> Limits:
        """Those of the model that was asked last, at first the first."""
        return self._last.limits()

    async def close(self) -> None:
        for profile in itertools.chain.from_iterable(self._models):
            if isinstance(profile.candidate.model, KnownModel):
                await profile.candidate.model.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """The first complete answer; a `Retrying` before each further attempt takes back what had streamed.

        Its `attempt` counts the retries of the call from 1; `profile_id` and `model` are those of the new attempt.
        """
        call = Call(self._plan(request.session_key), self._max_retries)
        if (first := call.profile) and first.error and first.rest():
            yield call.waiting(first, first.error)
        while profile := call.profile:
            shown: list[str] = []
            error: ModelError | None = None
            self._last = profile
            sent = await profile.fitted(request)
            async with await profile.attempt(sent) as attempt:
                async for event in attempt.events:
                    if type(event) is TextDelta:  # nearly always
                        shown.append(event.delta)
                    elif type(event) is Finished:
                        yield self._finished(event, attempt, request.session_key)
                        return
                    elif type(event) is Failed:
                        error = event.error
                        break
                    elif type(event) is Retrying:  # a gateway's own fail-over took back what it had streamed
                        shown.clear()
                        event = call.counted(event)
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
                yield call.retrying(call.profile, error, "".join(shown))
        yield Failed(call.verdict())

    def _plan(self, session_key: str) -> list[list[Profile]]:
        """The models and their profiles in the order of this call: where the session is at home, then who is ready."""
        if self._alone:
            return [[*self._models[0]]]
        home = self._home(session_key)
        models = sorted(self._models, key=lambda each: (home not in each, min(map(Profile.rest, each)) > 0))
        return [sorted(each, key=lambda profile: profile is not home) for each in models]

    def _home(self, session_key: str) -> Profile | None:
        profile, since = self._homes.get(session_key, (None, 0.0))
        return profile if self._clock.monotonic() < since + WARM else None

    def _finished(self, event: Finished, attempt: Attempt, session_key: str) -> Finished:
        attempt.went_well()
        if session_key and not self._alone:
            self._stay(session_key, attempt.profile)
        usage, cost = event.message.usage, attempt.profile.candidate.cost
        if cost is None or usage.cost_usd is not None:  # some providers say what a call cost
            return event
        usage = msgspec.structs.replace(usage, cost_usd=cost(usage))
        return Finished(msgspec.structs.replace(event.message, usage=usage))

    def _stay(self, session_key: str, profile: Profile) -> None:
        self._homes[session_key] = (profile, self._clock.monotonic())
        self._homes.move_to_end(session_key)
        if len(self._homes) > SESSIONS:
            self._homes.popitem(last=False)
