"""What a program brings for the login of the Python SDK (1.x and 2.x): a file for what it was
given, a loopback listener for the redirect, and the browser that the system would open."""

import asyncio
import json
import pathlib
import subprocess
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

FILE = pathlib.Path("login.json")
PORT = 8765
REDIRECT_URI = f"http://127.0.0.1:{PORT}/callback"


class KeptInFile(TokenStorage):
    async def get_tokens(self):
        return _read("tokens", OAuthToken)

    async def set_tokens(self, tokens):
        _keep("tokens", tokens)

    async def get_client_info(self):
        return _read("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info):
        _keep("client", client_info)


def metadata():
    return OAuthClientMetadata(
        client_name="Postern trial",
        redirect_uris=[REDIRECT_URI],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )


def log_in(url):
    """An `auth` for the HTTP client of either version of the SDK."""
    redirect = Redirect()
    return OAuthClientProvider(url, metadata(), KeptInFile(), redirect.open_browser, redirect.answer)


class Redirect:
    async def open_browser(self, url):
        self.visited = asyncio.get_running_loop().create_future()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", PORT)
        subprocess.Popen(["xdg-open", url])

    async def answer(self):
        query = {name: values[0] for name, values in parse_qs(await self.visited).items()}
        self.server.close()
        return _answer(query)

    async def _serve(self, reader, writer):
        line = (await reader.readline()).decode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nDone.")
        await writer.drain()
        writer.close()
        if not self.visited.done():
            self.visited.set_result(urlsplit(line.split(" ")[1]).query)


def _answer(query):
    try:
        from mcp.client.auth import AuthorizationCodeResult
    except ImportError:  # version 1
        return query["code"], query.get("state")
    fields = {"code": query["code"], "state": query.get("state"), "iss": query.get("iss")}
    return AuthorizationCodeResult(**fields)


def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def _read(name, model):
    kept = _all().get(name)
    return None if kept is None else model.model_validate(kept)


def _keep(name, value):
    FILE.write_text(json.dumps(_all() | {name: value.model_dump(mode="json", exclude_none=True)}))
