"""Embeddings that clients ask for, as records of the request log: the texts and the first numbers of the vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import until_disconnect
from gateway.base.aio import finish
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.inference.embedding import Embeddings, TextKind, outline
from gateway.inference.interface import KeepAlive
from gateway.store.request_log import GenerationRecord, RequestRecord


async def logged_embedding(
    request: Request,
    texts: Sequence[str | list[int]],
    *,
    kind: TextKind = "plain",
    dimensions: int | None,
    keep_alive: KeepAlive,
    user: str | None = None,
) -> Embeddings:
    """The vectors of ``texts`` for a client; the request is recorded however it ends."""
    services, owner, request_id = services_of(request), caller_of(request).owner, request.state.request_id
    made: Embeddings | None = None
    status, code = CLIENT_GONE, "client_gone"
    started_at, begun = time.time(), time.monotonic()
    work = services.embedding.embed(
        texts, kind=kind, owner=owner, dimensions=dimensions, keep_alive=keep_alive, request_id=request_id
    )

    def record() -> RequestRecord:
        shape: dict[str, Any] = {"dimensions": dimensions, "task": kind if kind != "plain" else None}
        generation = _generation(texts, made, {name: value for name, value in shape.items() if value})
        return RequestRecord(
            id=request_id,
            kind="embed",
            started_at=started_at,
            seconds=time.monotonic() - begun,
            status=200 if made is not None else status,
            text=generation.messages[0]["content"] if generation.messages else "",
            answer=generation.output,
            owner=owner,
            model=services.embedding.name or "",
            error=None if made is not None else code,
            details={"texts": len(texts)} | ({"user": user} if user else {}),
            generations=[generation],
        )

    try:
        made = await until_disconnect(request.receive, work)
        return made
    except HearthError as error:
        status, code = error.status, error.code
        raise
    except Exception:
        status, code = 500, "internal"
        raise
    finally:
        await finish(services.record(record))


def _generation(
    texts: Sequence[str | list[int]], made: Embeddings | None, obeyed: dict[str, Any]
) -> GenerationRecord:
    return GenerationRecord(
        step="embed",
        messages=[
            {"role": "input", "content": text}
            if isinstance(text, str)
            else {"role": "tokens", "content": msgspec.json.encode(text).decode()}
            for text in texts
        ],
        output=outline(made.floats()) if made is not None else "",
        prompt_tokens=sum(made.tokens) if made is not None else 0,
        finish_reason="stop" if made is not None else "",
        obeyed=obeyed,
    )
