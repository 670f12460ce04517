"""The bodies of Ollama's endpoints and their translation for the model host."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.api.openai.bodies import TopLogprobs
from gateway.api.parsing.fields import (
    Body,
    CallId,
    SamplingFields,
    ThoughtFields,
    ignore,
    invalid,
    sampling_of,
)
from model_host.protocol import Message, Sampling, StopString, Tool, ToolCall, ToolName

MAX_LAST_N = 8192  # of model_host.protocol.Sampling.penalty_last_n


class OllamaOptions(SamplingFields, frozen=True, kw_only=True):
    """The supported options. None means this server's default, not Ollama's.

    ``seed`` -1 draws one; ``num_predict`` -1 and -2 mean the rest of the context; ``repeat_last_n`` -1 means the whole
    context. ``num_ctx`` does not change the context of the server.
    """

    seed: Annotated[int, Meta(ge=-1, le=2**32 - 2)] | None = None
    num_predict: Annotated[int, Meta(ge=-2, le=1_048_576)] | None = None
    stop: Annotated[list[StopString], Meta(max_length=16)] | None = None
    repeat_last_n: Annotated[int, Meta(ge=-1, le=MAX_LAST_N)] | None = None
    num_ctx: Annotated[int, Meta(ge=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=1_000_000)] | None = None  # -1: all tokens, like 0

    def __post_init__(self) -> None:
        if self.num_predict == 0:
            raise invalid("options.num_predict", "send at least 1, or -1 for the rest of the context")

    def check(self, context: int) -> None:
        """Compare with ``context``, the tokens of one request. Raises InvalidRequestError."""
        if self.num_ctx is not None and self.num_ctx > context:
            ignore("options.num_ctx")
        if self.repeat_last_n == -1 and context > MAX_LAST_N:
            raise invalid(
                "options.repeat_last_n",
                f"-1 means the whole context of {context} tokens; the maximum is {MAX_LAST_N}",
            )

    def sampling(self, context: int) -> Sampling:
        last = context if self.repeat_last_n == -1 else self.repeat_last_n
        seed, top_k = None if self.seed == -1 else self.seed, 0 if self.top_k == -1 else self.top_k
        return sampling_of(self, seed=seed, top_k=top_k, penalty_last_n=last)

    @property
    def max_tokens(self) -> int | None:
        """The longest output in tokens; None for the rest of the context."""
        return self.num_predict if self.num_predict is not None and self.num_predict > 0 else None


ModelName = Annotated[str, Meta(min_length=1, max_length=512)]
OptionalName = Annotated[str, Meta(max_length=512)]


class CalledFunction(Body, frozen=True):
    """The function of a tool call. ``index`` is its position among the calls."""

    name: ToolName
    arguments: dict[str, Any] = {}
    index: int | None = None


class SentToolCall(Body, frozen=True):
    function: CalledFunction
    id: CallId | None = None


class OllamaMessage(Body, frozen=True):
    """One turn. A ``tool`` message answers the call of its ``tool_name`` and ``tool_call_id``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: Annotated[list[SentToolCall], Meta(max_length=128)] | None = None
    tool_name: ToolName | None = None
    tool_call_id: CallId | None = None


