from contextlib import asynccontextmanager

from pydantic_ai.mcp import MCPToolset

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    async with MCPToolset(url, auth=log_in(url)) as tools:

        async def call_tool():
            return await tools.direct_call_tool("service_ping", {"message": "hello"})

        yield tools.list_tools, call_tool


run(connect)
