"""What templates of other shapes than Gemma's are given: tools as text, and placeholders for what they iterate over."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from model_host.prompts.renderer import ChatTemplateError, TemplateWorker
from model_host.prompts.templates import PromptBuilder
from model_host.protocol import Message, Role, Tool, ToolCall

TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
ASKED = "{% if add_generation_prompt %}<assistant>{% endif %}"
NOW = Tool("now", "The time", {"type": "object", "properties": {"zone": {"type": "string"}}})
HI = Message("user", "Hi")
CALLED = Message("assistant", "Let me see.", tool_calls=[ToolCall("1", "now", {"zone": "Huế"})])
RESULT = Message("tool", "noon", tool_call_id="1", name="now")


class Letters:
    """A vocabulary of characters."""

    bos, eos = "<bos>", "<eos>"
    control_pattern = re.compile(r"<[a-z/]+>")

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [ord(character) for character in text]


@pytest.fixture(scope="module")
def worker() -> Iterator[TemplateWorker]:
    made = TemplateWorker()
    yield made
    made.close()


def prompt(worker: TemplateWorker, template: str, *messages: Message, **fields: object) -> str:
    builder = PromptBuilder(template, Letters(), worker)
    return "".join(map(chr, builder.build(messages, **fields).tokens))  # type: ignore[arg-type]


def test_a_template_may_keep_lists(worker: TemplateWorker) -> None:
    kept = "{% set ns = namespace(ids=[]) %}{% for m in messages %}{% set _ = ns.ids.append(m.role) %}{% endfor %}"
    for _ in range(2):
        assert prompt(worker, kept + TURNS + "{{ ns.ids.pop(0) }}{{ ns.ids }}", HI) == "<user>Hi</user>user[]"


@pytest.mark.parametrize(
    "head",
    [
        "{% for tool in tools %}{{ tool.name }}{% endfor %}",
        "{% if tools is not none %}{% for tool in tools %}{{ tool.name }}{% endfor %}{% endif %}",
        "{{ '' + functions }}",
    ],
)
def test_templates_that_expect_tools_render_without(worker: TemplateWorker, head: str) -> None:
    assert prompt(worker, head + TURNS + ASKED, HI) == "<user>Hi</user><assistant>"


def test_tools_calls_and_results_are_text_where_the_template_has_none(worker: TemplateWorker) -> None:
    made = prompt(worker, TURNS + ASKED, HI, CALLED, RESULT, Message("user", "So?"), tools=[NOW])
    system, _, rest = made.partition("</system>")
    assert '"name": "now", "description": "The time"' in system
    assert "<tool_call>" in system
    assert rest == (
        '<user>Hi</user><assistant>Let me see.\n<tool_call>\n{"name": "now", "arguments": {"zone": "Huế"}}\n'
        "</tool_call></assistant><user><tool_response>\nnoon\n</tool_response>\n\nSo?</user><assistant>"
    )


def test_the_offer_of_tools_joins_the_system_message(worker: TemplateWorker) -> None:
    made = prompt(worker, TURNS + ASKED, Message("system", "Be brief."), HI, tools=[NOW])
    assert made.count("<system>") == 1
    assert made.endswith("Be brief.</system><user>Hi</user><assistant>")


def test_a_continued_message_ends_the_prompt(worker: TemplateWorker) -> None:
    made = prompt(worker, TURNS + ASKED, HI, Message("assistant", "Well,"), continued=True)
    assert made == "<user>Hi</user><assistant>Well,"


STRICT = (
    "{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
)
SYSTEM = (
    "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}</system>"
    "{% set messages = messages[1:] %}{% endif %}"
)


@pytest.mark.parametrize(
    ("roles", "expected", "with_system"),
    [
        ("ssu", "<user>0\n\n1\n\n2</user>", "<system>0\n\n1</system><user>2</user>"),
        (
            "suasu",
            "<user>0\n\n1</user><assistant>2</assistant><user>3\n\n4</user>",
            "<system>0</system><user>1</user><assistant>2</assistant><user>3\n\n4</user>",
        ),
        ("uuaau", "<user>0\n\n1</user><assistant>2\n\n3</assistant><user>4</user>", None),
        ("sau", "<user>0</user><assistant>1</assistant><user>2</user>", None),
    ],
)
def test_templates_that_want_alternating_turns_get_them(
    worker: TemplateWorker, roles: str, expected: str, with_system: str | None
) -> None:
    """Clients for role play send a greeting first, several instructions, and notes in between."""
    names: dict[str, Role] = {"s": "system", "u": "user", "a": "assistant"}
    messages = [Message(names[role], str(number)) for number, role in enumerate(roles)]
    assert prompt(worker, STRICT, *messages) == expected
    assert prompt(worker, SYSTEM + STRICT, *messages) == (with_system or expected)


def test_a_greeting_alone_is_refused_where_the_user_must_begin(worker: TemplateWorker) -> None:
    with pytest.raises(ChatTemplateError, match="turns"):
        prompt(worker, STRICT, Message("assistant", "Hi!"), HI)
