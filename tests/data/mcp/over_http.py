"""An MCP server over HTTP, made with the library that servers are made with; `locked`: it wants a sign-in (OAuth).

Its first argument is its port, 0 for any; it prints the one it has. An access token is over after a second, so that it must be renewed.
"""

import secrets
import socket
import sys
import time
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


class Accounts:
    """Lets everybody in who asks."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.kept: dict[str, Any] = {}
        self.renewed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.kept[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Any:
        return self.kept.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return self._tokens(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> Any:
        return self.kept.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewed += 1
        return self._tokens(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.kept.get(token)
        return found if isinstance(found, AccessToken) and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.kept.pop(token.token, None)

    def _tokens(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        until = int(time.time()) + 2
        self.kept[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until, resource=resource
        )
        self.kept[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=1, scope=" ".join(scopes))


def main() -> None:
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    port = listening.getsockname()[1]
    address, accounts, options = f"http://127.0.0.1:{port}", Accounts(), {}
    if "locked" in sys.argv:
        options = {
            "auth_server_provider": accounts,
            "auth": AuthSettings.model_validate(
                {
                    "issuer_url": address,
                    "resource_server_url": f"{address}/mcp",
                    "client_registration_options": ClientRegistrationOptions(enabled=True),
                }
            ),
        }
    server = MCPServer("over-http", **options)

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def flood() -> str:
        """Say too much."""
        return "x" * 20_000_000

    @server.tool()
    def renewed() -> int:
        """How often a sign-in was renewed."""
        return accounts.renewed

    print(port, flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listening])


main()
