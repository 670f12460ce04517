"""What the messages of the protocol are made of. Import them from :mod:`model_host.protocol`."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Lane = Literal["interactive", "retrieval", "background"]
Role = Literal["system", "user", "assistant", "tool"]

RequestId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$")]
Owner = Annotated[str, Meta(max_length=128)]
Unit = Annotated[float, Meta(ge=0.0, le=1.0)]
Penalty = Annotated[float, Meta(ge=-2.0, le=2.0)]
TokenId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
StopString = Annotated[str, Meta(min_length=1, max_length=256)]
# The look-ahead refuses a line break at the end, which `$` alone would let pass.
ToolName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+(?!\n)$")]
ToolChoice = Annotated[str, Meta(max_length=73, pattern=r"^(auto|none|required|function:.+)(?!\n)$")]


class Sampling(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the next token is chosen. ``temperature`` 0 is greedy; ``seed`` None draws one and reports it."""

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] = 0.7
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] = 64
    top_p: Unit = 0.95
    min_p: Unit = 0.0
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] = 1.0
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    penalty_last_n: Annotated[int, Meta(ge=0, le=8192)] = 64
    seed: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None


class TextPart(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of message text. ``shared`` text (templates, wiki pages) may be reused for other owners."""

    text: str
    shared: bool = False


class Tool(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A function the model may call. ``parameters`` is a JSON schema of an object; none: no parameters.

    ``strict``: a schema that cannot be enforced is refused; otherwise it leaves any object as arguments.
    """

    name: ToolName
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the assistant made. ``id`` is what the tool's message answers to."""

    id: Annotated[str, Meta(max_length=256)]
    name: ToolName
    arguments: dict[str, Any]


class Message(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a prompt. All its text is plain text: none of it can become a control token.

    ``tool_calls`` belong to an assistant's turn. The role ``tool`` is a result: of the call ``tool_call_id``, or of
    the function ``name``.
    """

    role: Role
    content: str | list[TextPart]
    tool_calls: Annotated[list[ToolCall], Meta(max_length=128)] = []
    tool_call_id: Annotated[str, Meta(max_length=256)] | None = None
    name: Annotated[str, Meta(max_length=256)] | None = None


class TopLogprob(Struct, frozen=True):
    """A token that could have been: its text, the bytes it would have added, and its log-probability."""

    token: str
    bytes: list[int]
    logprob: float


class TokenLogprob(Struct, frozen=True):
    """A sampled token. Log-probabilities are the model's own, before temperature, penalties and grammar.

    A character may take several tokens; each has its share of the bytes.
    """

    token: str
    bytes: list[int]
    logprob: float
    top: list[TopLogprob]  # the likeliest first


def owner_digest(owner: str) -> str:
    """What names an owner's files on disk: says nothing about who it is."""
    return hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
