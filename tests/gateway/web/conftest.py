"""One browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.proxy import NAME
from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser, chromium


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """The browser; in the end the page must have done nothing that its policy forbids, and raised nothing."""
    window.complaints()
    yield window
    window.wide()
    assert window.complaints() == []


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, demo_model: str) -> Iterator[Server]:
    """A server on the built-in model and the sample wiki, without keys, that answers one question at a time."""
    environment = {"HEARTH_SERVER__ALLOWED_HOSTS": NAME, "HEARTH_ASK__MAX_CONCURRENT": "1"}
    server = Server(tmp_path_factory.mktemp("page") / "data", demo_model, env=environment)
    yield server
    assert server.stop() == 0
