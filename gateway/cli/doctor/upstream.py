"""Part of `hearth doctor`: what each upstream server can do."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError
from gateway.config.settings import UpstreamSettings


class UpstreamCheck(Struct, frozen=True):
    """Whether a server can be used. ``found`` is what it can do, and what is made good or refused, or the problem."""

    url: str
    verdict: str
    found: str


def check_upstreams(settings: UpstreamSettings) -> list[UpstreamCheck]:
    """Probe the servers of `upstream.urls` with a few short requests."""
    if not settings.urls:
        return []

    async def all_of_them() -> list[UpstreamCheck]:
        return await side_by_side(_check(url, settings) for url in settings.urls)

    return asyncio.run(all_of_them())


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
