"""python <driver>.py <url> list|call|hold: what every driver is asked to do."""

import asyncio
import sys


def run(connect):
    """`connect(url)` is an asynchronous context manager of (list_tools, call_tool)."""
    asyncio.run(_run(connect))


async def _run(connect):
    url, errand = sys.argv[1:3]
    async with connect(url) as (list_tools, call_tool):
        print(await (list_tools() if errand == "list" else call_tool()), flush=True)
        if errand == "hold":
            print("READY", flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            print(await call_tool(), flush=True)
