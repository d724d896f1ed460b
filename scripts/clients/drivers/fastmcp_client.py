import pathlib
from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.auth import OAuth
from key_value.aio.stores.filetree import (
    FileTreeStore,
    FileTreeV1CollectionSanitizationStrategy,
    FileTreeV1KeySanitizationStrategy,
)

from errand import run


@asynccontextmanager
async def connect(url):
    folder = pathlib.Path("login-state").absolute()
    folder.mkdir(exist_ok=True)
    store = FileTreeStore(
        data_directory=folder,
        key_sanitization_strategy=FileTreeV1KeySanitizationStrategy(folder),
        collection_sanitization_strategy=FileTreeV1CollectionSanitizationStrategy(folder),
    )
    # auth="oauth" is the same, with the tokens in memory.
    async with Client(url, auth=OAuth(token_storage=store)) as client:
        yield client.list_tools, lambda: client.call_tool("service_ping", {"message": "hello"})


run(connect)
