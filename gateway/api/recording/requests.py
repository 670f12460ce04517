"""Generations, embeddings and scores for clients, recorded in the request log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec

from gateway.api.http.errors import internal_error
from gateway.api.services import ApiRequest, Services
from gateway.api.streaming.streams import until_disconnect
from gateway.base.aio import finish, stop
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.inference.embedding import EmbedCall, Embeddings, RerankCall, Scores, outline, outline_scores
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.store.request_log import GenerationRecord, Kind, RequestRecord
from gateway.telemetry.generations import GenerationRecorder

_BUFFERED_ITEMS = 64  # by which the generations of a request may be ahead of the client

Source = AsyncGenerator[GenerationEvent, None]
Made = TypeVar("Made", Embeddings, Scores)


class _Outcome:
    """How a request ended and how long it took. Until it ends otherwise, the client has left."""

    def __init__(self) -> None:
        self._started_at, self._started = time.time(), time.monotonic()
        self.status: int = CLIENT_GONE
        self.error: str | None = "client_gone"

    def succeeded(self) -> None:
        self.status, self.error = 200, None

    def failed(self, error: Exception) -> None:
        known = error if isinstance(error, HearthError) else internal_error()
        self.status, self.error = known.status, known.code

    def record(self, user: str | None, details: dict[str, Any] | None = None, **fields: Any) -> RequestRecord:
        return RequestRecord(
            started_at=self._started_at,
            seconds=time.monotonic() - self._started,
            status=self.status,
            error=self.error,
            details=(details or {}) | ({"user": user} if user else {}),
            **fields,
        )


async def logged_generations(
    services: Services, calls: Sequence[GenerateCall], user: str | None, *, kind: Kind, keep: bool
) -> AsyncGenerator[tuple[int, GenerationEvent], None]:
    """The events of a request's generations, each with the index of its call.

    The first error ends all generations. With ``keep`` the request is recorded, however it ends.
    """
    outcome, outputs = _Outcome(), [GenerationRecorder(call, kind) for call in calls]
    sources = [services.inference.generate(call) for call in calls]

    def record() -> RequestRecord:
        call = calls[0]
        asked = [message.content for message in call.messages or [] if message.role == "user"]
        return outcome.record(
            user,
            id=call.id,
            kind=kind,
            text=str(asked[-1]) if asked else call.prompt_text,
            answer="\n\n".join(output.text for output in outputs),
            owner=call.owner,
            model=services.model.named(call.adapter),
            generations=[output.record() for output in outputs],
        )

    try:
        async with aclosing(_merged(sources)) as events:
            async for number, event in events:
                outputs[number].see(event)
                if all(output.finished is not None for output in outputs):
                    outcome.succeeded()
                yield number, event
    except Exception as error:
        outcome.failed(error)
        raise
    finally:
        if outcome.status == CLIENT_GONE and services.drain.stopping:
            outcome.failed(services.drain.refusal())
        if keep:
            await services.record(record)


async def _merged(sources: Sequence[Source]) -> AsyncGenerator[tuple[int, GenerationEvent], None]:
    """The events of all sources as they come. The first error, and closing this generator, end them all."""
    if len(sources) == 1:  # needs no task
        async with aclosing(sources[0]) as only:
            async for event in only:
                yield 0, event
        return
    queue: asyncio.Queue[tuple[int, GenerationEvent | Exception | None]] = asyncio.Queue(_BUFFERED_ITEMS)

    async def pump(number: int, source: Source) -> None:
        end: Exception | None = None
        try:
            async with aclosing(source):
                async for event in source:
                    await queue.put((number, event))
        except Exception as error:
            end = error
        await queue.put((number, end))

    tasks = [asyncio.create_task(pump(number, source)) for number, source in enumerate(sources)]
    try:
        running = len(tasks)
        while running:
            number, item = await queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                running -= 1
            else:
                yield number, item
    finally:
        await stop(tasks)


async def logged_embedding(request: ApiRequest, call: EmbedCall, user: str | None = None) -> Embeddings:
    """The vectors of the texts; the request is recorded, however it ends."""
    embedding = request.services.embedding
    shape = {"dimensions": call.dimensions, "task": call.kind if call.kind != "plain" else None}
    record = GenerationRecord(
        step="embed",
        output="",
        messages=[_as_message(text) for text in call.texts],
        obeyed={name: value for name, value in shape.items() if value},
    )
    work, details = embedding.embed(call), {"texts": len(call.texts)}
    return await _logged(
        request, work, record, lambda made: outline(made.floats()), embedding.name, user, details
    )


async def logged_rerank(request: ApiRequest, call: RerankCall, user: str | None) -> Scores:
    """The scores of the documents; the request is recorded, however it ends."""
    reranker = request.services.reranker
    record = GenerationRecord(
        step="rerank",
        output="",
        messages=[
            {"role": "query", "content": call.query},
            *({"role": "document", "content": text} for text in call.documents),
        ],
        obeyed={"max_tokens_per_doc": call.max_tokens} if call.max_tokens else {},
    )
    work, details = reranker.rerank(call), {"documents": len(call.documents)}
    return await _logged(
        request, work, record, lambda made: outline_scores(made.scores), reranker.name, user, details
    )


async def _logged(
    request: ApiRequest,
    work: Coroutine[Any, Any, Made],
    call: GenerationRecord,
    shown: Callable[[Made], str],
    model: str | None,
    user: str | None,
    details: dict[str, Any],
) -> Made:
    """Do the ``work`` unless the client leaves, and record it as ``call`` with its result."""
    outcome = _Outcome()
    made: Made | None = None

    def record() -> RequestRecord:
        generation = call
        if made is not None:
            tokens = sum(made.tokens)
            generation = msgspec.structs.replace(
                call, output=shown(made), prompt_tokens=tokens, finish_reason="stop"
            )
        return outcome.record(
            user,
            details,
            id=request.id,
            kind=call.step,
            text=call.messages[0]["content"] if call.messages else "",
            answer=generation.output,
            owner=request.owner,
            model=model or "",
            generations=[generation],
        )

    try:
        made = await until_disconnect(request.receive, work)
        outcome.succeeded()
        return made
    except Exception as error:
        outcome.failed(error)
        raise
    finally:
        await finish(request.services.record(record))


def _as_message(text: str | list[int]) -> dict[str, Any]:
    if isinstance(text, str):
        return {"role": "input", "content": text}
    return {"role": "tokens", "content": msgspec.json.encode(text).decode()}
