"""The application: routes, lifespan, wiring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from gateway.api import openapi, page
from gateway.api.admin import health, requests
from gateway.api.anthropic import routes as anthropic
from gateway.api.ask import routes as ask
from gateway.api.conversations import facts, tasks
from gateway.api.conversations import routes as conversations
from gateway.api.http.auth import Authenticator
from gateway.api.http.context import RequestContext
from gateway.api.http.endpoint import Endpoint
from gateway.api.http.errors import on_http_exception
from gateway.api.http.guard import Guard
from gateway.api.http.limits import BodyLimit, ConcurrencyLimit
from gateway.api.ollama import embed as ollama_embed
from gateway.api.ollama import generation as ollama
from gateway.api.ollama import models as ollama_models
from gateway.api.openai import chat, completions, embeddings, models, responses, tokens
from gateway.api.recording.recorder import Recorder
from gateway.api.services import Services
from gateway.api.streaming.streams import Drain
from gateway.ask.background.compact import CompactionCache
from gateway.ask.flow import AskFlow
from gateway.ask.run import FlowParts
from gateway.base.resources import sample_wiki
from gateway.base.supervised import Supervision
from gateway.config.settings import Settings
from gateway.inference.client import HostClient
from gateway.inference.host import HostInference
from gateway.inference.interface import Inference
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.process.wake import Waker
from gateway.memory.context import MemoryParts
from gateway.memory.learning.recall import FactDocuments
from gateway.memory.service import Conversations
from gateway.models.catalog import resolve_model
from gateway.models.prompts import load_prompts
from gateway.server.consistency import check
from gateway.store.db import Database
from gateway.store.vectors import FETCHED, IMPORTED, PageTables
from gateway.telemetry.metrics import MeteredEmbedder, MeteredInference, Metrics
from gateway.vectors.parts import VectorSearch, make_embedder, make_search
from gateway.vectors.source import DocumentSource
from gateway.wiki.local import LocalWiki
from gateway.wiki.remote.mediawiki import MediaWiki
from gateway.wiki.sample.loader import load_sample
from gateway.wiki.search.vectors import Meaning, WikiPages
from gateway.wiki.source import WikiSource

ENDPOINTS = (
    *ask.ENDPOINTS,
    *chat.ENDPOINTS,
    *completions.ENDPOINTS,
    *responses.ENDPOINTS,
    *embeddings.ENDPOINTS,
    *tokens.ENDPOINTS,
    *models.ENDPOINTS,
    *health.ENDPOINTS,
    *openapi.ENDPOINTS,
    *conversations.ENDPOINTS,
    *requests.ENDPOINTS,
    *ollama_models.ENDPOINTS,
    *ollama.ENDPOINTS,
    *ollama_embed.ENDPOINTS,
    *anthropic.ENDPOINTS,
    *facts.ENDPOINTS,
    *tasks.ENDPOINTS,
    *page.ENDPOINTS,
)


def create_app(
    settings: Settings,
    *,
    inference: Inference | None = None,
    wiki: WikiSource | None = None,
    database: Database | None = None,
) -> Starlette:
    """The gateway as an ASGI application; its lifespan opens and closes what it needs.

    A part that is passed in is used as it is and stays the caller's to close. Starting raises
    ConfigurationError, for example for a public address without any API key.
    """
    measured, supervision = Metrics(), Supervision()
    measured.watch_tasks(supervision.health)
    endpoints = _endpoints(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = await _open(app, settings, stack, inference, wiki, database)
            yield

    app = Starlette(
        routes=[endpoint.route() for endpoint in endpoints],
        middleware=[
            Middleware(BodyLimit, settings=settings.server),
            Middleware(RequestContext, endpoints=endpoints, metrics=measured),
            Middleware(Guard, settings=settings.server),
        ],
        exception_handlers={HTTPException: on_http_exception},
        lifespan=lifespan,
    )
    # A redirect would carry the Host header's name; a path is right or it is not.
    app.router.redirect_slashes = False
    app.state.metrics = measured
    app.state.supervision = supervision
    app.state.endpoints = endpoints
    app.state.drain = Drain()
    return app


def _endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """The route table without what the settings turn off."""
    off = () if settings.server.page else page.ENDPOINTS
    return tuple(endpoint for endpoint in ENDPOINTS if endpoint not in off)


async def _open(
    app: Starlette,
    settings: Settings,
    stack: AsyncExitStack,
    inference: Inference | None,
    wiki: WikiSource | None,
    database: Database | None,
) -> Services:
    """Open the parts in the order they depend on each other; ``stack`` closes them in reverse."""
    model, prompts = resolve_model(settings), load_prompts(settings.prompts_dir)
    check(settings, prompts, model if inference is None else None)
    opened = database or await _open_database(settings, stack)
    auth = Authenticator(opened, settings.server.host)
    await auth.check_bind(settings.server.host)
    measured, embedding = _open_models(app.state.metrics, settings, stack, inference)
    waker = Waker(measured)
    stack.push_async_callback(waker.close)
    documents = [FactDocuments(), *(wiki_documents(settings) if wiki is None else [])]
    search = make_search(settings, opened, embedding, documents, lambda: measured.health().open_requests > 0)
    if search is not None:
        app.state.metrics.watch_embedding(embedding.health, search.indexer.health)
        stack.push_async_callback(search.close)
    record = Recorder(settings.log, opened, app.state.metrics)
    memory = Conversations(
        MemoryParts(
            database=opened,
            inference=measured,
            prompts=prompts,
            settings=settings.memory,
            defaults=model.defaults,
            model_name=model.name,
            record=record,
            queries=search.queries if search is not None else None,
        )
    )
    stack.push_async_callback(memory.close)
    await memory.start(app.state.supervision)
    wiki = wiki or await open_wiki(settings, opened, stack, search)
    if isinstance(wiki, MediaWiki):
        app.state.metrics.registry.register(wiki.collector())
    if search is not None:
        search.indexer.start(app.state.supervision)
    return Services(
        settings=settings,
        model=model,
        database=opened,
        inference=measured,
        waker=waker,
        embedding=embedding,
        search=search,
        ask=AskFlow(
            FlowParts(
                settings=settings.ask,
                inference=measured,
                wiki=wiki,
                prompts=prompts,
                model_name=model.name,
                defaults=model.defaults,
                notice=model.notice,
                fetch_timeout=settings.wiki.fetch_timeout_seconds,
                cache=CompactionCache(opened),
            ),
            record,
        ),
        wiki=wiki,
        conversations=memory,
        auth=auth,
        metrics=app.state.metrics,
        drain=app.state.drain,
        supervision=app.state.supervision,
        questions=ConcurrencyLimit(settings.ask.max_concurrent, "questions"),
        record=record,
        started_at=time.monotonic(),
    )


def _open_models(
    metrics: Metrics, settings: Settings, stack: AsyncExitStack, inference: Inference | None
) -> tuple[MeteredInference, MeteredEmbedder]:
    """Both models, each in a host that is started when it is needed, and that knows what the other one has loaded."""
    hosts: list[HostClient] = []
    embedder = make_embedder(settings, lambda: [model for host in hosts for model in host.loaded])
    stack.push_async_callback(embedder.close)
    if inference is None:
        inference = HostInference(
            lambda: resolve_model(settings),
            settings.model,
            snapshots=settings.data_dir / "snapshots",
            thread_plans=ThreadPlans(settings.thread_plan_dir),
            beside=lambda: embedder.loaded,
        )
        hosts.append(inference)
        stack.push_async_callback(inference.close)
    metrics.watch(inference.health)
    return MeteredInference(inference, metrics), MeteredEmbedder(embedder, metrics)


async def _open_database(settings: Settings, stack: AsyncExitStack) -> Database:
    database = Database(settings.database_path)
    await asyncio.to_thread(database.open)
    stack.push_async_callback(asyncio.to_thread, database.close)
    return database


def wiki_documents(settings: Settings) -> list[DocumentSource]:
    """The pages that need vectors, when they are searched by them: those of the local store, or those fetched."""
    if settings.wiki.search == "text":
        return []
    return [WikiPages(FETCHED if settings.wiki.api_url else IMPORTED)]


async def open_wiki(
    settings: Settings, database: Database, stack: AsyncExitStack, search: VectorSearch | None
) -> WikiSource:
    """The configured wiki; ``stack`` closes it."""
    if settings.wiki.api_url:
        by_vectors = _meaning(database, search, FETCHED)
        on_new = search.indexer.wake if search is not None else lambda: None
        remote = MediaWiki(settings.wiki, database, by_vectors, on_new)
        stack.push_async_callback(remote.close)
        await remote.open()
        return remote
    if settings.wiki.load_sample:
        await load_sample(database, sample_wiki())
    return LocalWiki(database, settings.wiki, _meaning(database, search, IMPORTED))


def _meaning(database: Database, search: VectorSearch | None, tables: PageTables) -> Meaning | None:
    if search is None:
        return None
    indexer = search.indexer
    return Meaning(database, search.queries, tables, lambda: indexer.health().counts.get(WikiPages.name))
