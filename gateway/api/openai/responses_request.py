"""The body of POST /v1/responses and its translation for the model host."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.api.generation import Status
from gateway.api.openai.bodies import (
    Function,
    GenerationFields,
    Grammar,
    MaxTokens,
    NamedFunction,
    PromptFields,
    TopLogprobs,
    host_choice,
    host_tools,
    output_form,
    to_call,
)
from gateway.api.parsing.fields import Body, CallId, ignore, invalid, parse_object, set_field
from gateway.inference.interface import GenerateCall
from model_host.protocol import Message, ToolCall, ToolName

# Between the instructions and a system message that follows them, which are one turn.
_BETWEEN = "\n\n"


class InputText(Body, frozen=True, tag_field="type", tag="input_text"):
    text: str


class OutputText(Body, frozen=True, tag_field="type", tag="output_text"):
    """Text of an earlier reply. The model does not see ``logprobs``."""

    text: str
    logprobs: list[Any] | None = None


class MessageItem(Body, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """One turn. ``type`` is optional; ``id`` and ``status`` are those of an earlier reply's item."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputText | OutputText]
    id: str | None = None
    status: Status | None = None


class CallItem(Body, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A call of an earlier reply; ``arguments`` is a JSON object as text."""

    call_id: CallId
    name: ToolName
    arguments: str
    namespace: ToolName | None = None
    id: str | None = None
    status: Status | None = None


class ResultItem(Body, frozen=True, kw_only=True, tag_field="type", tag="function_call_output"):
    """The result of the call ``call_id``."""

    call_id: CallId
    output: str | list[InputText]
    id: str | None = None
    status: Status | None = None


class ReasoningItem(Struct, frozen=True, tag_field="type", tag="reasoning"):
    """Thoughts of an earlier reply, which the model does not see again."""


InputItem = MessageItem | CallItem | ResultItem | ReasoningItem


def host_messages(
    instructions: str | None, earlier: list[InputItem], items: list[InputItem]
) -> list[Message]:
    """The turns in the host's form. Raises InvalidRequestError naming the item at fault."""
    turns = _Turns(instructions)
    for place, group in (("previous_response_id", earlier), ("input[{}]", items)):
        for index, item in enumerate(group):
            here = place.format(index)
            match item:
                case MessageItem():
                    turns.message(item, here)
                case CallItem():
                    turns.call(item, here)
                case ResultItem():
                    turns.result(item, here)
                case ReasoningItem():
                    ignore("input[].reasoning")
    turns.check_answered("input")
    return turns.made


class _Turns:
    """The prompt so far. The calls of the model and the texts around them are one turn."""

    def __init__(self, instructions: str | None) -> None:
        self.made = [Message("system", instructions)] if instructions else []
        self._unanswered: dict[str, str] = {}  # calls of the last turn: name by id

    def message(self, item: MessageItem, place: str) -> None:
        role = "system" if item.role == "developer" else item.role
        content = _text(item, place)
        if role == "assistant" and self._unanswered and self.made[-1].role == role:
            turn = self.made.pop()  # models may write on behind their calls
            self.made.append(replace(turn, content=f"{turn.content}{content}"))
            return
        self.check_answered(place)
        if role == "system" and len(self.made) == 1 and self.made[0].role == "system":
            self.made = [Message("system", f"{self.made[0].content}{_BETWEEN}{content}")]
        else:
            self.made.append(Message(role, content))

    def call(self, item: CallItem, place: str) -> None:
        if item.call_id in self._unanswered:
            raise invalid(f"{place}.call_id", "an earlier call has the same id")
        if not self.made or self.made[-1].role != "assistant":
            self.check_answered(place)
            self.made.append(Message("assistant", ""))
        turn = self.made.pop()
        arguments = parse_object(item.arguments or "{}", f"{place}.arguments")
        call = ToolCall(item.call_id, item.name, arguments)
        self.made.append(replace(turn, tool_calls=[*turn.tool_calls, call]))
        self._unanswered[item.call_id] = item.name

    def result(self, item: ResultItem, place: str) -> None:
        name = self._unanswered.pop(item.call_id, None)
        if name is None:
            raise invalid(
                f"{place}.call_id", f"no unanswered call before it has the id {item.call_id[:80]!r}"
            )
        text = item.output if isinstance(item.output, str) else "".join(part.text for part in item.output)
        self.made.append(Message("tool", text, tool_call_id=item.call_id, name=name))

    def check_answered(self, place: str) -> None:
        if self._unanswered:
            open_calls = ", ".join(self._unanswered)[:200]
            raise invalid(place, f"send the `function_call_output` of the calls {open_calls} first")


def _text(item: MessageItem, place: str) -> str:
    if isinstance(item.content, str):
        return item.content
    wanted = OutputText if item.role == "assistant" else InputText
    for index, part in enumerate(item.content):
        if not isinstance(part, wanted):
            raise invalid(
                f"{place}.content[{index}].type",
                f"the role {item.role} takes parts of the type {wanted.__struct_config__.tag}",
            )
    return "".join(part.text for part in item.content)


class TextFormat(Body, frozen=True, tag_field="type", tag="text"):
    """Any text."""


class JsonObjectFormat(Body, frozen=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaFormat(Body, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    name: Annotated[str, Meta(max_length=64)]
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class TextConfig(Body, frozen=True):
    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the output follows; None for free text."""
        if isinstance(self.format, JsonSchemaFormat):
            return self.format.schema
        return {"type": "object"} if isinstance(self.format, JsonObjectFormat) else None


class ResponsesFunctionTool(Function, frozen=True, tag_field="type", tag="function"):
    """A function that the model may call."""


class ToolNamespace(Body, frozen=True, tag_field="type", tag="namespace"):
    """Functions that belong together. Calls of them name it; their names are unique among all tools."""

    name: ToolName
    tools: Annotated[list[ResponsesFunctionTool], Meta(max_length=128)]
    description: str | None = None


ResponsesTool = ResponsesFunctionTool | ToolNamespace


class ResponsesNamedTool(NamedFunction, frozen=True, tag_field="type", tag="function"):
    """The tool that the reply must call."""


ToolChoice = Literal["none", "auto", "required"] | ResponsesNamedTool

# There are no reasoning items, so there is no encrypted content to include.
Include = Literal["message.output_text.logprobs", "reasoning.encrypted_content"]


def _searches_the_web(tool: Any) -> bool:
    """Whether a tool is OpenAI's own search. Codex offers it with every request; a model need not use what it gets."""
    return isinstance(tool, dict) and str(tool.get("type")).startswith("web_search")


class ResponsesRequest(GenerationFields, frozen=True, kw_only=True):
    """The fields of responses besides those of every generation. The reply repeats ``metadata``."""

    input: str | Annotated[list[InputItem], Meta(min_length=1, max_length=4096)]
    store: bool | None = None
    previous_response_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    instructions: str | None = None
    max_output_tokens: MaxTokens | None = None
    grammar: Grammar | None = None
    text: TextConfig | None = None
    tools: Annotated[list[ResponsesTool], Meta(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[Include] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
            Meta(max_length=16),
        ]
        | None
    ) = None

    # As in `ThoughtFields`:
    chat_template_kwargs: dict[str, Any] | None = None
    think: bool | str | None = None
    thinking: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    aliases: ClassVar[dict[str, str]] = {
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "n_predict": "max_output_tokens",
        "max_new_tokens": "max_output_tokens",
    }
    forms: ClassVar[dict[str, str]] = dict.fromkeys(PromptFields.forms, "text.format") | {
        "guided_choice": "grammar"
    }

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        super().prepare(fields)
        for alias, schema in output_form(fields):
            text = fields["text"] = fields.get("text") or {}
            named = {"type": "json_schema", "name": "output", "schema": schema}
            if isinstance(text, dict):
                set_field(text, "format", named, alias)
        if isinstance(tools := fields.get("tools"), list):
            fields["tools"] = [tool for tool in tools if not _searches_the_web(tool)]
            if len(fields["tools"]) < len(tools):
                ignore("tools[].web_search")
        items = fields.get("input")
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                item.setdefault("type", "message")

    @property
    def items(self) -> list[InputItem]:
        return [MessageItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input

    @property
    def functions(self) -> dict[str, ResponsesFunctionTool]:
        """All functions by their paths in the body."""
        found: dict[str, ResponsesFunctionTool] = {}
        for at, tool in enumerate(self.tools or ()):
            if isinstance(tool, ToolNamespace):
                found |= {f"tools[{at}].tools[{index}]": each for index, each in enumerate(tool.tools)}
            else:
                found[f"tools[{at}]"] = tool
        return found

    @property
    def namespaces(self) -> dict[str, str]:
        """The namespaces of functions that have one, by the functions' names."""
        groups = (tool for tool in self.tools or () if isinstance(tool, ToolNamespace))
        return {each.name: group.name for group in groups for each in group.tools}

    @property
    def logprobs(self) -> int | None:
        """The number of alternatives per token; None without log-probabilities."""
        wanted = "message.output_text.logprobs" in (self.include or [])
        return (self.top_logprobs or 0) if wanted else None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        return self.text.schema if self.text is not None else None

    def __post_init__(self) -> None:
        if self.top_logprobs is not None and self.logprobs is None:
            raise invalid("top_logprobs", 'it needs `include: ["message.output_text.logprobs"]`')
        if self.json_schema is not None and self.grammar is not None:
            raise invalid("grammar", "send either `grammar` or `text.format`")
        if (self.json_schema is not None or self.grammar) and self.tools and self.tool_choice != "none":
            raise invalid(
                "tools",
                "`text.format` and `grammar` cannot be combined with it, except with `tool_choice: none`",
            )


def response_call(
    body: ResponsesRequest, earlier: list[InputItem], request_id: str, owner: str
) -> GenerateCall:
    """The generation that the request asks for after ``earlier`` items. Raises InvalidRequestError."""
    tools = host_tools(body.functions)
    choice = body.tool_choice
    named = choice.name if isinstance(choice, ResponsesNamedTool) else None
    return to_call(
        body,
        request_id,
        owner,
        messages=host_messages(body.instructions, earlier, body.items),
        max_tokens=body.max_output_tokens,
        grammar=body.grammar,
        json_schema=body.json_schema,
        schema_field="text.format",
        tools=tools,
        tool_choice=host_choice(
            choice if isinstance(choice, str) else None, named, tools, "tool_choice.name"
        ),
        parallel_tool_calls=body.parallel_tool_calls is not False,
        logprobs=body.logprobs,
    )
