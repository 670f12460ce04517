"""POST /tokenize and /detokenize by the loaded model's own tokenizer, in llama-server's shapes."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import JSON, Endpoint, json_reply
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import without_neutral
from gateway.api.services import services_of
from gateway.api.streaming.streams import until_disconnect
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import Inference
from model_host.protocol import TokenId

# Ids in one request; a text may be as long as a body.
_MAX_TOKENS = 262_144


class TokenizeRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``content`` or ``text`` is cut into tokens, all of it plain text: no control token can come out."""

    content: str | None = None
    text: str | None = None
    with_pieces: bool | None = None


class TokenPiece(Struct, frozen=True):
    """A token and the text it adds; its bytes when they are not whole characters."""

    id: int
    piece: str | list[int]


class TokenizeReply(Struct, frozen=True):
    """Ids, or with ``with_pieces`` ids and texts."""

    tokens: list[int | TokenPiece]


class DetokenizeRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """``tokens`` of the loaded model."""

    tokens: Annotated[list[TokenId], Meta(max_length=_MAX_TOKENS)]


class DetokenizeReply(Struct, frozen=True):
    """The text. Control tokens add nothing to it; bytes that are no characters are U+FFFD."""

    content: str


# llama-server's fields that are not there, with the values that ask for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {"add_special": (False,), "parse_special": (False,)}


async def tokenize(request: Request) -> Response:
    """The tokens of a text. Starts the model when it is not loaded."""
    fields = without_neutral(decode_object(await request.body()), _UNSUPPORTED)
    body = convert(fields, TokenizeRequest)
    text = body.content if body.text is None else body.text
    if text is None or None not in (body.content, body.text):
        raise InvalidRequestError("one of `content` and `text` is needed, and only one", param="content")
    inference = services_of(request).inference
    work = _tokens(inference, text, with_pieces=bool(body.with_pieces))
    return json_reply(TokenizeReply(await until_disconnect(request.receive, work)))


async def detokenize(request: Request) -> Response:
    """The text of tokens. Starts the model when it is not loaded."""
    body = convert(decode_object(await request.body()), DetokenizeRequest)
    work = services_of(request).inference.detokenize(body.tokens)
    return json_reply(DetokenizeReply(await until_disconnect(request.receive, work)))


async def _tokens(inference: Inference, text: str, *, with_pieces: bool) -> list[int | TokenPiece]:
    tokens = await inference.tokenize(text)
    if not with_pieces:
        return list(tokens)
    pieces = await inference.token_bytes(tokens)
    return [TokenPiece(token, _shown(piece)) for token, piece in zip(tokens, pieces, strict=True)]


def _shown(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


ENDPOINTS = (
    Endpoint("POST", "/tokenize", tokenize, "user", (JSON,), TokenizeRequest, TokenizeReply),
    Endpoint("POST", "/detokenize", detokenize, "user", (JSON,), DetokenizeRequest, DetokenizeReply),
)
