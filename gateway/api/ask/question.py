"""A question from a request body: JSON, plain text, or what ``curl --data`` sends."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.api.http.endpoint import FORM, JSON
from gateway.api.parsing.fields import User, convert, decode_object
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
    """The question in ``body``, stripped and within its limits.

    A form body is what ``curl --data`` sends whatever the text is, so it counts as a form only when it begins
    with one of our fields, as JSON when it begins with ``{``, and else as the plain question itself. Raises
    InvalidRequestError and TooLargeError.
    """
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind == JSON or (kind == FORM and body.lstrip().startswith(b"{")):
        asked = convert(decode_object(body), AskRequest)
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
            f"the question has {size} bytes, over the limit of {max_question_bytes}",
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
        raise InvalidRequestError(f"the form cannot be read: {error}") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidRequestError("a field is given twice in the form")
    return fields


def _text(body: bytes, parameters: str) -> str:
    charset = parameters.lower().replace(" ", "").replace('"', "")
    if "charset=" in charset and "charset=utf-8" not in charset and "charset=us-ascii" not in charset:
        raise InvalidRequestError("the question must be UTF-8", param="Content-Type")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError("the question is no valid UTF-8", param="question") from None
