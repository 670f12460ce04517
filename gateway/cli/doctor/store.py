"""Part of `hearth doctor`: the database server."""

from __future__ import annotations

from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.config.settings import Settings
from gateway.store.open import make_database


class StoreCheck(Struct, frozen=True):
    """Whether the database of `store.url` can be used. ``found`` is its version and schema, or the problem.

    ``configured`` is false if no server starts until somebody changes the settings or the database.
    """

    verdict: str
    found: str
    configured: bool = True


def check_store(settings: Settings) -> StoreCheck | None:
    """Connect to the database of `store.url` without changing it; None for the SQLite file."""
    if not settings.store.url:
        return None
    try:
        return StoreCheck("yes", make_database(settings).probe())
    except HearthError as error:
        return StoreCheck("no", error.message, not isinstance(error, ConfigurationError))
