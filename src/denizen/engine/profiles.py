"""What differs between agents: the context policy and the action format (design, "The idea in one picture")."""

from collections.abc import Callable
from dataclasses import dataclass

from denizen.actions import Native
from denizen.context import Transcript
from denizen.errors import ConfigError
from denizen.ports import ActionFormat, ContextPolicy, Toolset


@dataclass(frozen=True, slots=True)
class Profile:
    """A name for one choice of the two: `context` makes the policy, given the action format and the tools."""

    name: str
    actions: ActionFormat
    context: Callable[[ActionFormat, Toolset], ContextPolicy]


PROFILES = {profile.name: profile for profile in (Profile("assistant", Native(), Transcript),)}


def find_profile(name: str | Profile) -> Profile:
    """The profile of that name, or the one given. Raises ConfigError naming those there are."""
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise ConfigError(f"there is no profile {name!r}; there is: {', '.join(PROFILES)}")
    return PROFILES[name]
