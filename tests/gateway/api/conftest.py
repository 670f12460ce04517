"""The real application with a scripted model, in process or behind a real server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from gateway.cli.common.files import opened_store
from gateway.config.settings import (
    MemorySettings,
    ModelSettings,
    ServerSettings,
    Settings,
    StoreSettings,
    WikiSettings,
)
from gateway.server.app import create_app
from gateway.server.serve import GatewayServer, listening_socket
from gateway.store.keys import Role, create_key
from tests.gateway.api.scripted import ScriptedInference
from tests.writing import write_files

Client = httpx2.AsyncClient


# These run on SQLite and on PostgreSQL; all others do with HEARTH_TEST_POSTGRESQL=1 in the environment.
ON_BOTH = {"test_assistants", "test_facts", "test_prepared", "test_search", "test_tasks", "test_turns"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "settings" not in metafunc.fixturenames:
        return
    if metafunc.module.__name__.rpartition(".")[2] in ON_BOTH:
        metafunc.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
    elif "HEARTH_TEST_POSTGRESQL" in os.environ:
        metafunc.parametrize("settings", ["postgresql"], indirect=True)


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """A temporary data directory and a model file that is never loaded. Unknown model names are refused."""
    model = tmp_path / "scripted.gguf"
    model.write_bytes(b"GGUF")
    on_postgresql = getattr(request, "param", "sqlite") == "postgresql"
    url = request.getfixturevalue("postgres_server").database() if on_postgresql else ""
    return Settings(
        data_dir=tmp_path / "data",
        store=StoreSettings(url=url),
        server=ServerSettings(port=0, shutdown_grace_seconds=1.0, unknown_models="refuse"),
        model=ModelSettings(name=str(model)),
        wiki=WikiSettings(load_sample=False),
        memory=MemorySettings(fresh_share=0.0),  # tests wait until no job is left
    )


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference()


def changed(settings: Settings, section: str, **values: Any) -> Settings:
    """``settings`` with some values of one section replaced."""
    part = msgspec.structs.replace(getattr(settings, section), **values)
    return msgspec.structs.replace(settings, **{section: part})


@asynccontextmanager
async def in_process(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    """A client of the application without a socket; streams arrive in one piece."""
    app = create_app(settings, inference=inference)
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client


@pytest.fixture
async def client(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    async with in_process(settings, inference) as made:
        yield made


class LiveServer:
    """A gateway on a loopback port, and raw connections to it."""

    def __init__(self, url: str, server: GatewayServer) -> None:
        self.url = url
        self.server = server
        self.port = int(url.rpartition(":")[2])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def live(settings: Settings, inference: ScriptedInference) -> AsyncIterator[LiveServer]:
    """Run the real server in this event loop."""
    app = create_app(settings, inference=inference)
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = GatewayServer(settings, app, url.set_result)
    with listening_socket(settings.server) as sock:
        async with app.router.lifespan_context(app):
            task = asyncio.create_task(server.serve(sockets=[sock]))
            try:
                yield LiveServer(await url, server)
            finally:
                server.stop()
                await task


def client_of(server: LiveServer, **options: Any) -> Client:
    """A client of a running server."""
    return httpx2.AsyncClient(base_url=server.url, timeout=30, **options)


@asynccontextmanager
async def connected(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    """A client of the real server, which gets the parts of a stream as they come."""
    async with live(settings, inference) as server, client_of(server) as client:
        yield client


@pytest.fixture
async def server(settings: Settings, inference: ScriptedInference) -> AsyncIterator[LiveServer]:
    async with live(settings, inference) as running:
        yield running


def make_key(settings: Settings, name: str, role: Role) -> str:
    """Create a key as another process would with `hearth key create`."""
    with opened_store(settings) as database:
        return database.write_sync(lambda connection: create_key(connection, name, role))[1]


SHOP = {
    "auth.py": "class Auth:\n    def login(self, user):\n        return check(user)\n\n"
    'def check(user):\n    """Whether the user may."""\n',
    "app.py": "from auth import Auth\n\ndef main(thing):\n    Auth().login('a')\n    thing.reset()\n",
    "docs/guide.md": "# Guide\n\nIntroduction.\n\n## Signing in\n\nPress the turquoise button to sign in.\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a project."""
    return write_files(tmp_path / "shop", SHOP)
