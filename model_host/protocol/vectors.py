"""Messages about embeddings; :mod:`model_host.protocol` has them with the others."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from model_host.protocol.parts import Lane, Owner, RequestId, TokenId

MAX_TEXTS = 256


class Embed(Struct, frozen=True, tag_field="op", tag="embed", forbid_unknown_fields=True, omit_defaults=True):
    """A vector for each of ``texts``, or of ``tokens``: texts given as token ids, without those at a text's ends.

    An embedding host answers it; one that generates text does not.

    ``dimensions`` keeps that many leading ones, which models with Matryoshka training are made for
    (https://arxiv.org/abs/2205.13147). ``normalize`` makes what is kept a vector of length 1.
    """

    id: RequestId
    texts: Annotated[list[str], Meta(max_length=MAX_TEXTS)] = []
    lane: Lane = "interactive"
    owner: Owner = ""
    normalize: bool = True
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    tokens: Annotated[
        list[Annotated[list[TokenId], Meta(max_length=1_048_576)]], Meta(max_length=MAX_TEXTS)
    ] = []


class Embedded(Struct, frozen=True, tag_field="event", tag="embedded"):
    """Terminal event of ``embed``: one vector a text, little-endian float32, in base64 on the line.

    ``tokens`` counts each text's tokens, those that the model wants at its ends included.
    """

    id: str
    embeddings: list[bytes]
    tokens: list[int]
