"""Fixtures: a wiki's API and its clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.config.settings import WikiSettings
from gateway.wiki.remote import client as client_module
from gateway.wiki.remote.mediawiki import MediaWiki
from tests.gateway.wiki.remote.api_server import ApiServer, serving


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serving() as api:
        yield api


class Wikis:
    """Makes clients with short back-off and closes them at the end."""

    def __init__(self) -> None:
        self.made: list[MediaWiki] = []

    def __call__(self, api_url: str, **values: Any) -> MediaWiki:
        self.made.append(
            MediaWiki(WikiSettings(**{"api_url": api_url, "fetch_timeout_seconds": 30} | values))
        )
        return self.made[-1]


@pytest.fixture
async def wikis(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wikis]:
    monkeypatch.setattr(client_module, "_FIRST_BACKOFF", 0.01)
    made = Wikis()
    yield made
    for wiki in made.made:
        await wiki.close()
