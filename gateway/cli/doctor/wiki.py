"""The wiki check of `hearth doctor`."""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.mediawiki import MediaWiki

_PROBE = "wiki"  # any word: results do not matter


class WikiCheck(Struct, frozen=True):
    """Whether the source of pages works. ``found`` is the wiki's description of itself, or the problem."""

    source: Literal["local", "api"]
    verdict: Literal["yes", "no"]
    found: str


def check_wiki(settings: WikiSettings) -> WikiCheck:
    """Ask a remote wiki for its name and search it once. The local store is not opened."""
    if not settings.api_url:
        return WikiCheck("local", "yes", "the local store")
    try:
        return WikiCheck("api", "yes", asyncio.run(_ask(settings)))
    except HearthError as error:
        return WikiCheck("api", "no", error.message)


async def _ask(settings: WikiSettings) -> str:
    wiki = MediaWiki(settings)
    try:
        name, count = await wiki.api.site()
        await wiki.search_text(_PROBE, 1)
        await wiki.search_titles(_PROBE, 1)
    finally:
        await wiki.close()
    pages = f", {count:,} pages" if count else ""
    return f"{name}{pages} at {settings.api_url}"
