from contextlib import asynccontextmanager

from mcp_use import MCPClient

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    client = MCPClient({"mcpServers": {"postern": {"url": url, "auth": log_in(url)}}})
    session = await client.create_session("postern")
    try:
        yield session.list_tools, lambda: session.call_tool("service_ping", {"message": "hello"})
    finally:
        await client.close_all_sessions()


run(connect)
