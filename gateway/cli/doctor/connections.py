"""Part of `hearth doctor`: whether what the settings name answers: the database server, upstream servers, the wiki."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.base.aio import side_by_side
from gateway.base.errors import ConfigurationError, HearthError
from gateway.config.settings import Settings, UpstreamSettings, WikiSettings
from gateway.store.open import make_database
from gateway.wiki.remote.mediawiki import MediaWiki

if TYPE_CHECKING:
    from gateway.inference.upstream.connection import Connection

    Check = Callable[[Connection], Awaitable[str]]

Verdict = Literal["yes", "no"]

# A server has its list of models at hand. A reply may wait for a model that is loaded first.
_LIST_SECONDS, _PROBE_SECONDS = 5.0, 60.0
_PROBE = "wiki"  # any word: results do not matter


class StoreCheck(Struct, frozen=True):
    """Whether the database of `store.url` can be used. ``found`` is its version and schema, or the problem.

    ``configured`` is false if no server starts until somebody changes the settings or the database.
    """

    verdict: Verdict
    found: str
    configured: bool = True


class UpstreamCheck(Struct, frozen=True):
    """Whether a server can be used. ``found`` lists its abilities and what replaces missing ones, or the problem."""

    url: str
    verdict: Verdict
    found: str


class WikiCheck(Struct, frozen=True):
    """Whether the source of pages works. ``found`` is the wiki's description of itself, or the problem."""

    source: Literal["local", "api"]
    verdict: Verdict
    found: str


def check_store(settings: Settings) -> StoreCheck | None:
    """Connect to the database of `store.url` without changing it; None for the SQLite file."""
    if not settings.store.url:
        return None
    try:
        return StoreCheck("yes", make_database(settings).probe())
    except HearthError as error:
        return StoreCheck("no", error.message, not isinstance(error, ConfigurationError))


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


def check_upstreams(settings: Settings) -> list[UpstreamCheck]:
    """Probe the servers of `upstream` with a few short requests."""
    upstream = settings.upstream

    async def all_of_them() -> list[UpstreamCheck]:
        checks: list[tuple[str, Check]] = [(url, partial(_check, upstream)) for url in upstream.urls]
        for kind, urls in (("embedding", upstream.embedding_urls), ("rerank", upstream.rerank_urls)):
            checks += [(url, partial(_check_vectors, settings, kind)) for url in urls]
        return await side_by_side([_within(url, upstream, check) for url, check in checks])

    return asyncio.run(all_of_them())


async def _within(url: str, settings: UpstreamSettings, check: Check) -> UpstreamCheck:
    """Run ``check`` within a time that a user waits, not with `upstream.silence_seconds` for each request."""
    # Late, because most installations have no upstream.
    from gateway.inference.upstream.connection import Connection

    server = Connection(url, settings.key, settings.silence_seconds)
    waited = _LIST_SECONDS
    try:
        async with asyncio.timeout(waited):
            await server.get("/v1/models")
        waited = _PROBE_SECONDS
        async with asyncio.timeout(waited):
            return UpstreamCheck(url, "yes", await check(server))
    except HearthError as error:
        return UpstreamCheck(url, "no", error.message)
    except TimeoutError:
        missing = "its list of models" if waited == _LIST_SECONDS else "replies to a few short requests"
        return UpstreamCheck(
            url, "no", f"it did not send {missing} within {waited:g} s: it hangs, is busy, or loads its model"
        )
    finally:
        await server.close()


async def _check_vectors(settings: Settings, kind: str, server: Connection) -> str:
    # Late, because most installations have no upstream.
    from gateway.inference.upstream.embedding import UpstreamEmbedder, UpstreamReranker

    alone = replace(settings.upstream, embedding_urls=[server.url], rerank_urls=[server.url])
    make = UpstreamEmbedder if kind == "embedding" else UpstreamReranker
    host = make(replace(settings, upstream=alone))
    try:
        await host.warm()
        able = host.health().replicas[0].abilities
    finally:
        await host.close()
    does = f"embeddings of {able['dimensions']} dimensions" if kind == "embedding" else "scores for reranking"
    return f"{able['program'] or 'an unknown program'}, {does}"


async def _check(settings: UpstreamSettings, server: Connection) -> str:
    # Late, because most installations have no upstream.
    from gateway.inference.upstream.abilities import probe

    able = await probe(server, settings.model, settings.context, bool(settings.tokenizer))
    can = f"{able.program or 'an unknown program'}, {able.context} tokens; schemas by {able.schemas}"
    return "; ".join([can, *able.lacking])
