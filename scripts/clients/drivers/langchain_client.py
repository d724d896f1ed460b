from contextlib import asynccontextmanager

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    server = {"transport": "http", "url": url, "auth": log_in(url)}
    async with MultiServerMCPClient({"postern": server}).session("postern") as session:

        async def call_tool():
            tools = {tool.name: tool for tool in await load_mcp_tools(session)}
            return await tools["service_ping"].ainvoke({"message": "hello"})

        yield session.list_tools, call_tool


run(connect)
