"""`hearth mcp`: the tools of the running server for a program that starts this command."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from gateway.api.mcp.tool import MISSING
from gateway.base.errors import ConfigurationError
from gateway.cli.common.client import ServerOptions, UnreachableError, with_server
from gateway.cli.common.surroundings import complain


@click.command()
@with_server
def mcp(server: ServerOptions) -> None:
    """Offer the tools of the running server to an editor or agent, by MCP over standard input and output.

    The server may start later and restart: it is looked for at each call.
    """
    try:
        # The extra `mcp` may be missing, or an older version be installed.
        from gateway.cli.mcp.bridge import serve
    except ImportError:
        raise ConfigurationError(MISSING) from None
    try:
        server.connect()
    except UnreachableError as error:
        complain(error.message)
    if sys.stdin.isatty():
        complain("this waits for messages of an MCP client; docs/mcp.md tells how to add it to one")
    # The thread that waits for standard input could not be interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve(server))
