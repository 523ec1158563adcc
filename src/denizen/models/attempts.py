"""Where the attempts of one model call go: from profile to profile, from model to model."""

from collections import defaultdict

import msgspec

from denizen.errors import ModelError
from denizen.events import Retrying
from denizen.models.advice import with_advice
from denizen.models.profiles import Profile

PATIENCE = 600.0
"""Seconds that a call waits for a resting profile at most; one that must rest longer is passed over."""

LINGER = 60.0
"""The same while a further model may be tried sooner: no profile rests longer unless its provider asks for that."""


class Call:
    """Where the next attempt of a call goes (`profile`; None: nowhere), and the last word then."""

    def __init__(self, models: list[list[Profile]], max_retries: int) -> None:
        self._models = models
        self._max_retries = max_retries
        self._retries_left = 0
        self._retries = 0
        self._profiles: list[Profile] = []
        self._refused: defaultdict[str, list[Profile]] = defaultdict(list)
        self._ends: dict[str, tuple[Profile, ModelError]] = {}
        self.profile = self._next_model()

    def failed(self, profile: Profile, error: ModelError) -> None:
        """Choose the profile of the next attempt."""
        error.profile_id = profile.id
        self._ends[profile.name] = (profile, error)
        if error.kind == "auth":
            self._drop(profile)
        self.profile = self._again() if error.retriable and not error.silent else None
        if not self.profile and (error.retriable or error.kind == "quota"):
            self.profile = self._next_model()

    def counted(self, event: Retrying) -> Retrying:
        """Another's retry, with its number in this call."""
        self._retries += 1
        return msgspec.structs.replace(event, attempt=self._retries)

    def retrying(self, profile: Profile, error: ModelError, withdrawn: str) -> Retrying:
        """What announces the attempt with `profile`."""
        self._retries += 1
        return self._announced(profile, error, withdrawn)

    def waiting(self, profile: Profile, error: ModelError) -> Retrying:
        """What announces the first attempt, where `profile` still rests after the `error` of an earlier call."""
        return self._announced(profile, error)

    def _announced(self, profile: Profile, error: ModelError, withdrawn: str = "") -> Retrying:
        told = error.message.removeprefix(f"{profile.name}: ")
        kind, rest, name = error.kind, profile.rest(), profile.name
        return Retrying(self._retries, kind, profile.id, rest, withdrawn, name, told, asked=profile.asked)

    def verdict(self) -> ModelError:
        """Why the call failed, and what to do: a line for every model that was tried, and of the last one's kind."""
        lines = [self._told(profile, error) for profile, error in self._ends.values()]
        _, last = self._ends.popitem()[1]
        return ModelError(
            "\n".join(lines),
            kind=last.kind,
            status=last.status,
            retry_after=last.retry_after,
            provider=last.provider,
            profile_id=last.profile_id,
        )

    def _told(self, profile: Profile, error: ModelError) -> str:
        refused = [each.candidate.key_from for each in self._refused[profile.name]]
        return with_advice(error, profile, refused, alone=len(self._ends) == 1)

    def _drop(self, profile: Profile) -> None:
        """Leave out a refused key for the rest of the call.

        When all keys are refused there is nothing to wait for, nor in the next call.
        """
        self._profiles.remove(profile)
        self._refused[profile.name].append(profile)
        if not self._profiles:
            for each in self._refused[profile.name]:
                each.recover()

    def _again(self) -> Profile | None:
        if not self._retries_left:
            return None
        self._retries_left -= 1
        return self._readiest()

    def _next_model(self) -> Profile | None:
        while self._models:
            self._profiles = self._models.pop(0)
            self._retries_left = self._max_retries
            if ready := self._readiest():
                return ready
            resting = self._profiles[0]
            self._ends[resting.name] = (resting, resting.error or ModelError(f"{resting.name} rests."))
        return None

    def _readiest(self) -> Profile | None:
        """The model's profile that may be tried first; None where none may before patience is at its end."""
        if self._profiles and not self._profiles[0].error:
            return self._profiles[0]
        first = min(self._profiles, key=Profile.rest, default=None)
        return first if first and first.rest() <= self._patience() else None

    def _patience(self) -> float:
        """Seconds to wait for this model, rather than go on to the next."""
        elsewhere = min((profile.rest() for model in self._models for profile in model), default=PATIENCE)
        return max(LINGER, min(elsewhere, PATIENCE))
