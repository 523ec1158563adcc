"""Gemini on Google's Vertex AI: the extra `denizen[vertex]`.

Credentials are Google's application default ones, as google-auth finds them for the process: the file that
`GOOGLE_APPLICATION_CREDENTIALS` names, else those of `gcloud auth application-default login`, else the machine's.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from yarl import URL

from denizen.config.extras import how_to_install
from denizen.errors import ConfigError, ModelError
from denizen.models.catalogue import PricedModel
from denizen.models.endpoint import Endpoint
from denizen.models.gemini import GeminiModel
from denizen.models.providers import PROVIDERS, Provider
from denizen.ports import ModelRequest

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_NOT_SET_UP: Final = "Vertex AI isn't set up"

TOKEN_TIMEOUT_S: Final = 30.0
"""Seconds that Google has to give a token."""


class _Answer(NamedTuple):
    """As google-auth reads it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class VertexModel(GeminiModel):
    """A model of Vertex AI, named `gemini-…`, or `publishers/PUBLISHER/models/MODEL`.

    Empty, `project` and `location` are those of `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION`, else the
    credentials' project and `global`; an empty `base_url` is the location's. Raises ConfigError if the extra isn't
    installed.
    """

    usual = PROVIDERS["vertex"]

    def __init__(
        self,
        model: str,
        provider: Provider | None = None,
        *,
        environ: Mapping[str, str],
        project: str = "",
        location: str = "",
        base_url: str = "",
        **options: Any,
    ) -> None:
        if not find_spec("google") or not find_spec("google.auth"):
            raise ConfigError(f"vertex needs packages that aren't installed: {how_to_install('vertex')}")
        self._location = location or environ.get("GOOGLE_CLOUD_LOCATION") or "global"
        region = "" if self._location == "global" else f"{self._location}-"
        super().__init__(
            model, provider, base_url=base_url or f"https://{region}aiplatform.googleapis.com/v1", **options
        )
        self._project = project or environ.get("GOOGLE_CLOUD_PROJECT", "")
        self._found: Credentials | None = None
        self._thread = ThreadPoolExecutor(1, "denizen-vertex")  # the loop's own threads find the addresses of hosts

    @property
    def _name(self) -> str:
        model = self.model if "/" in self.model else f"publishers/google/models/{self.model}"
        return quote(f"/projects/{self._project}/locations/{self._location}/{model}")

    async def served(self) -> list[PricedModel]:
        raise self._identity.failure("Vertex AI lists models elsewhere: in its Model Garden")

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    def _own_id(self, id: str) -> dict[str, Any]:
        """None: Vertex refuses the field."""
        return {}

    async def _endpoint(self, request: ModelRequest) -> Endpoint:
        found = self._found
        if found is None or not found.valid:
            loop = asyncio.get_running_loop()

            def send(url: str, method: str = "GET", body: bytes = b"", headers: Any = (), **options: Any) -> Any:
                """A request of google-auth's, which calls this in its thread."""
                if options.get("cert") or method != ("POST" if body else "GET"):
                    from google.auth.transport.requests import Request

                    return Request()(url, method, body, headers, **{"timeout": TOKEN_TIMEOUT_S, **options})
                sent = self._send(url, body, dict(headers or ()))
                return asyncio.run_coroutine_threadsafe(sent, loop).result(TOKEN_TIMEOUT_S + 1)

            found = await loop.run_in_executor(self._thread, self._renewed, send)  # reads files, and asks Google
        to = await super()._endpoint(request)
        to.headers = {**to.headers}
        found.apply(to.headers)
        return to

    async def _send(self, url: str, body: bytes, headers: Mapping[str, str]) -> "_Answer":
        """GET, or POST where there is a body. Raises TransportError."""
        from google.auth.exceptions import TransportError

        try:
            to = Endpoint(url, "", "the address of its token server", headers)
            to.url = URL(url)  # to the letter
            async with (
                asyncio.timeout(TOKEN_TIMEOUT_S),
                self._http.post(to, (body,) if body else (), stream=True) as response,
            ):
                return _Answer(response.status, response.headers, await response.read())
        except (OSError, ConfigError) as error:
            raise TransportError(str(error) or "it was too slow") from error

    def _renewed(self, send: Callable[..., Any]) -> "Credentials":
        """Credentials that are valid for a while; blocks. Raises ModelError."""
        import google.auth
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            if self._found is None:
                self._found, project = google.auth.default(scopes=_SCOPES)
                self._project = self._project or project or ""
            if not self._found.valid:
                self._found.refresh(send)
        except TransportError as error:
            raise self._identity.failure(f"Google's token server can't be reached: {error}", "timeout") from error
        except GoogleAuthError as error:
            raise self._not_set_up(str(error.args[0] if error.args else error)) from error
        except OSError as error:  # of the files: failures of the network are TransportErrors
            raise self._not_set_up(str(error)) from error
        if not self._project:
            raise self._not_set_up("no project is known")
        return self._found

    def _not_set_up(self, why: str) -> ModelError:
        return self._identity.failure(f"{_NOT_SET_UP}: {why}", "auth")
