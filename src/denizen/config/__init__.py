"""The user's configuration: `denizen.toml`, the home, trust, secrets."""

from denizen.config.load import load_config
from denizen.config.settings import Config

__all__ = ["Config", "load_config"]
