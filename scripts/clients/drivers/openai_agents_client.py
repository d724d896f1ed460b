from contextlib import asynccontextmanager

from agents.mcp import MCPServerStreamableHttp

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    async with MCPServerStreamableHttp({"url": url, "auth": log_in(url)}) as server:
        yield server.list_tools, lambda: server.call_tool("service_ping", {"message": "hello"})


run(connect)
