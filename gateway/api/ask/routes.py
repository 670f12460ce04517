"""POST /ask: questions and cited answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse

from gateway.api.ask.question import AskRequest, parse_question
from gateway.api.http.endpoint import FORM, JSON, SSE, TEXT, Endpoint
from gateway.api.http.errors import envelope
from gateway.api.parsing.fields import parse_keep_alive
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.ask.types import AnswerDelta, AnswerDone, AskCall, AskEvent, AskResult, Stage


async def ask(request: Request) -> object:
    """Answer in the requested form: events, JSON or plain text; by default in the form of the question."""
    services = services_of(request)
    content_type = request.headers.get("content-type", "")
    asked = parse_question(await request.body(), content_type, services.settings.ask.max_question_bytes)
    call = AskCall(
        id=request.state.request_id,
        question=asked.question,
        style=asked.style,
        priority=asked.priority or "interactive",
        keep_alive=parse_keep_alive(asked.keep_alive),
        owner=caller_of(request).owner,
        user=asked.user or "",
        store=asked.store is not False,
    )
    relay: Relay[AskEvent] = Relay(
        services.ask.run(call), services.drain, services.settings.ask.deadline_seconds
    )
    kind = reply_kind(request.headers.get("accept", ""), content_type)
    if kind == SSE:
        return StreamReply(relay, lambda items: _events(items, call.id), during=services.questions.slot())
    with services.questions.slot():
        result = await until_disconnect(request.receive, _result(relay))
    if kind == TEXT:
        return PlainTextResponse(as_text(result))
    return result


def reply_kind(accept: str, content_type: str) -> str:
    """The media type of the reply. The order and the weights in ``Accept`` are ignored."""
    accept = accept.lower()
    for kind in (SSE, JSON, TEXT):
        if kind in accept:
            return kind
    return JSON if content_type.partition(";")[0].strip().lower() == JSON else TEXT


async def _result(relay: Relay[AskEvent]) -> AskResult:
    async with relay:
        async for event in relay:
            if isinstance(event, AnswerDone):
                return event.result
    raise AssertionError("the ask flow ended without a result")


async def _events(relay: Relay[AskEvent], request_id: str) -> AsyncIterator[bytes]:
    """``stage`` and ``delta`` events, then one ``done`` (the JSON reply) or ``error`` (the envelope)."""
    try:
        async for event in relay:
            match event:
                case Stage():
                    yield sse(event, "stage")
                case AnswerDelta():
                    yield sse(event, "delta")
                case AnswerDone():
                    yield sse(event.result, "done")
    except Exception as error:
        yield sse(envelope(known_error(error), request_id), "error")


def as_text(result: AskResult) -> str:
    """The answer, then one line ``[n] Title, section: URL`` for each citation."""
    lines = [result.answer.strip()]
    if result.citations:
        lines.append("")
    for source in result.citations:
        place = f"{source.title}, {source.section}" if source.section else source.title
        lines.append(f"[{source.n}] {place}: {source.url}")
    return "\n".join(lines) + "\n"


ENDPOINTS = (Endpoint("POST", "/ask", ask, "user", (JSON, TEXT, FORM, ""), AskRequest, AskResult, SSE),)
