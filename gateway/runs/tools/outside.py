"""Tools of MCP servers that the configuration lists: `server.tool`. Steps of a user may name them, no model does.

A process of its own talks to the server for each call and each list (``mcp_client.py``): whatever a server sends can
fill or stop that process alone, which is killed at the limit of time or output.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
import time
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gateway.base.errors import ConfigurationError, DeadlineError, HearthError
from gateway.config.settings import McpServer
from gateway.runs.tool import Calling, RunTool, ToolOutput, hash_of

MISSING = "MCP servers need the extra hearth[mcp]; install it with: python -m pip install 'mcp>=2.3,<3'"
_FRESH_SECONDS = 60.0  # how long a list of tools is used
_START_SECONDS = 20.0  # of our process, besides the server's time
_END_SECONDS = 5.0  # for the rest of the output, which a process that left the group may hold open
_LIST_BYTES = 1024 * 1024
_MAX_DESCRIPTION = 4000
_MAX_ARGUMENTS = 50
_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


class Described(Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}

    @property
    def version(self) -> str:
        return hash_of(self)


class ServerCall(Struct, frozen=True, kw_only=True):
    """Order for the process: call a tool of that ``version``, or with "" list the tools."""

    server: McpServer
    tool: str = ""
    version: str = ""
    arguments: dict[str, Any] = {}


class Reported(Struct, frozen=True, kw_only=True):
    """Report of the process: the tools, a result, or a problem; ``changed``: the tool is another than before."""

    tools: list[Described] = []
    text: str = ""
    problem: str = ""
    changed: bool = False


class OutsideError(HearthError, status=502, code="tool_failed"):
    """An MCP server failed."""


class OutsideServer:
    """The tools of one server; :meth:`refresh` lists them. ``problem`` says why there are none."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.tools: dict[str, RunTool] = {}
        self.problem = ""
        self._listed_at = float("-inf")
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        async with self._lock:
            if time.monotonic() - self._listed_at < _FRESH_SECONDS:
                return
            self.tools, self.problem = {}, ""
            try:
                found = await _ask(ServerCall(server=self.server), _LIST_BYTES)
                for each in found.tools:
                    if each.name in self.server.tools:
                        self.tools[f"{self.server.name}.{each.name}"] = self._tool(each)
            except HearthError as error:
                self.problem = error.message
            self._listed_at = time.monotonic()

    def _tool(self, described: Described) -> RunTool:
        """Raises OutsideError for a description that cannot be used."""
        server, name = self.server, f"{self.server.name}.{described.name}"

        async def call(calling: Calling, given: Struct) -> ToolOutput:
            wanted = ServerCall(
                server=server,
                tool=described.name,
                version=described.version,
                arguments=msgspec.to_builtins(given),
            )
            found = await _ask(wanted, server.max_bytes)
            if found.changed:
                self._listed_at = float("-inf")
                raise OutsideError(f"`{name}` now describes itself otherwise, so it was not called")
            return ToolOutput(found.text)

        call.__name__, call.__doc__ = name, described.description
        risks = frozenset(server.tools[described.name])
        return RunTool(
            _arguments(name, described), call, risks, "effect" not in risks, version=described.version
        )


def outside_servers(servers: list[McpServer]) -> list[OutsideServer]:
    """Raises ConfigurationError."""
    names = [server.name for server in servers]
    for server in servers:
        if bool(server.command) == bool(server.url) or names.count(server.name) > 1:
            problem = "its name twice" if names.count(server.name) > 1 else "not either `command` or `url`"
            raise ConfigurationError(
                f"`tasks.servers`: `{server.name}` has {problem}; give each a name of its own, and one of the two",
                param="tasks.servers",
            )
    return [OutsideServer(server) for server in servers]


def _arguments(name: str, described: Described) -> type[Struct]:
    """The arguments as a struct; the server checks more. Raises OutsideError."""
    properties, required = described.schema.get("properties", {}), described.schema.get("required", [])
    usable = isinstance(properties, dict) and isinstance(required, list) and len(properties) <= _MAX_ARGUMENTS
    if not usable or len(described.description) > _MAX_DESCRIPTION:
        raise OutsideError(f"`{name}` has a description that is too long or no schema of its arguments")
    fields: list[Any] = []
    for number, (key, schema) in enumerate(properties.items()):
        kind = schema.get("type") if isinstance(schema, dict) else None
        of = _TYPES.get(kind, Any) if isinstance(kind, str) else Any
        # Positions, because names may be any text.
        fields.append((f"a{number}", of) if key in required else (f"a{number}", of | UnsetType, UNSET))
    return msgspec.defstruct(
        "Arguments",
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        rename={f"a{number}": key for number, key in enumerate(properties)},
    )


async def _ask(wanted: ServerCall, most: int) -> Reported:
    """The report of the process. Raises DeadlineError, OutsideError."""
    server = wanted.server
    if importlib.util.find_spec("mcp") is None:
        raise OutsideError(MISSING)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway.runs.tools.mcp_client"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=kept | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(server.seconds + _START_SECONDS):
            process.stdin.write(msgspec.json.encode(wanted))
            process.stdin.write_eof()
            written = b""
            while part := await process.stdout.read(65536):
                written += part
                if len(written) > most:
                    raise OutsideError(f"the MCP server `{server.name}` sent more than {most} bytes")
            found = msgspec.json.decode(written, type=Reported) if written else None
    except TimeoutError:
        raise DeadlineError(
            f"the MCP server `{server.name}` did not end within {server.seconds:g} seconds"
        ) from None
    except (msgspec.MsgspecError, ConnectionError):
        found = None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # asyncio waits for the end of what was written, too: unread output would make `wait` last for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await process.communicate()
    if found is None:
        raise OutsideError(
            f"the MCP server `{server.name}` sent more than can be read, or broke its protocol"
        )
    if found.problem:
        raise OutsideError(f"the MCP server `{server.name}`: {found.problem}")
    return found
