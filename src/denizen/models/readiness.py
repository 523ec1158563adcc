"""Whether a provider can be used here, and why or why not; only servers on this machine are asked."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from denizen.config.extras import how_to_install
from denizen.models.local import served_models
from denizen.models.providers import ProviderAccess


class Readiness(NamedTuple):
    """Whether, and why or why not; `served` are the models of a server on this machine."""

    ready: bool
    why: str
    served: Sequence[str] = ()


class _Cloud(NamedTuple):
    """The places where a cloud's own tools keep credentials: one of `variables`, or a file."""

    packages: Sequence[str]
    variables: Sequence[str]
    names_file: str
    """The variable that says which file."""
    file: str
    """The usual one, in the user's home."""
    advice: str


_CLOUDS: Final[Mapping[str, _Cloud]] = {
    "bedrock": _Cloud(
        ("anthropic", "boto3"),
        ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"),
        "AWS_SHARED_CREDENTIALS_FILE",
        ".aws/credentials",
        "set AWS_PROFILE, or another of AWS's variables",
    ),
    "vertex": _Cloud(
        ("google", "google.auth"),
        (),
        "GOOGLE_APPLICATION_CREDENTIALS",
        ".config/gcloud/application_default_credentials.json",
        "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
    ),
}


def readiness(access: ProviderAccess, environ: Mapping[str, str]) -> Readiness:
    """Whether a provider has what it needs: a server that answers, a key, its cloud's credentials. Blocks briefly."""
    name = access.provider.name
    if access.provider.local:
        served = served_models(access.base_url)
        return Readiness(bool(served), f"{'a' if served else 'no'} server answers at {access.address}", served)
    if cloud := _CLOUDS.get(name):
        if not all(map(find_spec, cloud.packages)):
            return Readiness(False, how_to_install(name))
        found = access.keys[0].source if access.keys else _credentials(cloud, environ)
        return Readiness(bool(found), f"credentials from {found}" if found else cloud.advice)
    if missing := access.missing():
        return Readiness(False, missing)
    if not access.base_url:
        return Readiness(True, "provided by an installed package")
    return Readiness(True, f"key from {access.keys[0].source}" if access.keys else f"no key set, at {access.address}")


def _credentials(cloud: _Cloud, environ: Mapping[str, str]) -> str:
    """The variable or file that holds them; a machine of the cloud's own may have some without either."""
    named = environ.get(cloud.names_file)
    file = Path(named or Path(environ.get("HOME") or Path.home(), cloud.file))
    held = [*(name for name in cloud.variables if environ.get(name)), *([str(file)] if file.is_file() else ())]
    return next(iter(held), "")
