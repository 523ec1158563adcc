"""Secrets among the settings: their values, for the redactor, and advice on where to keep them."""

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, unquote_plus

from denizen.config.env import references
from denizen.config.settings import Config
from denizen.config.source import KeyPath, Source, dotted, strings

SECRET_WORDS = frozenset(
    {
        *("KEY", "KEYS", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SECRET", "SECRETS", "PAT"),
        *("TOKEN", "TOKENS", "APITOKEN", "ACCESSTOKEN", "AUTHTOKEN", "CREDENTIAL", "CREDENTIALS"),
        *("PASSWORD", "PASSWORDS", "PGPASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "PASS", "PWD"),
    }
)
"""Words in the names of secrets."""
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_HEADER = SECRET_WORDS | {"AUTH", "AUTHORIZATION", "COOKIE"}


def words_of(name: str) -> set[str]:
    """The words of a name, in capitals: `apiKey`, `API_KEY` and `api-key` are API and KEY."""
    return {word.upper() for word in _NAME_WORD.findall(name)}


def secrets_of(config: Config, dotenv: Mapping[str, str]) -> dict[str, str]:
    """What must never be shown, by its place: keys, headers like `Authorization`, and all of the home's `.env`."""
    found = {f".env:{name}": value for name, value in dotenv.items()}
    found["memory.embeddings"] = config.memory.embeddings.api_key
    found |= _of_address("memory.embeddings.base_url", config.memory.embeddings.base_url)
    for provider, settings in config.providers.items():
        found |= _of_address(f"{provider}.base_url", settings.base_url)
        found |= {f"{provider}.{profile.id}": profile.api_key for profile in settings.auth_profiles}
        for name, value in settings.headers.items():
            if words_of(name) & _SECRET_HEADER:
                found[f"{provider}.{name}"] = (
                    f"{value}\n{value.rpartition(' ')[2]}"  # the token of `Bearer …` also alone
                )
    return found


def _of_address(name: str, address: str) -> dict[str, str]:
    """The password of an address, and what follows its `?`, each value for itself."""
    password = unquote(address.partition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")[2])
    values = [piece.partition("=")[2] or piece for piece in address.partition("?")[2].split("&")]
    found = {f"{name}?{number}": unquote_plus(value) for number, value in enumerate(values, 1)}
    return {place: secret for place, secret in {f"{name}.password": password, **found}.items() if secret}


def secret_notices(source: Source, path: Path) -> Iterator[str]:
    """Advice on the keys that stand in a file as they are."""
    plain = [place for place, text in strings(source.data) if _is_secret(place) and text and not any(references(text))]
    for place in plain:
        yield (
            f"{source.place(place)}: {dotted(place)} holds a key. "
            f"Safer: put it in .env in the home and write a reference, `${{NAME}}`."
        )
    if plain:
        yield from open_to_others(path)


def open_to_others(path: Path) -> Iterator[str]:
    """A warning when other users of the machine can read a file."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield f"{path} holds keys, and other users can read it. Close it to them: chmod 600 {path}"


def _is_secret(path: KeyPath) -> bool:
    return path[-1] == "api_key" or (path[-2:-1] == ("headers",) and bool(words_of(str(path[-1])) & _SECRET_HEADER))
