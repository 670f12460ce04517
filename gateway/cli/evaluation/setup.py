"""The setup of an evaluation: its own model, a running server, or only the wiki."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from gateway.ask.flow import AskFlow
from gateway.ask.run import FlowParts
from gateway.ask.types import AskResult
from gateway.base.errors import ConfigurationError, ModelUnavailableError, NotFoundError
from gateway.base.supervised import Supervision
from gateway.cli.common.client import GatewayClient, ReplyError, ServerOptions
from gateway.cli.common.files import opened_database
from gateway.cli.common.text import say
from gateway.config.settings import Settings
from gateway.evaluation.memory import learned
from gateway.evaluation.questions import Question
from gateway.evaluation.replay import replayed
from gateway.evaluation.run import Asker, AskOutcome, Evaluator, ask_flow
from gateway.evaluation.score import Row, Tokens
from gateway.inference.embedding import Reranker
from gateway.inference.host import HostInference
from gateway.inference.interface import Inference
from gateway.memory.context import MemoryParts
from gateway.models.catalog import ResolvedModel, resolve_model
from gateway.models.prompts import PromptSet, load_prompts
from gateway.models.served import ServedModel
from gateway.server.app import make_upstream, open_memory, open_wiki, wiki_documents
from gateway.server.consistency import check
from gateway.store.db import Database
from gateway.store.request_log import RequestRecord, get_record
from gateway.vectors.parts import make_embedder, make_reranker, make_search
from gateway.wiki.source import WikiSource

TermSource = Literal["model", "question"]
Scoring = Callable[[Sequence[Question]], AsyncIterator[Row]]


class Answering(NamedTuple):
    """The scoring of questions, and its model: without one the name is empty, with a server the fingerprint.

    ``wiki`` is set without a model.
    """

    rows: Scoring
    model: str = ""
    weights: str = ""  # fingerprint
    wiki: WikiSource | None = None


class Setup:
    """The parts of one evaluation. Without ``client`` and with the model's terms, it starts its own model."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        terms: TermSource,
        client: GatewayClient | None,
        adapter: str,
    ) -> None:
        self.settings = settings
        self._adapter = adapter
        self._database = database
        self._client = client
        self._starts_model = client is None and terms == "model"

    @property
    def address(self) -> str:
        """The server's address; empty if this process answers."""
        return self._client.url if self._client else ""

    def prompts(self) -> dict[str, int]:
        """Return the versions of the prompts; none if a server answers."""
        if not self._starts_model:
            return {}
        prompts = self._prompts()
        return {name: prompts.get(name).version for name in prompts.names()}

    def flow_settings(self, memory: bool) -> dict[str, Any]:
        """Return the settings of the flow and of its searches, or of the memory; none if a server answers."""
        if memory:
            return dict(msgspec.to_builtins(self.settings.memory))
        if self._client is not None:
            return {}
        settings = self.settings
        asking = msgspec.to_builtins(settings.ask) if self._starts_model else {}
        return asking | {
            "wiki.search": settings.wiki.search,
            "embedding.model": settings.embedding.model,
            "rerank.model": settings.rerank.model,
        }

    @asynccontextmanager
    async def remembering(self, dialogues: bool) -> AsyncIterator[Answering]:
        """Load the model, and yield the evaluator of lines of conversation, or of ``dialogues``."""

        async def forget(make: Callable[[], RequestRecord]) -> None: ...

        settings = self.settings.memory
        if not dialogues:
            # Fresh summaries learn nothing, and wait until their share of the machine's time is theirs.
            settings = msgspec.structs.replace(settings, facts=True, tasks=True, fresh_share=0.0)
        async with AsyncExitStack() as stack:
            model = resolve_model(self.settings)
            host = self._host(model)
            stack.push_async_callback(host.close)
            parts = MemoryParts(
                database=self._database,
                inference=host,
                prompts=self._prompts(),
                settings=settings,
                served=ServedModel(model),
                record=forget,
            )
            weights = (await host.model_info()).fingerprint
            if dialogues:
                yield Answering(partial(replayed, parts, partial(say, err=True)), model.name, weights)
            else:
                conversations = await open_memory(parts, stack, Supervision())
                yield Answering(partial(learned, parts, conversations), model.name, weights)

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[Answering]:
        """Load the model if necessary, and yield the evaluator."""
        async with AsyncExitStack() as stack:
            model = resolve_model(self.settings) if self._starts_model else None
            check(self.settings, self._prompts(), None if self.settings.upstream.urls else model)
            if model and self._adapter and self._adapter not in model.adapters:
                known = ", ".join(model.adapters) or "none"
                raise ConfigurationError(
                    f"{self._adapter} is no adapter of model.adapters, which has {known}"
                )
            wiki = await self._open_wiki(stack)
            if model is not None:
                host = self._host(model)
                stack.push_async_callback(host.close)
                weights = (await host.model_info()).fingerprint
                reranker = make_reranker(
                    self.settings, lambda: host.loaded if isinstance(host, HostInference) else ()
                )
                stack.push_async_callback(reranker.close)
                flow = self._flow(host, model, wiki, reranker)
                yield Answering(Evaluator(wiki, flow).run, model.named(self._adapter), weights)
            elif self._client:
                asker = ServerAsker(self._client, self._database)
                yield Answering(Evaluator(wiki, asker.ask).run, await asker.model())
            else:
                yield Answering(Evaluator(wiki, None).run, wiki=wiki)

    async def _open_wiki(self, stack: AsyncExitStack) -> WikiSource:
        """Open the wiki as the server does. If it has vectors, wait until all are computed."""
        settings, database = self.settings, self._database
        embedder = make_embedder(settings)
        stack.push_async_callback(embedder.close)
        search = make_search(settings, database, embedder, wiki_documents(settings), lambda: False)
        wiki = await open_wiki(settings, database, stack, search)
        if search is not None:
            stack.push_async_callback(search.close)
            search.indexer.start(Supervision())
            say("waiting until the wiki has its vectors", err=True)
            await search.indexer.caught_up()
            if problem := search.indexer.health().problem:
                raise ModelUnavailableError(f"the wiki's vectors cannot be made: {problem}")
            await (
                embedder.warm()
            )  # with nothing to embed it is not loaded, and the first questions would go without
        return wiki

    def _host(self, model: ResolvedModel) -> Inference:
        if self.settings.upstream.urls:
            return make_upstream(self.settings)
        return HostInference(model, self.settings.model)

    def _flow(self, host: Inference, model: ResolvedModel, wiki: WikiSource, reranker: Reranker) -> Asker:
        """Make the flow of /ask, without the request log and the cache of summaries."""
        records: list[RequestRecord] = []

        async def keep(make: Callable[[], RequestRecord]) -> str:
            records.append(make())
            return ""

        parts = FlowParts(
            settings=self.settings.ask,
            inference=host,
            wiki=wiki,
            prompts=self._prompts(),
            served=ServedModel(model),
            fetch_timeout=self.settings.wiki.fetch_timeout_seconds,
            reranker=reranker,
        )
        deadline = self.settings.ask.deadline_seconds
        return partial(ask_flow, AskFlow(parts, keep), records, deadline, adapter=self._adapter)

    def _prompts(self) -> PromptSet:
        return load_prompts(self.settings.prompts_dir)


