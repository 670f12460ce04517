"""What templates of other shapes than Gemma's are given: tools as text, and placeholders for what they iterate over."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from model_host.prompts.generic_tools import GENERIC_FORM
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
    control = r"<[a-z/]+>"

    def controls(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(self.control, text)]

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


_SHOWS_ONE = """{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}
{{ raise_exception("one call") }}{% endif %}<tool_call>{"name": "{{ m.tool_calls[0].function.name }}", "arguments":
{{ m.tool_calls[0].function.arguments | tojson }}}</tool_call>{% else %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>
{% endif %}{% endfor %}{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"""
_ALTERNATES = """{% set ns = namespace(n=0) %}{% for m in messages if m.role != "tool" and not m.tool_calls %}
{% if (m.role == "user") != (ns.n % 2 == 0) %}{{ raise_exception("alternate") }}{% endif %}{% set ns.n = ns.n + 1 %}
{% endfor %}"""
_TWO = Message(
    "assistant",
    "Let me see.",
    tool_calls=[ToolCall("1", "now", {"zone": "Huế"}), ToolCall("2", "now", {"zone": "UTC"})],
)
_ASKED_ON = [HI, _TWO, RESULT, Message("tool", "five", tool_call_id="2", name="now")]


def test_text_beside_calls_and_several_calls_where_the_template_shows_one(worker: TemplateWorker) -> None:
    made = re.sub(r"\s", "", prompt(worker, _SHOWS_ONE, *_ASKED_ON, tools=[NOW]).partition('{"type')[0])
    call = '<tool_call>{"name":"now","arguments":{"zone":"%s"}}</tool_call><tool>%s</tool>'
    assert made == "<user>Hi</user><assistant>Letmesee.</assistant>" + call % ("Huế", "noon") + call % (
        "UTC",
        "five",
    )


def test_text_beside_calls_joins_the_next_text_where_turns_alternate(worker: TemplateWorker) -> None:
    answered = (*_ASKED_ON, Message("assistant", "Noon."), Message("user", "Thanks"))
    made = prompt(worker, _ALTERNATES + _SHOWS_ONE, *answered, tools=[NOW])
    assert made.count("<assistant>") == 1
    assert "<tool>five</tool>\n<assistant>Let me see.\n\nNoon.</assistant>\n<user>Thanks</user>" in made


def test_templates_may_print_the_date(worker: TemplateWorker) -> None:
    assert re.fullmatch(
        r"<user>Hi</user>[A-Z][a-z]{2} \d\d \d{4}", prompt(worker, TURNS + "{{ datetime }}", HI)
    )


class Lfm2Letters(Letters):
    control = r"<\|tool_call_(start|end)\|>"


def test_a_template_that_leaves_calls_to_the_text_gets_lfm2s_where_the_vocabulary_has_them(
    worker: TemplateWorker,
) -> None:
    template = "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}" + TURNS + ASKED
    builder = PromptBuilder(template, Lfm2Letters(), worker)
    assert builder.form.kind == "python"
    call = ToolCall("1", "now", {"zone": 'the "old" one', "days": [1, 2]})
    made = "".join(
        map(chr, builder.build([HI, Message("assistant", "", tool_calls=[call]), RESULT], [NOW]).tokens)
    )
    assert made.endswith(
        "<user>Hi</user><assistant><|tool_call_start|>"
        '[now(zone="the \\"old\\" one", days=[1, 2])]<|tool_call_end|></assistant><tool>noon</tool><assistant>'
    )
    assert PromptBuilder(template, Letters(), worker).form == GENERIC_FORM
