"""A process that makes one call of an MCP server, or lists its tools: `python -m gateway.runs.tools.mcp_client`.

Reads what is wanted from standard input and writes what it found to standard output. The server's process dies with
this one. Under bubblewrap it sees the system's programs and the listed paths, and a network only where it may.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import httpx2
import msgspec
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from gateway.base.errors import HearthError
from gateway.base.visible import visible
from gateway.config.settings import McpServer
from gateway.runs.tools.outside import Described, Reported, ServerCall
from gateway.wiki.remote.addresses import Rule, is_plain
from gateway.wiki.remote.transport import PinnedTransport

_MEMORY = 2 * 1024**3  # address space of this process
_PAGES = 20  # of a list of tools
_SHOWN = 500
_LAST_SECONDS = 0.5
_REMEDY = "; name its address in tasks.servers"
# Becomes the server: dies with its parent (PR_SET_PDEATHSIG, SIGKILL), and has the memory that this process may not.
_LAUNCH = (
    "import ctypes, os, resource, sys; ctypes.CDLL(None).prctl(1, 9); "
    "hard = resource.getrlimit(resource.RLIMIT_AS)[1]; resource.setrlimit(resource.RLIMIT_AS, (hard, hard)); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl", "/etc/ld.so.cache", "/etc/alternatives")
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")


def sandboxed(server: McpServer) -> list[str]:
    """The command, under bubblewrap where it is installed and wanted."""
    bubblewrap = shutil.which("bwrap")
    if not server.sandbox or bubblewrap is None:
        return server.command
    words = [bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc"]
    words += ["--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    words += ["--share-net"] if server.network else []
    for path in (*_SYSTEM, *(_NETWORK if server.network else ()), *server.read):
        words += ["--ro-bind-try" if path not in server.read else "--ro-bind", path, path]
    for path in server.write:
        words += ["--bind", path, path]
    return [*words, "--", *server.command]


class _LastWords:
    """The last line that a program writes to standard error, which says why it ended."""

    def __init__(self) -> None:
        read, write = os.pipe()
        self.file = os.fdopen(write, "w")
        self._end = b""
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()

    def _read(self, source: int) -> None:
        while part := os.read(source, 65536):
            self._end = (self._end + part)[-_SHOWN:]

    def after(self, problem: str) -> str:
        """A problem with that line."""
        self.file.close()
        self._reader.join(_LAST_SECONDS)  # a program that still runs keeps its end open
        lines = visible(self._end.decode(errors="replace")).strip().splitlines()
        return f"{problem}; it wrote: {lines[-1].strip()}" if lines else problem


class _Limited(httpx2.AsyncBaseTransport):
    """At most ``left`` bytes of bodies, which are not compressed, and only from the host of the configuration."""

    def __init__(self, url: str, most: int) -> None:
        rule = Rule(
            httpx2.URL(url).raw_host.decode("ascii"), private=False, meant=is_plain(url), remedy=_REMEDY
        )
        self._inner = PinnedTransport(rule, 4)
        self.left = most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("it compresses its replies")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(self, response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, limit: _Limited, inner: httpx2.AsyncByteStream) -> None:
        self._limit = limit
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._limit.left -= len(part)
            if self._limit.left < 0:
                raise httpx2.ReadError("it sent too much")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


async def work(wanted: ServerCall) -> Reported:
    server, words = wanted.server, _LastWords()

    def failed(error: BaseException) -> Reported:
        return Reported(problem=words.after(str(error)[:_SHOWN] or type(error).__name__))

    try:
        async with asyncio.timeout(server.seconds):
            return await _work(wanted, words.file)
    except TimeoutError:
        return Reported(problem=f"it did not answer within {server.seconds:g} seconds")
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return failed(error)
    except (MCPError, HearthError, OSError, ValueError, RuntimeError, httpx2.HTTPError) as error:
        return failed(error)


async def _work(wanted: ServerCall, errors: TextIO) -> Reported:
    server = wanted.server
    async with _transport(server, errors) as transport, Client(transport, cache=None) as client:
        tools, cursor = [], None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [
                Described(tool.name, tool.description or "", tool.input_schema)
                for tool in page.tools
                if tool.name in server.tools
            ]
            if (cursor := page.next_cursor) is None:
                break
        if not wanted.tool:
            return Reported(tools=tools)
        if [each.version for each in tools if each.name == wanted.tool] != [wanted.version]:
            return Reported(changed=True)
        result = await client.call_tool(wanted.tool, wanted.arguments)
        parts = [
            part.text if isinstance(part, TextContent) else f"[{part.type} left out]"
            for part in result.content
        ]
        text = "\n".join(parts) or msgspec.json.encode(result.structured_content).decode()
        return Reported(problem=text[:_SHOWN] or "it failed") if result.is_error else Reported(text=text)


@asynccontextmanager
async def _transport(server: McpServer, errors: TextIO) -> AsyncIterator[Transport]:
    if server.command:
        command = [sys.executable, "-c", _LAUNCH, *sandboxed(server)]
        program = StdioServerParameters(command=command[0], args=command[1:], env=server.env)
        yield stdio_client(program, errlog=errors)
        return
    limited = _Limited(server.url, server.max_bytes)
    async with httpx2.AsyncClient(
        transport=limited, headers=_headers(server), timeout=server.seconds, trust_env=False
    ) as http:
        yield streamable_http_client(server.url, http_client=http)


def _headers(server: McpServer) -> dict[str, str]:
    key = Path(server.key_file).read_text(encoding="utf-8").strip() if server.key_file else ""
    return {"User-Agent": "hearth"} | ({"Authorization": f"Bearer {key}"} if key else {})


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(
        resource.RLIMIT_AS, (_MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard), hard)
    )
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=ServerCall)
    found = asyncio.run(work(wanted))
    sys.stdout.buffer.write(msgspec.json.encode(found))
    sys.stdout.buffer.flush()
    os._exit(0)  # nothing of the server's may delay the end


if __name__ == "__main__":
    main()