class ServerAsker:
    """Asks over HTTP. A local server's log, in ``database``, has the token counts of all generations.

    The reply of a remote server has only those of the last generation, the answer.
    """

    def __init__(self, client: GatewayClient, database: Database) -> None:
        self._client = client
        self._database = database

    async def model(self) -> str:
        """Return the name of the server's model."""
        reply = await self._client.fetch("GET", "/v1/models")
        try:
            return str(reply["data"][0]["id"])
        except (TypeError, LookupError):
            raise ReplyError(f"{self._client.url} names no model: is it a hearth server?") from None

    async def ask(self, question: str) -> AskOutcome:
        """The server's answer."""
        reply = await self._client.fetch("POST", "/ask", {"question": question})
        try:
            result = msgspec.convert(reply, AskResult)
        except msgspec.ValidationError as error:
            raise ReplyError(f"{self._client.url} answers in another form: {error}") from None
        if self._client.local:
            try:
                return AskOutcome.logged(
                    result, await self._database.read(lambda found: get_record(found, result.id))
                )
            except NotFoundError:
                pass  # the log is full, or the record could not be written: the reply's own counts are left
        budget = result.budget
        return AskOutcome(
            result, {"answer": Tokens(budget.prompt_tokens, budget.cached_tokens, budget.answer_tokens)}
        )


@contextmanager
def opened_setup(
    terms: TermSource, model: str | None, adapter: str, from_server: bool, options: ServerOptions
) -> Iterator[Setup]:
    """Open the setup for the command's options.

    The wiki is in the named data directory or that of the local server. Otherwise it is the built-in one, in a
    temporary database.
    """
    client = options.connect() if from_server else None
    settings = options.local.load(model__name=model).settings
    own = options.local.data_dir is not None or (client is not None and client.local)
    if not own:
        settings = msgspec.structs.replace(
            settings, wiki=msgspec.structs.replace(settings.wiki, load_sample=True)
        )
    place = nullcontext(settings.data_dir) if own else tempfile.TemporaryDirectory()
    with place as folder, opened_database(Path(folder) / settings.database_path.name) as database:
        yield Setup(settings, database, terms, client, adapter)
