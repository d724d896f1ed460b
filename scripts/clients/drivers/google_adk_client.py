from contextlib import asynccontextmanager

from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_session_manager import create_mcp_http_client

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    auth = log_in(url)

    def create_http_client(headers=None, timeout=None, **_):
        return create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)

    params = StreamableHTTPConnectionParams(url=url, httpx_client_factory=create_http_client)
    toolset = McpToolset(connection_params=params)

    async def list_tools():
        return await toolset.get_tools()

    async def call_tool():
        tools = {tool.name: tool for tool in await toolset.get_tools()}
        return await tools["service_ping"].run_async(args={"message": "hello"}, tool_context=None)

    yield list_tools, call_tool
    await toolset.close()


run(connect)
