"""The sample wiki, which the question set is about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.base.resources import sample_wiki
from gateway.cli.common.files import opened_database
from gateway.config.settings import WikiSettings
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.local import LocalWiki


@pytest.fixture
async def wiki(tmp_path: Path) -> AsyncIterator[LocalWiki]:
    with opened_database(tmp_path / "hearth.db") as database:
        await load_sample(database, sample_wiki())
        yield LocalWiki(database, WikiSettings())
