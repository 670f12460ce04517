"""POST /tokenize, /detokenize and /v1/chat/completions/input_tokens, in llama-server's shapes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.chat_request import ChatRequest, chat_call
from gateway.api.parsing.fields import Body, invalid
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import until_disconnect
from gateway.inference.interface import Inference
from model_host.protocol import TokenId

# Per request; a text may be as long as a body.
_MAX_TOKENS = 262_144


class TokenizeRequest(Body, frozen=True, kw_only=True):
    """``content`` or ``text`` as plain text: control tokens cannot result from it.

    ``add_special`` adds the tokens that the model wants around a text, such as BOS.
    """

    content: str | None = None
    text: str | None = None
    with_pieces: bool | None = None
    add_special: bool | None = None

    def __post_init__(self) -> None:
        if (self.content is None) == (self.text is None):
            raise invalid("content", "send either `content` or `text`")


class TokenPiece(Struct, frozen=True):
    """A token and the text it adds; its bytes if they are not whole characters."""

    id: int
    piece: str | list[int]


class TokenizeReply(Struct, frozen=True):
    """Ids or, with ``with_pieces``, ids and texts."""

    tokens: list[int | TokenPiece]


class DetokenizeRequest(Body, frozen=True):
    tokens: Annotated[list[TokenId], Meta(max_length=_MAX_TOKENS)]


class DetokenizeReply(Struct, frozen=True):
    """The text. Control tokens add nothing; invalid UTF-8 becomes U+FFFD."""

    content: str


class PromptTokens(Struct, frozen=True, tag_field="object", tag="response.input_tokens"):
    """As llama-server reports it."""

    input_tokens: int


async def tokenize(request: ApiRequest, body: TokenizeRequest) -> TokenizeReply:
    """The tokens of a text. Loads the model if necessary."""
    text = body.content if body.content is not None else body.text or ""
    work = _tokens(
        request.services.inference, text, pieces=bool(body.with_pieces), ends=bool(body.add_special)
    )
    return TokenizeReply(await until_disconnect(request.receive, work))


async def detokenize(request: ApiRequest, body: DetokenizeRequest) -> DetokenizeReply:
    """The text of tokens. Loads the model if necessary."""
    work = request.services.inference.detokenize(body.tokens)
    return DetokenizeReply(await until_disconnect(request.receive, work))


async def count_chat(request: ApiRequest, body: ChatRequest) -> PromptTokens:
    """The tokens of a chat's prompt, template and tools included. Loads the model if necessary."""
    call = chat_call(body, request.id, request.owner)
    work = request.services.inference.count_prompt(call.messages or [], tools=call.tools)
    return PromptTokens(await until_disconnect(request.receive, work))


async def _tokens(inference: Inference, text: str, *, pieces: bool, ends: bool) -> list[int | TokenPiece]:
    tokens = await inference.tokenize(text, ends=ends)
    if not pieces:
        return list(tokens)
    made = await inference.token_bytes(tokens)
    return [TokenPiece(token, _shown(piece)) for token, piece in zip(tokens, made, strict=True)]


def _shown(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


ENDPOINTS = (
    Endpoint("POST", "/tokenize", tokenize, TokenizeRequest, TokenizeReply),
    Endpoint("POST", "/v1/chat/completions/input_tokens", count_chat, ChatRequest, PromptTokens),
    Endpoint("POST", "/detokenize", detokenize, DetokenizeRequest, DetokenizeReply),
)
