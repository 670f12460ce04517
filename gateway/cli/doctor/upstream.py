"""Part of `hearth doctor`: what each upstream server can do."""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError
from gateway.config.settings import Settings, UpstreamSettings


class UpstreamCheck(Struct, frozen=True):
    """Whether a server can be used. ``found`` is what it can do, and what is made good or refused, or the problem."""

    url: str
    verdict: str
    found: str


def check_upstreams(settings: Settings) -> list[UpstreamCheck]:
    """Probe the servers of `upstream` with a few short requests."""
    upstream = settings.upstream

    async def all_of_them() -> list[UpstreamCheck]:
        chats = [_check(url, upstream) for url in upstream.urls]
        embedders = [_check_vectors(url, settings, "embedding") for url in upstream.embedding_urls]
        rerankers = [_check_vectors(url, settings, "rerank") for url in upstream.rerank_urls]
        return await side_by_side([*chats, *embedders, *rerankers])

    return asyncio.run(all_of_them())


async def _check_vectors(url: str, settings: Settings, kind: Literal["embedding", "rerank"]) -> UpstreamCheck:
    # Late, because most installations have no upstream.
    from gateway.inference.upstream.embedding import UpstreamEmbedder, UpstreamReranker

    alone = replace(settings.upstream, embedding_urls=[url], rerank_urls=[url])
    make = UpstreamEmbedder if kind == "embedding" else UpstreamReranker
    host = make(replace(settings, upstream=alone))
    try:
        await host.warm()
        able = host.health().replicas[0].abilities
    except HearthError as error:
        return UpstreamCheck(url, "no", error.message)
    finally:
        await host.close()
    does = f"embeddings of {able['dimensions']} dimensions" if kind == "embedding" else "scores for reranking"
    return UpstreamCheck(url, "yes", f"{able['program'] or 'an unknown program'}, {does}")


async def _check(url: str, settings: UpstreamSettings) -> UpstreamCheck:
    # Late, because most installations have no upstream.
    from gateway.inference.upstream.abilities import probe
    from gateway.inference.upstream.connection import Connection

    server = Connection(url, settings.key, settings.silence_seconds)
    try:
        able = await probe(server, settings.model, settings.context, bool(settings.tokenizer))
    except HearthError as error:
        return UpstreamCheck(url, "no", error.message)
    finally:
        await server.close()
    can = f"{able.program or 'an unknown program'}, {able.context} tokens; schemas by {able.schemas}"
    return UpstreamCheck(url, "yes", "; ".join([can, *able.lacking]))
