"""What an evaluation runs on: a model of its own, a running server, or the wiki alone."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from gateway.ask.flow import AskFlow
from gateway.ask.run import FlowParts
from gateway.ask.types import AskResult
from gateway.base.errors import ModelUnavailableError, NotFoundError
from gateway.base.supervised import Supervision
from gateway.cli.common.client import GatewayClient, ReplyError, connect
from gateway.cli.common.database import opened_database
from gateway.cli.common.options import settings_of
from gateway.cli.common.text import say
from gateway.config.settings import Settings
from gateway.evaluation.run import Asked, Evaluator, FlowAsker
from gateway.evaluation.score import Tokens
from gateway.inference.host import HostInference
from gateway.models.catalog import ResolvedModel, resolve_model
from gateway.models.prompts import PromptSet, load_prompts
from gateway.server.app import open_wiki, wiki_documents
from gateway.server.consistency import check
from gateway.store.db import Database
from gateway.store.request_log import RequestRecord, get_record
from gateway.vectors.parts import make_embedder, make_search
from gateway.wiki.source import WikiSource

TermSource = Literal["model", "question"]


class Answering(NamedTuple):
    """The evaluator, and who answers its questions: nobody has no name, and a server does not tell its weights."""

    evaluator: Evaluator
    model: str = ""
    weights: str = ""  # fingerprint


class Setup:
    """The parts of one evaluation. Without ``client`` and with the model's terms, a model of its own is started."""

    def __init__(
        self, settings: Settings, database: Database, terms: TermSource, client: GatewayClient | None
    ) -> None:
        self.settings = settings
        self._database = database
        self._client = client
        self._starts_model = client is None and terms == "model"

    @property
    def address(self) -> str:
        """Of the server that answers; empty when it is this process."""
        return self._client.url if self._client else ""

    def prompts(self) -> dict[str, int]:
        """The versions of the prompts that will be used, as far as they are known here."""
        if not self._starts_model:
            return {}
        prompts = self._prompts()
        return {name: prompts.get(name).version for name in prompts.names()}

    def flow_settings(self) -> dict[str, Any]:
        """The settings of the flow, as far as they are known here."""
        return msgspec.to_builtins(self.settings.ask) if self._starts_model else {}

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[Answering]:
        """The evaluator, ready: a model of its own is loaded."""
        async with AsyncExitStack() as stack:
            model = resolve_model(self.settings) if self._starts_model else None
            check(self.settings, self._prompts(), model)
            wiki = await self._open_wiki(stack)
            if model is not None:
                host = HostInference(model, self.settings.model)
                stack.push_async_callback(host.close)
                weights = (await host.model_info()).fingerprint
                yield Answering(Evaluator(wiki, self._flow(host, model, wiki)), model.name, weights)
            elif self._client:
                asker = ServerAsker(self._client, self._database)
                yield Answering(Evaluator(wiki, asker), await asker.model())
            else:
                yield Answering(Evaluator(wiki, None))

    async def _open_wiki(self, stack: AsyncExitStack) -> WikiSource:
        """The wiki as the server would search it: where it has vectors, all are made before the first question."""
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
        return wiki

    def _flow(self, host: HostInference, model: ResolvedModel, wiki: WikiSource) -> FlowAsker:
        """The flow of /ask, with records that come here instead of into the log, and without kept summaries."""
        records: list[RequestRecord] = []

        async def keep(make: Callable[[], RequestRecord]) -> None:
            records.append(make())

        parts = FlowParts(
            settings=self.settings.ask,
            inference=host,
            wiki=wiki,
            prompts=self._prompts(),
            defaults=model.defaults,
            notice=None,
            model_name=model.name,
            fetch_timeout=self.settings.wiki.fetch_timeout_seconds,
        )
        return FlowAsker(AskFlow(parts, keep), records, self.settings.ask.deadline_seconds)

    def _prompts(self) -> PromptSet:
        return load_prompts(self.settings.prompts_dir)


class ServerAsker:
    """Asks over HTTP. A server of this machine has all token counts in its log, which is in ``database``.

    Another server's reply has those of the last generation, the answer, alone.
    """

    def __init__(self, client: GatewayClient, database: Database) -> None:
        self._client = client
        self._database = database

    async def model(self) -> str:
        """The model that the server has."""
        reply = await self._client.fetch("GET", "/v1/models")
        try:
            return str(reply["data"][0]["id"])
        except (TypeError, LookupError):
            raise ReplyError(f"{self._client.url} names no model: is it a hearth server?") from None

    async def ask(self, question: str) -> Asked:
        """The server's answer."""
        reply = await self._client.fetch("POST", "/ask", {"question": question})
        try:
            result = msgspec.convert(reply, AskResult)
        except msgspec.ValidationError as error:
            raise ReplyError(f"{self._client.url} answers in another form: {error}") from None
        if self._client.local:
            try:
                return Asked.logged(
                    result, await self._database.read(lambda found: get_record(found, result.id))
                )
            except NotFoundError:
                pass  # the log is full, or the record could not be written: the reply's own counts are left
        budget = result.budget
        return Asked(
            result, {"answer": Tokens(budget.prompt_tokens, budget.cached_tokens, budget.answer_tokens)}
        )


@contextmanager
def opened_setup(
    terms: TermSource,
    model: str | None,
    from_server: bool,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> Iterator[Setup]:
    """The parts that the command line asks for.

    The wiki is that of the folder that was named or of the local server that is asked; else the built-in one, in a
    database that is gone afterwards.
    """
    client = connect(url, key, data_dir, config_file) if from_server else None
    settings = settings_of(data_dir, config_file, model__name=model).settings
    own = data_dir is not None or (client is not None and client.local)
    if not own:
        settings = msgspec.structs.replace(
            settings, wiki=msgspec.structs.replace(settings.wiki, load_sample=True)
        )
    place = nullcontext(settings.data_dir) if own else tempfile.TemporaryDirectory()
    with place as folder, opened_database(Path(folder) / settings.database_path.name) as database:
        yield Setup(settings, database, terms, client)
