"""One real MediaWiki for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import database
from tests.mediawiki.install import MissingPackagesError
from tests.mediawiki.server import RealMediaWiki

__all__ = ["database"]


@pytest.fixture(scope="session")
def mediawiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMediaWiki]:
    """Debian's MediaWiki with the sample wiki. Skips with the reason where it cannot be installed."""
    try:
        server = RealMediaWiki(tmp_path_factory.mktemp("mediawiki"))
    except MissingPackagesError as error:
        pytest.skip(str(error))
    yield server
    server.stop()
