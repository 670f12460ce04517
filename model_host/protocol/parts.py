"""Parts of messages. Import them from :mod:`model_host.protocol`."""

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
Bias = Annotated[float, Meta(ge=-1000.0, le=1000.0)]
StopString = Annotated[str, Meta(min_length=1, max_length=256)]
# The look-ahead refuses a line break at the end, which `$` alone would let pass.
ToolName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+(?!\n)$")]
# Values of a template's variables are words, so that they spell no control token.
VariableName = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_]*(?!\n)$")]
VariableText = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z0-9_.: -]*(?!\n)$")]
Number = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Variables = Annotated[dict[VariableName, bool | Number | float | VariableText | None], Meta(max_length=16)]
# Names that a template gets from the request itself, and its functions.
RESERVED_VARIABLES = frozenset(
    {"messages", "tools", "functions", "template", "add_generation_prompt", "bos_token", "eos_token"}
    | {"raise_exception", "strftime_now"}
)
ToolChoice = Annotated[str, Meta(max_length=73, pattern=r"^(auto|none|required|function:.+)(?!\n)$")]


class RequestBase(
    Struct, frozen=True, tag_field="op", tag=str.lower, forbid_unknown_fields=True, omit_defaults=True
):
    """A request. Its name in lower case is the value of ``op``, unless it gives another one."""

    def problem(self) -> str | None:
        """Why its fields do not fit together, beyond what their types can express."""
        return None


class EventBase(Struct, frozen=True, tag_field="event", tag=str.lower):
    """An event. Its name in lower case is the value of ``event``, unless it gives another one."""


class Sampling(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the next token is chosen. ``temperature`` 0 is greedy; ``seed`` None draws one and reports it.

    ``logit_bias`` is added to the logits of tokens. The reply does not end before ``min_tokens``, except at a stop
    string or where a grammar demands it.
    """

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] = 0.7
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] = 64
    top_p: Unit = 0.95
    min_p: Unit = 0.0
    typical_p: Unit = 1.0
    xtc_probability: Unit = 0.0
    xtc_threshold: Unit = 0.1
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] = 1.0
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    penalty_last_n: Annotated[int, Meta(ge=0, le=8192)] = 64
    seed: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None
    logit_bias: Annotated[dict[TokenId, Bias], Meta(max_length=1024)] = {}
    min_tokens: Annotated[int, Meta(ge=0, le=1_048_576)] = 0


class TextPart(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of message text. ``shared`` text (templates, wiki pages) may be reused for other owners."""

    text: str
    shared: bool = False


class Tool(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A function the model may call. ``parameters`` is the JSON schema of an object; empty: it takes none.

    With ``strict`` a schema that cannot be enforced is an error; otherwise the unsupported keywords are ignored.
    """

    name: ToolName
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the assistant made. The tool's message refers to its ``id``."""

    id: Annotated[str, Meta(max_length=256)]
    name: ToolName
    arguments: dict[str, Any]


class Message(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a prompt. Its text is always plain text: it cannot become a control token.

    Only assistants have ``tool_calls``. A message of the role ``tool`` is the result of the call ``tool_call_id``, or
    of the function ``name``.
    """

    role: Role
    content: str | list[TextPart]
    tool_calls: Annotated[list[ToolCall], Meta(max_length=128)] = []
    tool_call_id: Annotated[str, Meta(max_length=256)] | None = None
    name: Annotated[str, Meta(max_length=256)] | None = None

    @property
    def text(self) -> str:
        """The whole content."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)

    @property
    def continuable(self) -> bool:
        """Whether a reply can begin with this message."""
        return self.role == "assistant" and not self.tool_calls and bool(self.text.strip())


class TopLogprob(Struct, frozen=True):
    """An alternative to a sampled token."""

    token: str
    bytes: list[int]
    logprob: float


class TokenLogprob(Struct, frozen=True):
    """A sampled token. Log-probabilities are computed before temperature, penalties and grammar.

    ``bytes`` are added to the text by the token: a character may be spread over several tokens.
    """

    token: str
    bytes: list[int]
    logprob: float
    top: list[TopLogprob]  # the likeliest first


def owner_digest(owner: str) -> str:
    """The prefix of the names of an owner's files, which does not reveal the owner."""
    return hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
