"""POST /ask: questions and cited answers; GET /wiki/page: what a citation leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.responses import PlainTextResponse

from gateway.api.http.endpoint import FORM, JSON, SSE, TEXT, Endpoint
from gateway.api.openai.models import DEFAULT, check_model
from gateway.api.parsing.fields import Body, User, convert, invalid, parse, parse_keep_alive
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import Relay, StreamReply, done_of, named_events, until_disconnect
from gateway.ask.text.wording import request_about
from gateway.ask.types import AnswerDelta, AnswerDone, AskCall, AskEvent, AskResult, Citation, Stage
from gateway.base.errors import InvalidRequestError, TooLargeError
from gateway.code.pages import project_pages
from gateway.wiki.source import Section
from model_host.protocol import Lane

_EXAMPLES = 4


class AskRequest(Body, frozen=True):
    """``model`` may name an adapter, as in the other APIs."""

    question: str
    model: Annotated[str, Meta(max_length=400)] | None = None
    style: Annotated[str, Meta(max_length=64)] | None = None
    project: Annotated[str, Meta(min_length=1, max_length=400)] | None = None
    priority: Lane | None = None
    keep_alive: float | str | None = None
    user: User | None = None
    store: bool | None = None


def parse_question(body: bytes, content_type: str, max_question_bytes: int) -> AskRequest:
    """The stripped question in ``body``.

    ``curl --data`` labels any text as a form. A body so labelled is a form only if it starts with one of our fields,
    JSON if it starts with ``{``, and otherwise the question itself. Raises InvalidRequestError and TooLargeError.
    """
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind == JSON or (kind == FORM and body.lstrip().startswith(b"{")):
        asked = parse(body, AskRequest)
    elif kind == FORM and any(body.startswith(f"{name}=".encode()) for name in AskRequest.__struct_fields__):
        asked = convert(_form_fields(body), AskRequest, strict=False)
    else:
        asked = AskRequest(_text(body, parameters))
    return replace(asked, question=checked_question(asked.question, max_question_bytes))


def checked_question(text: str, max_question_bytes: int) -> str:
    """The stripped question. Raises InvalidRequestError for an empty one, TooLargeError."""
    question = text.strip()
    if not question:
        raise InvalidRequestError("the question is empty", param="question", code="empty_question")
    size = len(question.encode("utf-8", "surrogatepass"))
    if size > max_question_bytes:
        raise TooLargeError(
            f"the question has {size} bytes, over the limit of {max_question_bytes}",
            param="question",
            details={"bytes": size, "limit": max_question_bytes},
        )
    return question


def _form_fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError as error:
        raise InvalidRequestError(f"the form is malformed: {error}") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidRequestError("the form repeats a field")
    return fields


def _text(body: bytes, parameters: str) -> str:
    charset = parameters.lower().replace(" ", "").replace('"', "")
    if "charset=" in charset and "charset=utf-8" not in charset and "charset=us-ascii" not in charset:
        raise invalid("Content-Type", "send the question in UTF-8")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise invalid("question", "it is not valid UTF-8") from None


async def ask(request: ApiRequest) -> object:
    """Answer in the requested form: events, JSON or plain text; by default in the form of the question."""
    services = request.services
    content_type = request.headers.get("content-type", "")
    asked = parse_question(await request.body(), content_type, services.settings.ask.max_question_bytes)
    call = AskCall(
        id=request.id,
        question=asked.question,
        style=asked.style,
        adapter=check_model(services, asked.model or DEFAULT),
        priority=asked.priority or "interactive",
        keep_alive=parse_keep_alive(asked.keep_alive),
        owner=request.owner,
        user=asked.user or "",
        store=asked.store is not False,
    )
    flow = services.ask
    if asked.project is not None:
        pages = await project_pages(services.database.local, asked.project, services.nearness)
        flow = flow.over(pages, pages.quoted if services.model.small else pages.known, pages.quoted)
    relay: Relay[AskEvent] = Relay(flow.run(call), services.drain, services.settings.ask.deadline_seconds)
    kind = reply_kind(request.headers.get("accept", ""), content_type)
    if kind == SSE:
        return StreamReply(
            relay, lambda items: named_events(items, call.id, _named), during=services.questions.slot()
        )
    async with services.questions.slot():
        result: AskResult = await until_disconnect(request.receive, done_of(relay, _named))
    if kind == TEXT:
        return PlainTextResponse(as_text(result.answer, result.citations))
    return result


def reply_kind(accept: str, content_type: str) -> str:
    """The media type of the reply. The order and the weights in ``Accept`` are ignored."""
    accept = accept.lower()
    for kind in (SSE, JSON, TEXT):
        if kind in accept:
            return kind
    return JSON if content_type.partition(";")[0].strip().lower() == JSON else TEXT


def _named(event: AskEvent) -> tuple[str, Any]:
    """``stage`` and ``delta`` events, then one ``done`` with the JSON reply."""
    match event:
        case Stage():
            return "stage", event
        case AnswerDelta():
            return "delta", event
        case AnswerDone():
            return "done", event.result


def as_text(answer: str, citations: Sequence[Citation]) -> str:
    """The answer, then one line ``[n] Title, section: URL`` for each citation."""
    lines = [answer.strip()]
    if citations:
        lines.append("")
    for source in citations:
        place = f"{source.title}, {source.section}" if source.section else source.title
        lines.append(f"[{source.n}] {place}: {source.url}")
    return "\n".join(lines) + "\n"


class Examples(Struct, frozen=True):
    """Questions that the wiki can probably answer; none if it is behind an API."""

    questions: list[str]


async def examples(request: ApiRequest) -> Examples:
    """Questions to begin with, about pages of the wiki."""
    return Examples([request_about(title) for title in await request.services.wiki.subjects(_EXAMPLES)])


class PageTitle(Struct, frozen=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=1000, description="Title or redirect.")]


class WikiPage(Struct, frozen=True):
    """A page of the wiki as plain text."""

    title: str
    url: str
    sections: list[Section]


async def wiki_page(request: ApiRequest, asked: PageTitle) -> WikiPage:
    """The page of a title, redirects followed."""
    page = await request.services.wiki.fetch(asked.title)
    return WikiPage(page.title, page.url, page.sections)


ENDPOINTS = (
    Endpoint("POST", "/ask", ask, AskRequest, AskResult, SSE, media=(JSON, TEXT, FORM, "")),
    Endpoint("GET", "/ask/examples", examples, reply=Examples),
    Endpoint("GET", "/wiki/page", wiki_page, reply=WikiPage, query=PageTitle),
)
