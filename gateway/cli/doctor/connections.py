"""Part of `hearth doctor`: whether what the settings name answers, and how long a question takes on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.ask.budget import typical_question
from gateway.ask.limits import effective_limits
from gateway.base.aio import side_by_side
from gateway.base.errors import ConfigurationError, HearthError
from gateway.config.settings import Settings, UpstreamSettings, WikiSettings
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.speed import Speed
from gateway.models.catalog import Catalog, resolve_model
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


class QuestionCheck(Struct, frozen=True, kw_only=True):
    """The estimate for a short question. Seconds and tokens are null until the speed was measured here."""

    model: str
    seconds: float | None = None  # with the model loaded
    prompt_tokens: int | None = None
    reason: str
    target_seconds: float = 0.0
    # Model of the catalog that should answer within the target; null also without a target.
    biggest: str | None = None
    biggest_seconds: float | None = None

    @property
    def text(self) -> str:
        if self.seconds is None:
            return f"the time for a question with {self.model} is not known yet: {self.reason}"
        return (
            f"a question takes about {self.seconds:.0f} s with {self.model}; its prompt may have up to "
            f"{self.prompt_tokens:,} tokens ({self.reason})"
        )

    @property
    def biggest_text(self) -> str | None:
        if self.seconds is None or not self.target_seconds:
            return None
        within = (
            f"of the catalog that should answer here within ask.target_seconds ({self.target_seconds:g} s)"
        )
        how = f"an estimate from the speed of {self.model} and the sizes of the files"
        if self.biggest is None:
            return f"there is no model {within}: {how}"
        return f"the biggest model {within} is {self.biggest}, in about {self.biggest_seconds:.0f} s: {how}"


def check_question(settings: Settings, fitting: Collection[str]) -> QuestionCheck | None:
    """Estimate from what is kept of the model's speed; None if the settings name no usable model.

    ``fitting`` are the names of the catalog's models for which there is memory.
    """
    try:
        model = resolve_model(settings)
        limits = effective_limits(settings.ask, model.defaults, model.context_length)
        status = model.path.stat()
    except (ConfigurationError, OSError):
        return None
    file = (str(model.path), status.st_mtime_ns, status.st_size)
    kept = ThreadPlans(settings.thread_plan_dir).get(file)
    speed = kept.known(settings.model.threads).speed if kept is not None else None
    if speed is None:
        reason = "it is measured when the model is first loaded with idle cores, or writes a reply"
        return QuestionCheck(model=model.name, reason=reason)
    plan = typical_question(limits, speed, settings.ask.target_seconds)
    target = settings.ask.target_seconds
    biggest, seconds = _biggest(settings, fitting, speed, model.size_bytes) if target else (None, None)
    return QuestionCheck(
        model=model.name,
        seconds=plan.seconds,
        prompt_tokens=plan.tokens,
        reason=plan.reason,
        target_seconds=target,
        biggest=biggest,
        biggest_seconds=seconds,
    )


def _biggest(
    settings: Settings, fitting: Collection[str], speed: Speed, size: int
) -> tuple[str | None, float | None]:
    """The largest chat model that answers in time if a token takes as long for each byte as with ``size`` bytes."""
    sizes = {
        row: row.size_bytes or row.path(settings.data_dir).stat().st_size
        for row in Catalog.load().rows
        if row.kind == "chat" and row.name in fitting
    }
    for row in sorted(sizes, key=lambda row: -sizes[row]):
        factor = size / (row.token_bytes or sizes[row])
        with suppress(ConfigurationError):  # the settings ask for more than the context of this model
            limits = effective_limits(settings.ask, row.defaults, row.context)
            scaled = Speed(speed.reading * factor, speed.writing * factor)
            plan = typical_question(limits, scaled, settings.ask.target_seconds)
            if plan.seconds is not None and plan.seconds <= settings.ask.target_seconds:
                return row.name, plan.seconds
    return None, None
