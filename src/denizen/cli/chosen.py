"""Why a model is the one in use."""

from denizen.config.load import Loaded
from denizen.config.toml import SettingsFile
from denizen.models.reach import reach


def chosen_by(loaded: Loaded, name: str) -> str:
    """What says that the model `name` is in use: a line of a file, else what was found here. Raises ConfigError."""
    if loaded.config.model:
        return _place(loaded)
    way = reach(name.partition(":")[0], loaded.config, loaded.environ)
    if way.keys:
        return f"none is set; there is {way.keys[0].source}"
    if way.provider.local:
        return f"none is set; a server answers at {way.address}"
    return "none is set; no key and no local server were found"


def _place(loaded: Loaded) -> str:
    """The line with the setting that holds."""
    for path in reversed(loaded.sources):
        file = SettingsFile.read(path)
        if "model" in file.data:
            return file.locate(("model",))
    return "the options"