class OllamaFunction(Body, frozen=True):
    """A function that the model may call; ``parameters`` is a JSON schema of an object."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OllamaTool(Body, frozen=True):
    function: OllamaFunction


class GenerationBody(ThoughtFields, frozen=True, kw_only=True):
    """The fields that chat and generate share. ``stream`` defaults to true."""

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


class ChatBody(GenerationBody, frozen=True, kw_only=True):
    """POST /api/chat. Without messages it loads the model or, with ``keep_alive`` 0, unloads it."""

    messages: Annotated[list[OllamaMessage], Meta(max_length=4096)] | None = None
    tools: Annotated[list[OllamaTool], Meta(max_length=128)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tools and self.json_schema is not None:
            raise invalid("format", "send either `format` or `tools`")


class GenerateBody(GenerationBody, frozen=True, kw_only=True):
    """POST /api/generate. Without a prompt it loads the model or, with ``keep_alive`` 0, unloads it.

    ``raw`` bypasses the chat template, and so does ``suffix``, the text after the reply. ``context`` is that of
    the last reply, which this one then follows.
    """

    prompt: str | None = None
    context: list[int] | None = None
    system: str | None = None
    raw: bool | None = None
    suffix: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = "raw" if self.raw else "suffix"
        if (self.raw or self.suffix) and self.system:
            raise invalid(
                "system", f"a prompt with `{kind}` has no system message; put the text into `prompt`"
            )
        if (self.raw or self.suffix) and self.context:
            raise invalid("context", f"a prompt with `{kind}` has no context; put the text into `prompt`")


class NamedBody(Body, frozen=True, kw_only=True):
    """A model's name; ``name`` is its older field. Ollama's command line sends both, one of them empty."""

    model: OptionalName | None = None
    name: OptionalName | None = None

    def __post_init__(self) -> None:
        if not self.named:
            raise invalid("model", "it is missing")

    @property
    def named(self) -> str:
        return self.model or self.name or ""


class ShowBody(NamedBody, frozen=True, kw_only=True):
    """POST /api/show."""


class PullBody(NamedBody, frozen=True, kw_only=True):
    """POST /api/pull. ``stream`` defaults to true."""

    stream: bool | None = None


class CopyBody(Body, frozen=True):
    """POST /api/copy: ``destination`` becomes another name of ``source``."""

    source: ModelName
    destination: ModelName


class EmbeddingsBody(Body, frozen=True, kw_only=True):
    """POST /api/embeddings, the older form of /api/embed."""

    model: ModelName
    prompt: str
    keep_alive: float | str | None = None


class EmbedBody(Body, frozen=True, kw_only=True):
    model: ModelName
    input: str | Annotated[list[str], Meta(max_length=2048)]
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    keep_alive: float | str | None = None


class _Turn(Struct, frozen=True, array_like=True):
    role: Literal["system", "user", "assistant"]
    content: str


_ROLES = {"tool_calls": "assistant", "tool_name": "tool", "tool_call_id": "tool"}


def chat_fields(body: ChatBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/chat."""
    functions = [tool.function for tool in body.tools or []]
    tools = [Tool(each.name, each.description or "", each.parameters or {}) for each in functions]
    messages = _messages(body.messages or [])
    return {"messages": messages, "tools": tools, "continue_final": messages[-1].continuable}


def generate_fields(body: GenerateBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/generate: a user's turn, or raw text."""
    prompt = body.prompt or ""
    if body.raw or body.suffix:
        return {"prompt": prompt, "suffix": body.suffix or None}
    earlier = _turns(body.context or [])
    if body.system:
        earlier = [Message("system", body.system), *(turn for turn in earlier if turn.role != "system")]
    return {"messages": [*earlier, Message("user", prompt)]}


def context_of(turns: list[Message]) -> list[int]:
    """The conversation for a reply's ``context``: the bytes of its JSON. Clients send them back as they are."""
    return list(msgspec.json.encode([[turn.role, turn.content] for turn in turns]))


def _turns(context: list[int]) -> list[Message]:
    """The conversation of :func:`context_of`. Raises InvalidRequestError."""
    try:
        sent = msgspec.json.decode(bytes(context), type=list[_Turn]) if context else []
    except (ValueError, msgspec.DecodeError):
        problem = "send the one of this server's last reply, or none; token ids of another server have no meaning here"
        raise invalid("context", problem) from None
    return [Message(turn.role, turn.content) for turn in sent]


def _messages(sent: list[OllamaMessage]) -> list[Message]:
    """The turns. A ``tool`` message answers the call that it names, or else the first unanswered one."""
    made = []
    waiting: list[ToolCall] = []
    for number, message in enumerate(sent):
        for name, role in _ROLES.items():
            if getattr(message, name) and message.role != role:
                problem = f"messages of the role `{message.role}` cannot have it"
                raise invalid(f"messages[{number}].{name}", problem)
        if message.role == "assistant":
            # An id that the client did not send back is made up.
            waiting = [
                ToolCall(call.id or f"call_{number}_{index}", call.function.name, call.function.arguments)
                for index, call in enumerate(message.tool_calls or [])
            ]
            made.append(Message("assistant", message.content or "", tool_calls=list(waiting)))
        elif message.role == "tool":
            answered = _answered(number, message, waiting)
            waiting.remove(answered)
            made.append(Message("tool", message.content or "", tool_call_id=answered.id, name=answered.name))
        else:
            made.append(Message(message.role, message.content or ""))
    return made


def _answered(number: int, message: OllamaMessage, waiting: list[ToolCall]) -> ToolCall:
    wanted_id, wanted_name = message.tool_call_id, message.tool_name
    for call in waiting:
        if wanted_id in (None, call.id) and wanted_name in (None, call.name):
            return call
    raise invalid(
        f"messages[{number}]",
        "no open call of the last assistant message has its `tool_call_id` and `tool_name`",
    )
