"""Where the attempts of one model call go: from profile to profile, from model to model."""

import msgspec

from denizen.errors import ModelError
from denizen.events import Retrying
from denizen.models.profiles import Profile

PATIENCE = 600.0
"""Seconds that a call waits for a resting profile at most; one that must rest longer is passed over."""


class Call:
    """Where the next attempt of a call goes (`profile`; None: nowhere), and the last word then."""

    def __init__(self, models: list[list[Profile]], max_retries: int) -> None:
        self._models = models
        self._max_retries = max_retries
        self._retries_left = 0
        self._retries = 0
        self._profiles: list[Profile] = []
        self._refused: list[Profile] = []
        self._errors: dict[str, ModelError] = {}
        self.profile = self._next_model()

    def failed(self, profile: Profile, error: ModelError) -> None:
        """Choose the profile of the next attempt."""
        error.profile_id = profile.id
        self._errors[profile.name] = self._without_key(profile, error) if error.kind == "auth" else error
        self.profile = self._again() if error.retriable else None
        if not self.profile and (error.retriable or error.kind == "quota"):
            self.profile = self._next_model()

    def counted(self, event: Retrying) -> Retrying:
        """Another's retry, with its number in this call."""
        self._retries += 1
        return msgspec.structs.replace(event, attempt=self._retries)

    def retrying(self, profile: Profile, error: ModelError, withdrawn: str) -> Retrying:
        """What announces the attempt with `profile`."""
        self._retries += 1
        return Retrying(self._retries, error.kind, profile.id, profile.rest(), withdrawn, profile.name)

    def verdict(self) -> ModelError:
        """Why the call failed: in the words of every model that was tried, and of the last one's kind."""
        *earlier, last = self._errors.values()
        told = [error.message for error in (*earlier, last)]
        if last.retry_after and last.retry_after > PATIENCE:
            told.append(f"it asks to wait {last.retry_after:.0f} s")
        return _reworded(last, "; ".join(told)) if len(told) > 1 else last

    def _without_key(self, profile: Profile, error: ModelError) -> ModelError:
        """The error of a refused key; the last word on a model names who must mend it.

        When all keys are refused there is nothing to wait for, nor in the next call.
        """
        self._profiles.remove(profile)
        self._refused.append(profile)
        if not self._profiles:
            for each in self._refused:
                each.recover()
        goes_on = self._profiles and self._retries_left
        return error if goes_on else _reworded(error, _refusal(self._refused, error))

    def _again(self) -> Profile | None:
        if not self._retries_left:
            return None
        self._retries_left -= 1
        return _readiest(self._profiles)

    def _next_model(self) -> Profile | None:
        while self._models:
            self._profiles = self._models.pop(0)
            self._refused = list[Profile]()
            self._retries_left = self._max_retries
            if ready := _readiest(self._profiles):
                return ready
            resting = self._profiles[0]
            self._errors[resting.name] = resting.error or ModelError(f"{resting.name} rests.")
        return None


def _readiest(profiles: list[Profile]) -> Profile | None:
    """Who may be tried first; None where nobody may before patience is at its end."""
    if profiles and not profiles[0].error:
        return profiles[0]
    first = min(profiles, key=Profile.rest, default=None)
    return first if first and first.rest() <= PATIENCE else None


def _refusal(profiles: list[Profile], error: ModelError) -> str:
    """One sentence for who must mend the keys."""
    what = (
        "set a key that works"
        if len(profiles) == 1
        else f"none of the {len(profiles)} keys that were tried works, set others"
    )
    where = " or ".join(dict.fromkeys(profile.candidate.key_from for profile in profiles))
    return f"{error.message.rstrip('.')}; {what} in {where}" if where else f"{error.message.rstrip('.')}; {what}"


def _reworded(error: ModelError, message: str) -> ModelError:
    return ModelError(
        message,
        kind=error.kind,
        status=error.status,
        retry_after=error.retry_after,
        provider=error.provider,
        profile_id=error.profile_id,
    )
