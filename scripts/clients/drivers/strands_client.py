from contextlib import asynccontextmanager

from strands.tools.mcp import MCPClient

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    client = MCPClient(url=url, auth_provider=log_in(url))
    try:
        await client.load_tools()

        async def list_tools():
            return [tool.tool_name for tool in await client.load_tools()]

        async def call_tool():
            return await client.call_tool_async("1", "service_ping", {"message": "hello"})

        yield list_tools, call_tool
    finally:
        client.stop(None, None, None)


run(connect)
