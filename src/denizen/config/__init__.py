"""The user's configuration: `denizen.toml`, the home, trust, secrets."""

from denizen.config.load import Loaded, load_config
from denizen.config.settings import Config

__all__ = ["Config", "Loaded", "load_config"]
