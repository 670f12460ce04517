"""A server of its own for every test that asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.server import Server

StartServer = Callable[..., Server]


@pytest.fixture
def start_server(tmp_path: Path, tiny_model: Path) -> Iterator[StartServer]:
    """Start servers on the tiny random model; all are stopped, and checked for leftovers, at the end."""
    servers: list[Server] = []

    def start(*flags: str, env: dict[str, str] | None = None) -> Server:
        server = Server(tmp_path / f"data{len(servers)}", tiny_model, *flags, env=env)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
