"""The bodies of Ollama's endpoints: each field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from gateway.api.ollama.options import NEUTRAL_OPTIONS, OllamaOptions
from gateway.api.openai.bodies import TopLogprobs
from gateway.api.parsing.fields import CallId, Neutral, invalid
from model_host.protocol import ToolName

ModelName = Annotated[str, Meta(min_length=1, max_length=512)]


class CalledFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """The function of a tool call. ``index`` is its position among the calls."""

    name: ToolName
    arguments: dict[str, Any] = {}
    index: int | None = None


class SentToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of an earlier reply, sent back."""

    function: CalledFunction
    id: CallId | None = None
    type: Literal["function"] | None = None


class OllamaMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. A ``tool`` message answers the call of its ``tool_name`` and ``tool_call_id``."""

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
    """A tool; functions are the only type."""

    function: OllamaFunction
    type: Literal["function"] | None = None


class GenerationBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that chat and generate share. ``stream`` defaults to true."""

    neutral: ClassVar[Neutral] = {
        "_debug_render_only": (False,),
        "shift": (False,),
        "template": ("",),
        "think": (False,),
        "truncate": (False,),
        **{f"options.{name}": values for name, values in NEUTRAL_OPTIONS.items()},
    }

    model: ModelName
    format: Literal["", "json"] | dict[str, Any] | None = None  # "json": any object; a dict: a JSON schema
    options: OllamaOptions | None = None
    stream: bool | None = None
    keep_alive: float | str | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        if isinstance(self.format, dict):
            return self.format
        return {"type": "object"} if self.format == "json" else None

    def __post_init__(self) -> None:
        if self.top_logprobs and not self.logprobs:
            raise invalid("top_logprobs", "it needs `logprobs: true`")


class ChatBody(GenerationBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/chat. Without messages it loads the model or, with ``keep_alive`` 0, unloads it."""

    neutral: ClassVar[Neutral] = {
        **GenerationBody.neutral,
        "messages[].images": ([],),
        "messages[].thinking": ("",),
    }

    messages: Annotated[list[OllamaMessage], Meta(max_length=4096)] | None = None
    tools: Annotated[list[OllamaTool], Meta(max_length=128)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tools and self.json_schema is not None:
            raise invalid("format", "send either `format` or `tools`")


class GenerateBody(GenerationBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/generate. Without a prompt it loads the model or, with ``keep_alive`` 0, unloads it.

    ``raw`` bypasses the chat template.
    """

    neutral: ClassVar[Neutral] = {
        **GenerationBody.neutral,
        "context": ([],),
        "height": (0,),
        "images": ([],),
        "steps": (0,),
        "suffix": ("",),
        "width": (0,),
    }

    prompt: str | None = None
    system: str | None = None
    raw: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.raw and self.system:
            raise invalid("system", "a `raw` prompt has no system message; put the text into `prompt`")


class ShowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /api/show. ``name`` is the older name of ``model``; ``verbose`` has no effect."""

    neutral: ClassVar[Neutral] = {"system": ("",), "template": ("",), "options": ({},)}

    model: ModelName | None = None
    name: ModelName | None = None
    verbose: bool | None = None


class EmbeddingsBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/embeddings, the older form of /api/embed."""

    neutral: ClassVar[Neutral] = {"options": ({},), "truncate": (False,)}

    model: ModelName
    prompt: str
    keep_alive: float | str | None = None


class EmbedBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /api/embed."""

    neutral: ClassVar[Neutral] = EmbeddingsBody.neutral

    model: ModelName
    input: str | Annotated[list[str], Meta(max_length=2048)]
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    keep_alive: float | str | None = None
