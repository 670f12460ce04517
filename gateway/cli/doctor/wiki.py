"""Part of `hearth doctor`: whether the configured wiki answers."""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.mediawiki import MediaWiki

_PROBE = "wiki"  # any word: it is the answer that counts, not what is found


class WikiCheck(Struct, frozen=True):
    """Where pages come from, and whether they can be had. ``found`` is what the wiki says of itself."""

    source: Literal["local", "api"]
    verdict: Literal["yes", "no"]
    found: str


def check_wiki(settings: WikiSettings) -> WikiCheck:
    """Ask a wiki on another machine for its name and search it once; the local store is not opened."""
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
