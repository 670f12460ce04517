"""Chat prompts as tokens, with the template's text and user text kept apart.

The chat template is rendered with placeholders for messages, tools and tool calls
(:mod:`model_host.prompts.placeholders`), so that it decides about turns and markers but never sees user text.
Only the text around the placeholders is tokenized with control tokens. The rest is tokenized as plain text, so that
nothing in it can become ``<end_of_turn>``.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, NamedTuple, Protocol

import msgspec

from model_host.prompts.generic_tools import GENERIC_FORM, as_plain_messages
from model_host.prompts.placeholders import (
    NestingError,
    Placeholder,
    Placeholders,
    cut,
    field_texts,
    lfm2_text,
)
from model_host.prompts.renderer import ChatTemplateError, TemplateWorker
from model_host.prompts.turns import Body, arrangements
from model_host.protocol import Message, Tool, ToolCall
from model_host.replies.markers import leading_thoughts, opened_thought
from model_host.replies.tool_forms import LFM2_FORM, ToolForm, find_form

_CACHED_SKELETONS = 256

# A message, a control token or other text of the template, or text of the template together with fields.
Segment = Placeholder | str | list[str | Placeholder]


class Tokenizer(Protocol):
    """The model's vocabulary, as prompts use it."""

    @property
    def bos(self) -> str: ...
    @property
    def eos(self) -> str: ...
    def controls(self, text: str) -> Iterable[tuple[int, int]]: ...
    def tokenize(self, text: str, *, special: bool) -> list[int]: ...


class BuiltPrompt(NamedTuple):
    """Token ids of a whole prompt, and lengths of beginnings of it.

    ``shared`` comes from shared text only, ``system`` ends with the leading system messages, ``turn`` ends before the
    text of the last user message. Where the template has no system role, both lie inside the first user message.
    ``system`` and ``turn`` are 0 where the template does not keep messages apart. ``thought`` is the marker that ends
    the thought that the prompt has opened, if it has.
    """

    tokens: list[int]
    shared: int
    system: int = 0
    turn: int = 0
    thought: str = ""


