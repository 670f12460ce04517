"""Messages about prompts: text after one, or its tokens; :mod:`model_host.protocol` has them with the others."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from model_host.protocol.parts import Lane, Message, Owner, RequestId, Sampling, StopString, Tool, ToolChoice


class Generate(
    Struct, frozen=True, tag_field="op", tag="generate", forbid_unknown_fields=True, omit_defaults=True
):
    """Generate text after a chat (``messages``) or after plain text (``prompt``): exactly one of the two.

    ``max_tokens`` None means the rest of the context. At most one of ``grammar`` (GBNF, rule ``root``),
    ``json_schema`` and ``tools`` shapes the output. ``tool_choice`` is ``auto``, ``none``, ``required`` or
    ``function:NAME``. ``logprobs`` asks for that many alternatives of each token (0: the token's own only).
    """

    id: RequestId
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)] | None = None
    prompt: str | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    sampling: Sampling = Sampling()
    stop: Annotated[list[StopString], Meta(max_length=16)] = []
    grammar: Annotated[str, Meta(max_length=262_144)] | None = None
    json_schema: dict[str, Any] | bool | None = None
    lane: Lane = "interactive"
    owner: Owner = ""
    ignore_eos: bool = False
    tools: Annotated[list[Tool], Meta(max_length=128)] = []
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None


class Count(Struct, frozen=True, tag_field="op", tag="count", forbid_unknown_fields=True, omit_defaults=True):
    """Count tokens: of each of ``texts`` as plain text, or of ``messages`` (and ``tools``) as a whole prompt."""

    id: RequestId
    texts: Annotated[list[str], Meta(max_length=65_536)] | None = None
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)] | None = None
    return_tokens: bool = False
    tools: Annotated[list[Tool], Meta(max_length=128)] = []
