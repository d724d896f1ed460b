import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from errand import run
from login import log_in

# 2026-07-28 where the service speaks it (the client's default), or, with "session", as before.
MODE = "legacy" if "session" in sys.argv else "auto"


@asynccontextmanager
async def connect(url):
    async with httpx2.AsyncClient(auth=log_in(url), timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=MODE) as client:
            yield client.list_tools, lambda: client.call_tool("service_ping", {"message": "hello"})


run(connect)