class PromptBuilder:
    """Turns messages into prompt tokens, and counts the leading ones that come from shared text only.

    ``form`` is how the model writes tool calls: as its template does or, if that has no tools or an unknown form, as
    :mod:`model_host.prompts.generic_tools` asks for.
    """

    def __init__(
        self,
        template: str | None,
        tokenizer: Tokenizer,
        worker: TemplateWorker,
    ) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._worker = worker
        self.thoughts = leading_thoughts(template or "")
        self._nonce = f"{secrets.randbelow(10**18):018d}"
        # One rendering per shape of conversation: placeholders make it independent of the text.
        self._skeletons: OrderedDict[bytes, list[Segment]] = OrderedDict()
        # Without tools; some templates iterate over them without a check.
        self._no_tools: dict[str, Any] = {"tools": None}
        self._writes_calls = False  # the template shows tools, but leaves calls to the messages' text
        self._own_form = self._find_form()
        self.form = self._own_form or GENERIC_FORM

    def build(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        continued: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> BuiltPrompt:
        """Return the prompt of a conversation; if ``continued``, it ends with the text of the last message.

        ``variables`` are the template's, beside those that it gets from the conversation.

        Message text is stripped at both ends, as Gemma's templates do themselves. Raises ChatTemplateError.
        """
        if self._own_form is None and (
            tools or any(message.tool_calls or message.role == "tool" for message in messages)
        ):
            messages, tools = as_plain_messages(messages, tools), ()
        refusal: ChatTemplateError | None = None
        for turns, opening in arrangements(messages):
            try:
                return self._build(turns, tools, continued, variables or {}, opening)
            except ChatTemplateError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def _build(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        continued: bool,
        variables: Mapping[str, Any],
        opening: int,
    ) -> BuiltPrompt:
        """``opening``: characters of a system prompt that the first message begins with."""
        bodies = [Body.of(message) for message in messages]
        try:
            marks = Placeholders(self._nonce, messages, tools)
        except NestingError as error:
            raise ChatTemplateError(str(error)) from None
        roles = [message.role for message in messages]
        leading = next((n for n, role in enumerate(roles) if role != "system"), len(roles))
        asking = max((n for n, role in enumerate(roles) if role == "user"), default=-1)
        tokens: list[int] = []
        shared = system = turn = 0
        skeleton = self._skeleton(messages, tools, marks, bodies, continued, variables)
        for segment in skeleton:
            all_shared = shared == len(tokens)
            if isinstance(segment, str):
                new = self._tokenizer.tokenize(segment, special=True)
                shared += len(new) if all_shared else 0
            elif isinstance(segment, Placeholder):
                body = bodies[segment.index]
                new = self._tokenizer.tokenize(body.text, special=False)
                own = self._beginning(body.text, 0 if segment.index else opening, new)
                if own:
                    system = len(tokens) + own
                if segment.index == asking:
                    turn = len(tokens) + own
                elif segment.index < leading:
                    system = len(tokens) + len(new)
                shared += self._beginning(body.text, body.shared, new) if all_shared else 0
            else:
                text = "".join(
                    part if isinstance(part, str) else _filled(part, bodies, marks.fields) for part in segment
                )
                new = self._tokenizer.tokenize(text, special=False)
            tokens += new
        thought = "" if continued else opened_thought(_tail(skeleton), self.thoughts)
        if any(isinstance(value, str) for value in variables.values()):
            shared = 0  # the template's text may say it
        return BuiltPrompt(tokens, shared, system, turn, thought)

    def _beginning(self, text: str, length: int, tokens: list[int]) -> int:
        """How many of a text's ``tokens`` come from its first ``length`` characters alone."""
        if length in (0, len(text)):
            return len(tokens) if length else 0
        alone = self._tokenizer.tokenize(text[:length], special=False)
        pairs = zip(tokens, alone, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    # ------------------------------------------------------------------ rendering

    def _skeleton(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        marks: Placeholders,
        bodies: Sequence[Body],
        continued: bool,
        variables: Mapping[str, Any],
    ) -> list[Segment]:
        """Render this shape of conversation, or take it from the cache, and cut it into segments."""
        request = {
            **variables,
            "messages": self._turns(messages, marks, bodies),
            **({"tools": [marks.tool(tool) for tool in tools]} if tools else self._no_tools),
            "add_generation_prompt": not continued,
        }
        # The date is part of the key because templates may print it.
        key = msgspec.json.encode([request, str(datetime.datetime.now().astimezone().date())])
        digest = hashlib.blake2b(key, digest_size=16).digest()
        known = self._skeletons.get(digest)
        if known is None:
            pieces = self._render(request)
            _check_complete(pieces, messages, tools, marks)
            if continued:
                last = len(messages) - 1
                at = max(
                    n
                    for n, piece in enumerate(pieces)
                    if isinstance(piece, Placeholder) and piece.body and piece.index == last
                )
                pieces = pieces[: at + 1]
            known = self._skeletons[digest] = list(_segments(pieces, self._tokenizer.controls))
            if len(self._skeletons) > _CACHED_SKELETONS:
                self._skeletons.popitem(last=False)
        self._skeletons.move_to_end(digest)
        return known

    def _turns(
        self, messages: Sequence[Message], marks: Placeholders, bodies: Sequence[Body]
    ) -> list[dict[str, Any]]:
        """The messages as the template expects them."""
        turns: list[dict[str, Any]] = []
        calls: dict[str, str] = {}  # of the last assistant's turn: name by id
        for index, message in enumerate(messages):
            turn = marks.message(index, message, empty=not bodies[index].text)
            if self._writes_calls and message.tool_calls:
                turn["content"] += lfm2_text(turn.pop("tool_calls"))
            if message.role != "tool":
                calls = {call.id: call.name for call in message.tool_calls}
            elif self._own_form is not None and self._own_form.responses_with_calls:
                name = calls.get(message.tool_call_id or "", message.name or "")
                if not calls or not name:
                    raise ChatTemplateError(
                        f"message {index + 1} is the result of a tool, but no call before it has its id"
                    )
                response = {"name": marks.field(name), "response": turn["content"]}
                turns[-1].setdefault("tool_responses", []).append(response)
                continue
            turns.append(turn)
        return turns

    def _render(self, request: dict[str, Any]) -> list[str | Placeholder]:
        if self._template is None:
            raise ChatTemplateError("this model file has no chat template; use a plain prompt instead")
        text = self._worker.render(
            {
                "add_generation_prompt": True,
                "enable_thinking": False,
                **request,
                "template": self._template,
                "bos_token": self._tokenizer.bos,
                "eos_token": self._tokenizer.eos,
            }
        )
        return cut(text, self._nonce)

    def _find_form(self) -> ToolForm | None:
        """Detect how the template writes a call by rendering a conversation with one."""
        marks = Placeholders(self._nonce, PROBE_MESSAGES, [PROBE_TOOL])
        turns = [
            marks.message(i, message, empty=not message.content) for i, message in enumerate(PROBE_MESSAGES)
        ]
        try:
            try:
                without = self._render({"messages": turns[:1], **self._no_tools})
            except ChatTemplateError:
                self._no_tools = {"tools": [], "functions": ""}
                without = self._render({"messages": turns[:1], **self._no_tools})
            request = {"messages": turns[:1], "tools": [marks.tool(PROBE_TOOL)]}
            if without == (offered := self._render(request)):
                return None
            _check_complete(offered, PROBE_MESSAGES[:1], [PROBE_TOOL], marks)
            called = self._render({**request, "messages": turns})
        except ChatTemplateError:
            return None
        bodies = [Body.of(message) for message in PROBE_MESSAGES]
        text = "".join(p if isinstance(p, str) else _filled(p, bodies, marks.fields) for p in called)
        form = find_form(text)
        whole = (0, len(LFM2_FORM.open))
        if form is None and whole in self._tokenizer.controls(LFM2_FORM.open):
            self._writes_calls, form = True, LFM2_FORM
        return form


def _check_complete(
    pieces: Sequence[str | Placeholder],
    messages: Sequence[Message],
    tools: Sequence[Tool],
    marks: Placeholders,
) -> None:
    """Raise ChatTemplateError if the template left out a message, a tool or a call."""
    bodies = {piece.index for piece in pieces if isinstance(piece, Placeholder) and piece.body}
    fields = {piece.index for piece in pieces if isinstance(piece, Placeholder) and not piece.body}
    for index, message in enumerate(messages):
        silent = not Body.of(message).text and message.tool_calls
        if index not in bodies and not silent:
            raise ChatTemplateError(f"the model's chat template leaves out message {index + 1}")
        if not all(marks.number(text) in fields for text in field_texts(message)):
            raise ChatTemplateError(f"the model's chat template leaves out tool calls of message {index + 1}")
    for tool in tools:
        if marks.number(tool.name) not in fields:
            raise ChatTemplateError(f"the model's chat template leaves out the tool {tool.name}")


def _segments(
    pieces: Sequence[str | Placeholder], controls: Callable[[str], Iterable[tuple[int, int]]]
) -> Iterator[Segment]:
    """Cut rendered text into segments that are tokenized separately.

    Messages stand alone, so that their tokens do not depend on what is around them. Template text between fields is
    tokenized with them, as it was in training; only control tokens are taken out of it.
    """
    for alone, group in groupby(
        pieces, key=lambda piece: isinstance(piece, Placeholder) and piece.body and not piece.escapes
    ):
        parts = list(group)
        if alone or all(isinstance(part, str) for part in parts):
            yield from parts
            continue
        run: list[str | Placeholder] = []
        for part in parts:
            if isinstance(part, Placeholder):
                run.append(part)
                continue
            at = 0
            for start, end in controls(part):
                run += [part[at:start]] if start > at else []
                if run:
                    yield run
                yield part[start:end]
                run, at = [], end
            run += [part[at:]] if at < len(part) else []
        if run:
            yield run


def _tail(skeleton: Sequence[Segment]) -> str:
    """The template's text behind the last placeholder."""
    pieces = [p for segment in skeleton for p in (segment if isinstance(segment, list) else [segment])]
    texts = takewhile(lambda piece: isinstance(piece, str), reversed(pieces))
    return "".join(reversed([str(text) for text in texts]))


def _filled(slot: Placeholder, bodies: Sequence[Body], fields: Sequence[str]) -> str:
    text = bodies[slot.index].text if slot.body else fields[slot.index]
    for _ in range(slot.escapes):
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    return text


PROBE_TOOL = Tool("probe_tool", "probe", {"type": "object", "properties": {"probe_key": {"type": "string"}}})
PROBE_MESSAGES = [
    Message("user", "probe question"),
    Message("assistant", "", tool_calls=[ToolCall("probe00id", "probe_tool", {"probe_key": "probe value"})]),
    Message("tool", "probe result", tool_call_id="probe00id", name="probe_tool"),
]
