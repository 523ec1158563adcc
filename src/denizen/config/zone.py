"""The user's time zone."""

from datetime import tzinfo

from denizen.config.settings import Config
from denizen.errors import ConfigError


def user_zone(config: Config) -> tzinfo | None:
    """The zone that `agent.timezone` names; None: the machine's, as `astimezone` takes it. Raises ConfigError."""
    from zoneinfo import ZoneInfo

    name = config.agent.timezone
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, LookupError) as unknown:
        raise ConfigError(f"agent.timezone: {name!r} isn't a time zone. An example: Europe/Berlin.") from unknown
