"""A question from a request body: JSON, plain text, or the form that ``curl --data`` sends."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.api.http.endpoint import FORM, JSON
from gateway.api.parsing.fields import User, convert, invalid, parse
from gateway.base.errors import InvalidRequestError, TooLargeError
from model_host.protocol import Lane


class AskRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON form of a question."""

    question: str
    style: Annotated[str, Meta(max_length=64)] | None = None
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
    elif kind == FORM and _is_form(body):
        asked = convert(_form_fields(body), AskRequest, strict=False)
    else:
        asked = AskRequest(_text(body, parameters))
    question = asked.question.strip()
    if not question:
        raise InvalidRequestError("the question is empty", param="question", code="empty_question")
    size = len(question.encode("utf-8", "surrogatepass"))
    if size > max_question_bytes:
        raise TooLargeError(
            f"the question has {size} bytes; the maximum is {max_question_bytes}",
            param="question",
            details={"bytes": size, "limit": max_question_bytes},
        )
    return replace(asked, question=question)


def _is_form(body: bytes) -> bool:
    return any(body.startswith(f"{name}=".encode()) for name in AskRequest.__struct_fields__)


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
