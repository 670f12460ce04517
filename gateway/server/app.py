"""The application: routes, lifespan, wiring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from gateway.api import openapi, page
from gateway.api.admin import health, model, requests
from gateway.api.anthropic import routes as anthropic
from gateway.api.ask import routes as ask
from gateway.api.conversations import assistants, facts, runs, search, tasks
from gateway.api.conversations import routes as conversation_routes
from gateway.api.http.auth import Authenticator
from gateway.api.http.context import RequestContext
from gateway.api.http.endpoint import Endpoint
from gateway.api.http.errors import on_http_exception
from gateway.api.http.guard import Guard
from gateway.api.http.limits import BodyLimit, ConcurrencyLimit
from gateway.api.mcp import routes as mcp
from gateway.api.ollama import generation as ollama
from gateway.api.ollama import manage as ollama_manage
from gateway.api.ollama import models as ollama_models
from gateway.api.openai import (
    chat,
    completions,
    embeddings,
    models,
    responses,
    server_routes,
    stored_responses,
)
from gateway.api.projects import routes as projects
from gateway.api.projects.prompt import ProjectContext
from gateway.api.recording.recorder import Recorder
from gateway.api.services import Services
from gateway.api.streaming.streams import Drain
from gateway.ask.background.compact import CompactionCache
from gateway.ask.flow import AskFlow
from gateway.ask.run import FlowParts
from gateway.base.resources import sample_wiki
from gateway.base.supervised import Supervision
from gateway.code.meaning import CodeDocuments
from gateway.code.watch import ProjectWatcher
from gateway.config.settings import Settings
from gateway.inference.embedding import Embedder, OptionalHost, Reranker
from gateway.inference.host import HostInference
from gateway.inference.interface import Inference
from gateway.inference.process.keepalive import Waker
from gateway.inference.process.snapshots import FOLDER as SNAPSHOTS
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.switch import ModelSwitch, Resolve, SwitchableInference
from gateway.memory.context import MemoryParts
from gateway.memory.history import MessageDocuments
from gateway.memory.learning.recall import FactDocuments
from gateway.memory.service import Conversations
from gateway.models.catalog import Kind, ResolvedModel, resolve_model, tokenizer_settings, with_model_name
from gateway.models.prompts import PromptSet, load_prompts
from gateway.models.served import ServedModel
from gateway.runs.runner import RunParts
from gateway.runs.service import Runs
from gateway.runs.tool import Toolbox
from gateway.runs.tools.code import code_tools
from gateway.runs.tools.outside import outside_servers
from gateway.runs.tools.own import own_tools
from gateway.runs.tools.web import web_tools
from gateway.runs.tools.wiki import wiki_tools
from gateway.server.consistency import check
from gateway.store.db import Database
from gateway.store.open import make_database
from gateway.store.vectors import FETCHED, IMPORTED, PageTables
from gateway.telemetry import metrics as measures
from gateway.vectors.parts import VectorSearch, make_embedder, make_reranker, make_search
from gateway.vectors.source import DocumentSource
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.local import LocalWiki
from gateway.wiki.remote.mediawiki import MediaWiki
from gateway.wiki.search.vectors import Meaning, WikiPages
from gateway.wiki.sites import own_address
from gateway.wiki.source import WikiSource

# Those of the model alone, which keep nothing for a later request.
MODEL_ENDPOINTS = (
    *chat.ENDPOINTS,
    *completions.ENDPOINTS,
    *embeddings.ENDPOINTS,
    *server_routes.ENDPOINTS,
    *models.ENDPOINTS,
    *health.ENDPOINTS,
)
ENDPOINTS = (
    *ask.ENDPOINTS,
    *MODEL_ENDPOINTS,
    *responses.ENDPOINTS,
    *stored_responses.ENDPOINTS,
    *model.ENDPOINTS,
    *openapi.ENDPOINTS,
    *search.ENDPOINTS,  # before the conversations, whose ids match its path
    *conversation_routes.ENDPOINTS,
    *assistants.ENDPOINTS,
    *requests.ENDPOINTS,
    *ollama_models.ENDPOINTS,
    *ollama_manage.ENDPOINTS,
    *ollama.ENDPOINTS,
    *anthropic.ENDPOINTS,
    *facts.ENDPOINTS,
    *runs.ENDPOINTS,
    *tasks.ENDPOINTS,
    *projects.ENDPOINTS,
    *mcp.ENDPOINTS,
    *page.ENDPOINTS,
)


def create_app(
    settings: Settings, *, inference: Inference | None = None, routes: tuple[Endpoint, ...] = ENDPOINTS
) -> Starlette:
    """The gateway as an ASGI application; its lifespan opens and closes the services.

    An ``inference`` that is passed in is used as it is, and the caller closes it. ``routes`` are those that the
    settings may still disable. Starting raises ConfigurationError, for example for a public address without an API key.
    """
    metrics, supervision = measures.Metrics(), Supervision()
    metrics.scrape(lambda: measures.tasks(supervision.health()))
    off = () if settings.server.page else page.ENDPOINTS
    endpoints = tuple(endpoint for endpoint in routes if endpoint not in off)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = await open_services(app, with_model_name(settings), stack, inference)
            yield

    app = Starlette(
        routes=[endpoint.route() for endpoint in endpoints],
        middleware=[
            Middleware(BodyLimit, settings=settings.server),
            Middleware(RequestContext, endpoints=endpoints, metrics=metrics),
            Middleware(Guard, settings=settings.server),
        ],
        exception_handlers={HTTPException: on_http_exception},
        lifespan=lifespan,
    )
    # A redirect would contain the name from the Host header.
    app.router.redirect_slashes = False
    app.state.metrics = metrics
    app.state.supervision = supervision
    app.state.endpoints = endpoints
    app.state.drain = Drain()
    return app


async def open_services(
    app: Starlette, settings: Settings, stack: AsyncExitStack, inference: Inference | None
) -> Services:
    """Open the parts in the order of their dependencies; ``stack`` closes them in reverse."""
    metrics: measures.Metrics = app.state.metrics
    configured, prompts = resolve_model(settings), load_prompts(settings.prompts_dir)
    check(settings, prompts, configured if inference is None and not settings.upstream.urls else None)
    database = make_database(settings, gateway=True)
    await asyncio.to_thread(database.open)
    stack.push_async_callback(asyncio.to_thread, database.close)
    stack.push_async_callback(database.peers.close)
    database.peers.start(app.state.supervision)
    auth = Authenticator(database, settings.server.host)
    await auth.check_bind(settings.server.host)
    served = ServedModel(configured, list(settings.model.aliases))
    chat, embedding, reranker = open_models(settings, stack, metrics, inference, served)
    switch = ModelSwitch(
        chat if isinstance(chat, SwitchableInference) else None, partial(named_model, settings, prompts)
    )
    inference = measures.MeteredInference(chat, metrics)
    waker = Waker(inference)
    stack.push_async_callback(waker.close)
    search = open_search(settings, stack, metrics, database, inference, embedding)
    record = Recorder(settings.log, database, metrics)
    memory = MemoryParts(
        database=database,
        inference=inference,
        prompts=prompts,
        settings=settings.memory,
        served=served,
        record=record,
        target_seconds=settings.ask.target_seconds,
        queries=search.queries if search is not None and database is database.local else None,
    )
    watcher = ProjectWatcher(database.local, settings.data_dir)
    stack.push_async_callback(watcher.close)
    watcher.start(app.state.supervision)
    wiki = await open_wiki(settings, database.local, stack, search)
    if isinstance(wiki, MediaWiki):
        metrics.scrape(wiki.metrics)
    if search is not None:
        search.indexer.start(app.state.supervision)
    flow = FlowParts(
        settings=settings.ask,
        inference=inference,
        wiki=wiki,
        prompts=prompts,
        served=served,
        fetch_timeout=settings.wiki.fetch_timeout_seconds,
        cache=CompactionCache(database.local),
        reranker=reranker,
    )
    ask_flow = AskFlow(flow, record)
    runs = await open_runs(memory, settings, ask_flow, wiki, stack, app.state.supervision)
    memory = msgspec.structs.replace(memory, requests=runs.requests(settings.memory.time_zone))
    return Services(
        settings=settings,
        served=served,
        switch=switch,
        database=database,
        inference=inference,
        waker=waker,
        embedding=embedding,
        reranker=reranker,
        search=search,
        ask=ask_flow,
        wiki=wiki,
        conversations=await open_memory(memory, stack, app.state.supervision),
        runs=runs,
        auth=auth,
        metrics=metrics,
        drain=app.state.drain,
        supervision=app.state.supervision,
        questions=ConcurrencyLimit(database.peers, settings.ask.max_concurrent, "questions"),
        record=record,
        started_at=time.monotonic(),
    )


def open_models(
    settings: Settings,
    stack: AsyncExitStack,
    metrics: measures.Metrics,
    inference: Inference | None,
    served: ServedModel,
) -> tuple[Inference, Embedder, Reranker]:
    """The models, each in a host of its own that starts on demand and knows what the other ones have loaded."""
    hosts: list[SwitchableInference | OptionalHost] = []

    def beside(kind: Kind) -> Callable[[], list[ResolvedModel]]:
        return lambda: [model for host in hosts for model in host.loaded if model.kind != kind]

    embedder = make_embedder(settings, beside("embedding"), metrics.embedded)
    reranker = make_reranker(settings, beside("rerank"))
    hosts += [embedder, reranker]
    stack.push_async_callback(embedder.close)
    stack.push_async_callback(reranker.close)
    metrics.scrape(lambda: measures.life("rerank_host", reranker.health()))
    if inference is None and settings.upstream.urls:
        inference = make_upstream(settings)
        stack.push_async_callback(inference.close)
    if inference is None:
        plans = ThreadPlans(settings.thread_plan_dir)

        def make(resolve: Resolve, retiring: Callable[[], Sequence[ResolvedModel]]) -> HostInference:
            return HostInference(
                resolve,
                settings.model,
                snapshots=settings.data_dir / SNAPSHOTS,
                thread_plans=plans,
                beside=lambda: [*beside("chat")(), *retiring()],
            )

        inference = SwitchableInference(
            served, partial(resolve_model, settings), make, settings.model.start_timeout_seconds
        )
        hosts.append(inference)
        stack.push_async_callback(inference.close)
    metrics.scrape(lambda: measures.model_host(inference.health()))
    return inference, embedder, reranker


def make_upstream(settings: Settings) -> Inference:
    """The servers of `upstream.urls`, whose probes begin now."""
    # Late, because servers with a local model do not need it.
    from gateway.inference.upstream.inference import UpstreamInference

    tokenizer = tokenizer_settings(settings)
    counter = None
    if tokenizer is not None:
        counter = HostInference(partial(resolve_model, tokenizer), tokenizer.model)
    upstream = UpstreamInference(settings.upstream, counter)
    upstream.start()
    return upstream


def named_model(settings: Settings, prompts: PromptSet, name: str) -> tuple[ResolvedModel, Resolve]:
    """The chat model of that name and how to find it again. Raises ConfigurationError if the settings exclude it."""
    adapters = settings.model.adapters if name == settings.model.name else []  # they are of that model
    named = msgspec.structs.replace(settings.model, name=name, adapters=adapters)
    wanted = msgspec.structs.replace(settings, model=named)
    model = resolve_model(wanted)
    check(wanted, prompts, model)
    return model, partial(resolve_model, wanted)


def open_search(
    settings: Settings,
    stack: AsyncExitStack,
    metrics: measures.Metrics,
    database: Database,
    inference: Inference,
    embedder: Embedder,
) -> VectorSearch | None:
    """Search by vectors, if there is an embedding model. Its indexer is started once everything else is open."""
    memory: list[DocumentSource] = [FactDocuments(), MessageDocuments()]
    if database is not database.local:
        memory = []  # vectors are in the local file only
    documents = [*memory, *wiki_documents(settings), CodeDocuments()]
    search = make_search(
        settings, database.local, embedder, documents, lambda: inference.health().open_requests > 0
    )
    if search is not None:
        metrics.scrape(lambda: measures.embedding(embedder.health(), search.indexer.health()))
        stack.push_async_callback(search.close)
    return search


async def open_memory(parts: MemoryParts, stack: AsyncExitStack, supervision: Supervision) -> Conversations:
    conversations = Conversations(parts, ProjectContext(parts).offer)
    stack.push_async_callback(conversations.close)
    await conversations.start(supervision)
    return conversations


async def open_runs(
    memory: MemoryParts,
    settings: Settings,
    ask: AskFlow,
    wiki: WikiSource,
    stack: AsyncExitStack,
    supervision: Supervision,
) -> Runs:
    tools = [
        *wiki_tools(ask, wiki),
        *code_tools(memory.database.local),
        *own_tools(memory.database, settings.memory.time_zone),
        *web_tools(settings.tasks.http_hosts),
    ]
    parts = RunParts(
        database=memory.database,
        inference=memory.inference,
        prompts=memory.prompts,
        settings=settings.tasks,
        served=memory.served,
        record=memory.record,
        tools=Toolbox(tools, {each.server.name: each for each in outside_servers(settings.tasks.servers)}),
    )
    opened = Runs(parts)
    stack.push_async_callback(opened.close)
    await opened.start(supervision)
    return opened


def wiki_documents(settings: Settings) -> list[DocumentSource]:
    """The pages to embed if the wiki is searched by vectors: imported or fetched ones."""
    if settings.wiki.search == "text":
        return []
    return [WikiPages(FETCHED if settings.wiki.api_url else IMPORTED)]


async def open_wiki(
    settings: Settings, database: Database, stack: AsyncExitStack, search: VectorSearch | None
) -> WikiSource:
    """The configured wiki; ``stack`` closes it."""
    if settings.wiki.api_url:
        on_new = search.indexer.wake if search is not None else lambda: None
        remote = MediaWiki(settings.wiki, database, _meaning(database, search, FETCHED), on_new)
        stack.push_async_callback(remote.close)
        await remote.open()
        return remote
    if settings.wiki.load_sample:
        await load_sample(database, sample_wiki())
    meaning = _meaning(database, search, IMPORTED)
    return LocalWiki(database, settings.wiki, meaning, own_address(settings.server))


def _meaning(database: Database, search: VectorSearch | None, tables: PageTables) -> Meaning | None:
    if search is None:
        return None
    indexer = search.indexer
    return Meaning(database, search.queries, tables, lambda: indexer.health().counts.get(WikiPages.name))
