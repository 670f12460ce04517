"""Requests, which the gateway sends. ``ping`` and ``stats`` are in :mod:`model_host.protocol.counters`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from model_host.protocol.parts import (
    RESERVED_VARIABLES,
    Lane,
    Message,
    Owner,
    RequestBase,
    RequestId,
    Sampling,
    StopString,
    TokenId,
    Tool,
    ToolChoice,
    Variables,
)

MAX_TEXTS = 256  # of one `embed`

Messages = Annotated[list[Message], Meta(min_length=1, max_length=4096)]
Tools = Annotated[list[Tool], Meta(max_length=128)]
TokenIds = Annotated[list[TokenId], Meta(max_length=1_048_576)]
Pieces = Annotated[list[str | TokenId], Meta(min_length=1, max_length=1_048_576)]


class Generate(RequestBase, frozen=True):
    """Generate text after a chat (``messages``) or after plain text (``prompt``): exactly one of the two.

    A ``prompt`` may mix texts with token ids, which may be those of control tokens; with a ``suffix`` the output goes
    between the two. ``max_tokens`` None means the rest of the context. At most one of ``grammar`` (GBNF, rule
    ``root``), ``json_schema`` and ``tools`` constrains the output. ``logprobs`` is the number of alternatives to report
    for each token, with ``prompt_logprobs`` also for those of the ``prompt``. ``continue_final`` continues the last
    message, an assistant's with text, instead of beginning a reply. ``template_variables`` are for the chat template,
    where they are defined beside its own; after ``thought_tokens`` a thought of the model is ended. ``adapter`` names
    one of the host's LoRA adapters.
    """

    id: RequestId
    messages: Messages | None = None
    prompt: str | Pieces | None = None
    max_tokens: Annotated[int, Meta(ge=0, le=1_048_576)] | None = None
    sampling: Sampling = Sampling()
    stop: Annotated[list[StopString], Meta(max_length=16)] = []
    grammar: Annotated[str, Meta(max_length=262_144)] | None = None
    json_schema: dict[str, Any] | bool | None = None
    lane: Lane = "interactive"
    owner: Owner = ""
    ignore_eos: bool = False
    tools: Tools = []
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    continue_final: bool = False
    suffix: str | None = None
    prompt_logprobs: bool = False
    template_variables: Variables = {}
    thought_tokens: Annotated[int, Meta(ge=0, le=1_048_576)] | None = None
    adapter: Annotated[str, Meta(max_length=64)] = ""

    def problem(self) -> str | None:
        if (self.messages is None) == (self.prompt is None):
            return "exactly one of `messages` and `prompt` is needed"
        if self.grammar is not None and self.json_schema is not None:
            return "`grammar` and `json_schema` exclude each other"
        if self.suffix is not None and self.prompt is None:
            return "`suffix` needs `prompt`"
        if self.prompt_logprobs and (self.prompt is None or self.logprobs is None):
            return "`prompt_logprobs` needs `prompt` and `logprobs`"
        if self.tools and self.messages is None:
            return "`tools` need `messages`"
        names = [tool.name for tool in self.tools]
        if twice := [name for name in names if names.count(name) > 1]:
            return f"`tools` has two tools named {twice[0]}"
        for tool in self.tools:
            if tool.parameters.get("type", "object") != "object":
                return f"the `parameters` of the tool {tool.name} must be the schema of an object"
        kind, _, wanted = self.tool_choice.partition(":")
        if wanted and wanted not in names:
            return f"`tool_choice` names the tool {wanted!r}, which is not in `tools`"
        if kind != "none" and names and (self.grammar is not None or self.json_schema is not None):
            return "`tools` exclude `grammar` and `json_schema`, unless `tool_choice` is none"
        if kind == "required" and not names:
            return "`tool_choice` required needs `tools`"
        if reserved := RESERVED_VARIABLES.intersection(self.template_variables):
            return f"`template_variables.{min(reserved)}` is set by the request itself"
        if self.continue_final and (not self.messages or not self.messages[-1].continuable):
            return "`continue_final` needs a last message of the assistant, with text and without tool calls"
        return None


class Count(RequestBase, frozen=True):
    """Count tokens: of each of ``texts`` as plain text, or of ``messages`` (and ``tools``) as a whole prompt.

    With ``ends`` each text is between the special tokens that the model wants around it.
    """

    id: RequestId
    texts: Annotated[list[str], Meta(max_length=65_536)] | None = None
    messages: Messages | None = None
    return_tokens: bool = False
    tools: Tools = []
    ends: bool = False

    def problem(self) -> str | None:
        if (self.messages is None) == (self.texts is None):
            return "exactly one of `messages` and `texts` is needed"
        return "`tools` need `messages`" if self.tools and self.messages is None else None


class Detokenize(RequestBase, frozen=True):
    """Return the text of token ids, in which control tokens are empty, and with ``return_pieces`` each one's bytes."""

    id: RequestId
    tokens: TokenIds
    return_pieces: bool = False


class Embed(RequestBase, frozen=True):
    """Return a vector for each of ``texts``, or for each list of token ids in ``tokens``. For embedding hosts only.

    A reranker needs a ``query``; the vector of a text is then a single number, its score. ``max_tokens`` truncates
    longer texts; without it a text that is too long is refused.

    ``tokens`` come without the special tokens that the model puts around a text. ``dimensions`` truncates the vectors,
    for models with Matryoshka training (https://arxiv.org/abs/2205.13147). ``normalize`` scales them to length 1.
    """

    id: RequestId
    texts: Annotated[list[str], Meta(max_length=MAX_TEXTS)] = []
    lane: Lane = "interactive"
    owner: Owner = ""
    normalize: bool = True
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    tokens: Annotated[list[TokenIds], Meta(max_length=MAX_TEXTS)] = []
    query: str | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None

    def problem(self) -> str | None:
        if self.query is not None and self.tokens:
            return "`query` needs `texts`"
        if bool(self.texts) == bool(self.tokens):
            return "exactly one of `texts` and `tokens` is needed, and not empty"
        return None


class Cancel(RequestBase, frozen=True):
    """Stop the request ``target``, which still gets its own terminal event (reason or code ``cancelled``)."""

    id: RequestId
    target: RequestId


class Forget(RequestBase, frozen=True):
    """Erase an owner's text from cache and disk. Open requests of that owner go on and leave nothing behind."""

    id: RequestId
    owner: Owner


class Shutdown(RequestBase, frozen=True):
    """End the host. Open requests finish as cancelled, then ``closing`` is the last event."""

    id: RequestId
