"""What an evaluation runs on: a model of its own, a running server, or the wiki alone."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import msgspec

from gateway.app import create_app
from gateway.ask.cache import CompactionCache
from gateway.ask.flow import AskFlow
from gateway.ask.types import AskResult
from gateway.cli.client import Client, ReplyError, connect
from gateway.cli.database import opened_database
from gateway.cli.options import settings_of
from gateway.evaluation.run import Evaluator, FlowAsker, Tokens
from gateway.prompts import load_prompts
from gateway.resources import sample_wiki
from gateway.settings import Settings
from gateway.store.request_log import RequestRecord
from gateway.wiki.local import LocalWiki
from gateway.wiki.sample import load_sample

TermSource = Literal["model", "question"]


class Setup:
    """The parts of one evaluation. Without ``client`` and with the model's terms, a model of its own is started."""

    def __init__(self, settings: Settings, terms: TermSource, client: Client | None) -> None:
        self.settings = settings
        self._terms = terms
        self._client = client

    @property
    def address(self) -> str:
        """Of the server that answers; empty when it is this process."""
        return self._client.url if self._client else ""

    def prompts(self) -> dict[str, int]:
        """The versions of the prompts that will be used, as far as they are known here."""
        if self._client or self._terms == "question":
            return {}
        prompts = load_prompts(self.settings.data_dir / "prompts")
        return {name: prompts.get(name).version for name in prompts.names()}

    def flow_settings(self) -> dict[str, Any]:
        """The settings of the flow, as far as they are known here."""
        if self._client or self._terms == "question":
            return {}
        found: dict[str, Any] = msgspec.to_builtins(self.settings.ask)
        return found

    @asynccontextmanager
    async def evaluator(self) -> AsyncIterator[tuple[Evaluator, str]]:
        """The evaluator, and the name of the model that will answer (empty without one)."""
        if self._client or self._terms == "question":
            with opened_database(self.settings.database_path) as database:
                if self.settings.wiki.load_sample:
                    await load_sample(database, sample_wiki())
                asker = ServerAsker(self._client) if self._client else None
                model = await asker.model() if asker else ""
                yield Evaluator(LocalWiki(database, self.settings.wiki), asker), model
        else:
            async with _own(self.settings) as found:
                yield found


class ServerAsker:
    """Asks over HTTP. The counts are those of the answer alone: a reply has no others."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def model(self) -> str:
        """The model that the server has."""
        reply = await asyncio.to_thread(self._client.get, "/v1/models")
        return str(reply["data"][0]["id"])

    async def ask(self, question: str) -> tuple[AskResult, Tokens]:
        """The server's answer."""
        reply = await asyncio.to_thread(self._client.post, "/ask", {"question": question})
        try:
            result = msgspec.convert(reply, AskResult)
        except msgspec.ValidationError as error:
            raise ReplyError(f"{self._client.url} answers in another form: {error}") from None
        budget = result.budget
        return result, Tokens(budget.prompt_tokens, budget.cached_tokens, budget.answer_tokens)


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
    """The parts that the command line asks for, on a folder that is gone afterwards unless one was named.

    A local server's own folder is used with it, so that both have one wiki.
    """
    client = connect(url, key, data_dir, config_file) if from_server else None
    local = from_server and url is None
    kept = nullcontext(None) if data_dir is not None or local else tempfile.TemporaryDirectory()
    with kept as folder:
        place = data_dir if folder is None else Path(folder)
        yield Setup(settings_of(place, config_file, model__name=model).settings, terms, client)


@asynccontextmanager
async def _own(settings: Settings) -> AsyncIterator[tuple[Evaluator, str]]:
    """The running application's flow, with records that come here instead of into the log."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        services = app.state.services
        wiki = LocalWiki(services.database, settings.wiki)
        records: list[RequestRecord] = []

        async def keep(record: RequestRecord) -> None:
            records.append(record)

        flow = AskFlow(
            settings.ask,
            services.inference,
            wiki,
            load_prompts(settings.data_dir / "prompts"),
            defaults=services.model.defaults,
            notice=None,
            model_name=services.model.name,
            fetch_timeout=settings.wiki.fetch_timeout_seconds,
            record=keep,
            cache=CompactionCache(services.database),
        )
        yield (
            Evaluator(wiki, FlowAsker(flow, records, settings.ask.deadline_seconds)),
            services.model.name,
        )
