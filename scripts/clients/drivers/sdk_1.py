from contextlib import asynccontextmanager

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    async with (
        httpx.AsyncClient(auth=log_in(url), follow_redirects=True, timeout=30) as http,
        streamable_http_client(url, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session.list_tools, lambda: session.call_tool("service_ping", {"message": "hello"})


run(connect)
