"""What handlers work with: opened at start, found through the application."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import Scope

from gateway.api.http.auth import Authenticator, Caller
from gateway.api.http.limits import ConcurrencyLimit
from gateway.api.recording.recorder import Recorder
from gateway.api.streaming.streams import Drain
from gateway.ask.flow import AskFlow
from gateway.base.supervised import Supervision
from gateway.config.settings import Settings
from gateway.inference.embedding import Embedder
from gateway.inference.interface import Inference
from gateway.inference.process.wake import Waker
from gateway.memory.service import Conversations
from gateway.models.catalog import ResolvedModel
from gateway.store.db import Database
from gateway.telemetry.metrics import Metrics
from gateway.vectors.parts import VectorSearch
from gateway.wiki.source import WikiSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The running application's parts."""

    settings: Settings
    model: ResolvedModel
    database: Database
    inference: Inference
    waker: Waker
    embedding: Embedder
    search: VectorSearch | None  # None without an embedding model
    ask: AskFlow
    wiki: WikiSource
    conversations: Conversations
    auth: Authenticator
    metrics: Metrics
    drain: Drain
    supervision: Supervision
    questions: ConcurrencyLimit
    record: Recorder
    started_at: float  # monotonic


def services_of_scope(scope: Scope) -> Services:
    """The services of the application that serves this request."""
    found = scope["app"].state.services
    assert isinstance(found, Services)
    return found


def services_of(request: Request) -> Services:
    """As :func:`services_of_scope`."""
    return services_of_scope(request.scope)


def caller_of(request: Request) -> Caller:
    """Who sent the request, as the guard found."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller
