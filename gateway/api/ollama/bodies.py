"""The bodies of Ollama's endpoints: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from gateway.api.ollama.options import UNSUPPORTED, OllamaOptions
from gateway.api.openai.generation import TopLogprobs
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import Neutral, without_neutral, without_neutral_in
from gateway.base.errors import InvalidRequestError
from model_host.protocol import ToolName

T = TypeVar("T")

ModelName = Annotated[str, Meta(min_length=1, max_length=512)]
CallId = Annotated[str, Meta(min_length=1, max_length=256)]
# "json" is any JSON object; a schema is one that the output follows.
Format = Literal["", "json"] | dict[str, Any]


class CalledFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply's tool call called. ``index`` is its place among the calls."""

    name: ToolName
    arguments: dict[str, Any] = {}
    index: int | None = None


class SentToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of an earlier reply, sent back."""

    function: CalledFunction
    id: CallId | None = None
    type: Literal["function"] | None = None


class OllamaMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. ``tool_name`` and ``tool_call_id`` say which call a ``tool`` message answers."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: Annotated[list[SentToolCall], Meta(max_length=128)] | None = None
    tool_name: ToolName | None = None
    tool_call_id: CallId | None = None


class OllamaFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call; ``parameters`` is a JSON schema of an object."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OllamaTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool; functions are the only kind."""

    function: OllamaFunction
    type: Literal["function"] | None = None


class _Generation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What chat and generate have in common. ``stream`` is on unless it is false."""

    model: ModelName
    format: Format | None = None
    options: OllamaOptions | None = None
    stream: bool | None = None
    keep_alive: float | str | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None

    @property
    def wanted_logprobs(self) -> int | None:
        """Alternatives of each token; None without log-probabilities."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        """The schema that ``format`` asks for."""
        if isinstance(self.format, dict):
            return self.format
        return {"type": "object"} if self.format == "json" else None


class ChatBody(_Generation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/chat. Without messages it loads the model, or with ``keep_alive`` 0 unloads it."""

    messages: Annotated[list[OllamaMessage], Meta(max_length=4096)] | None = None
    tools: Annotated[list[OllamaTool], Meta(max_length=128)] | None = None


class GenerateBody(_Generation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/generate. Without a prompt it loads the model, or with ``keep_alive`` 0 unloads it.

    ``raw`` gives the prompt to the model as it is, without the chat template.
    """

    prompt: str | None = None
    system: str | None = None
    raw: bool | None = None


class ShowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /api/show. ``name`` is the older name of ``model``."""

    model: ModelName | None = None
    name: ModelName | None = None
    verbose: bool | None = None  # there is nothing longer to show: tokenizers are left out either way


class EmbedBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/embed."""

    model: ModelName
    input: str | Annotated[list[str], Meta(max_length=2048)]
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    keep_alive: float | str | None = None


class EmbeddingsBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/embeddings, the older form of /api/embed."""

    model: ModelName
    prompt: str
    keep_alive: float | str | None = None


_GENERATION: Neutral = {
    "_debug_render_only": (False,),
    "shift": (False,),
    "template": ("",),
    "think": (False,),
    "truncate": (False,),
}
_GENERATE: Neutral = {
    **_GENERATION,
    "context": ([],),
    "height": (0,),
    "images": ([],),
    "steps": (0,),
    "suffix": ("",),
    "width": (0,),
}
_MESSAGE: Neutral = {"images": ([],), "thinking": ("",)}
_SHOW: Neutral = {"system": ("",), "template": ("",), "options": ({},)}
_EMBED: Neutral = {"options": ({},), "truncate": (False,)}


def parse_chat(body: bytes) -> ChatBody:
    """The body of POST /api/chat. Raises InvalidRequestError naming the field at fault."""
    fields = _with_options(without_neutral(decode_object(body), _GENERATION))
    messages = fields.get("messages")
    if isinstance(messages, list):
        fields["messages"] = [
            without_neutral_in(message, _MESSAGE, f"messages[{index}].")
            for index, message in enumerate(messages)
        ]
    parsed = convert(fields, ChatBody)
    _check_logprobs(parsed)
    if parsed.tools and parsed.json_schema is not None:
        raise InvalidRequestError("`format` and `tools` exclude each other", param="format")
    return parsed


def parse_generate(body: bytes) -> GenerateBody:
    """The body of POST /api/generate. Raises InvalidRequestError naming the field at fault."""
    parsed = convert(_with_options(without_neutral(decode_object(body), _GENERATE)), GenerateBody)
    _check_logprobs(parsed)
    if parsed.raw and parsed.system:
        raise InvalidRequestError(
            "`system` has no place in a `raw` prompt; put it into `prompt`", param="system"
        )
    return parsed


def _check_logprobs(body: _Generation) -> None:
    if body.top_logprobs and not body.logprobs:
        raise InvalidRequestError("`top_logprobs` needs `logprobs: true`", param="top_logprobs")


def parse_show(body: bytes) -> str:
    """The model that POST /api/show asks for. Raises InvalidRequestError."""
    parsed = convert(without_neutral(decode_object(body), _SHOW), ShowBody)
    name = parsed.model or parsed.name
    if name is None:
        raise InvalidRequestError("`model` is missing", param="model")
    return name


def parse_embed(body: bytes, kind: type[T]) -> T:
    """The body of POST /api/embed or /api/embeddings. Raises InvalidRequestError naming the field at fault."""
    return convert(without_neutral(decode_object(body), _EMBED), kind)


def _with_options(fields: dict[str, Any]) -> dict[str, Any]:
    options = without_neutral_in(fields.get("options"), UNSUPPORTED, "options.")
    return {**fields, "options": options} if "options" in fields else fields
