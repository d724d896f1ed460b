from contextlib import asynccontextmanager

from llama_index.tools.mcp import BasicMCPClient

from errand import run
from login import log_in


@asynccontextmanager
async def connect(url):
    client = BasicMCPClient(url, auth=log_in(url))
    yield client.list_tools, lambda: client.call_tool("service_ping", {"message": "hello"})


run(connect)
