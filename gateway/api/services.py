"""The parts of the running application, and the request that leads handlers to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import apsw
from starlette.requests import Request
from starlette.types import Scope

from gateway.api.http.auth import Authenticator, Caller
from gateway.api.http.limits import ConcurrencyLimit
from gateway.api.recording.recorder import Recorder
from gateway.api.streaming.streams import Drain
from gateway.ask.flow import AskFlow
from gateway.base.supervised import Supervision
from gateway.code.meaning import Nearness
from gateway.config.settings import Settings
from gateway.inference.embedding import Embedder, Reranker
from gateway.inference.interface import Inference
from gateway.inference.process.keepalive import Waker
from gateway.inference.switch import ModelSwitch
from gateway.memory.service import Conversations
from gateway.models.catalog import ResolvedModel
from gateway.models.served import ServedModel
from gateway.runs.service import Runs
from gateway.store.db import Database
from gateway.telemetry.metrics import Metrics
from gateway.vectors.parts import VectorSearch
from gateway.wiki.source import WikiSource

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    settings: Settings
    served: ServedModel
    switch: ModelSwitch
    database: Database
    inference: Inference
    waker: Waker
    embedding: Embedder
    reranker: Reranker
    search: VectorSearch | None  # None without an embedding model
    ask: AskFlow
    wiki: WikiSource
    conversations: Conversations
    runs: Runs
    auth: Authenticator
    metrics: Metrics
    drain: Drain
    supervision: Supervision
    questions: ConcurrencyLimit
    record: Recorder
    started_at: float  # monotonic

    @property
    def model(self) -> ResolvedModel:
        """The chat model that serves now."""
        return self.served.current

    @property
    def hosts(self) -> tuple[Inference, Embedder, Reranker]:
        return self.inference, self.embedding, self.reranker

    @property
    def nearness(self) -> Nearness:
        """Search of projects by meaning."""
        return Nearness(self.database, self.search.queries if self.search is not None else None)


def services_of_scope(scope: Scope) -> Services:
    """The services of the application that serves this request."""
    found = scope["app"].state.services
    assert isinstance(found, Services)
    return found


class ApiRequest(Request):
    """A request as handlers get it: the guard has authenticated its caller."""

    @property
    def services(self) -> Services:
        return services_of_scope(self.scope)

    @property
    def caller(self) -> Caller:
        caller = self.state.caller
        assert isinstance(caller, Caller)
        return caller

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def id(self) -> str:
        request_id: str = self.state.request_id
        return request_id

    @property
    def path_id(self) -> str:
        path_id: str = self.path_params["id"]
        return path_id

    def read(self, work: Callable[[apsw.Connection], T]) -> Awaitable[T]:
        return self.services.database.read(work)

    def read_local(self, work: Callable[[apsw.Connection], T]) -> Awaitable[T]:
        """Read pages or code."""
        return self.services.database.local.read(work)

    def write(self, work: Callable[[apsw.Connection], T]) -> Awaitable[T]:
        return self.services.database.write(work)
