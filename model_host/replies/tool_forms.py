"""The forms in which chat templates write tool calls. Pure.

A form is detected by rendering a probe call, whatever else the template contains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_MARKER = re.compile(r"<[^<>\s=]+>|\[[A-Z_]+\]")


@dataclass(frozen=True, slots=True)
class ToolForm:
    """How a call is written.

    ``json``: ``open {"name": NAME, KEY: {…}} close``, with ``name_key`` for "name". ``gemma``:
    ``open call:NAME{key:value,…} close``, where strings stand between two ``quote`` markers and all else is JSON.
    ``named``: ``open NAME {…} close`` with the two texts of ``name`` around the name; ``key`` stands before an id
    behind the name. ``tagged``: the same with each argument as ``KEY value`` between the three texts of ``argument``;
    strings are not quoted, all else is JSON, and a ``"true"`` in the second text is then ``"false"``. ``python``:
    ``open [NAME(KEY=value, …)] close``.

    White space between the parts does not count. ``section`` surrounds all calls of a reply; with ``listed`` they are
    one list. Without ``open`` a call is a whole reply. ``also_open`` is another way to begin a call; ``probe`` is the
    head of a call as templates write it, if that differs.
    """

    kind: Literal["json", "gemma", "named", "tagged", "python"]
    open: str = ""
    close: str = ""
    key: str = ""
    name_key: str = "name"
    quote: str = ""
    name: tuple[str, str] = ("", "")
    argument: tuple[str, str, str] = ("", "", "")
    section: tuple[str, ...] = ()
    listed: bool = False
    also_open: str = ""
    probe: str = ""

    @property
    def responses_with_calls(self) -> bool:
        """Whether templates take results as ``tool_responses`` of the message with the calls.

        All versions of Gemma's do; only the newer ones take results as messages.
        """
        return self.kind == "gemma"

    @staticmethod
    def markers_in(text: str) -> list[str]:
        return _MARKER.findall(text)

    @property
    def markers(self) -> list[str]:
        """The markers of the form; in many vocabularies each is one control token."""
        texts = (self.open, self.also_open, self.key, *self.name, *self.argument, self.close, *self.section)
        found = [marker for text in texts for marker in self.markers_in(text)]
        return [*dict.fromkeys(marker for marker in (*found, self.quote) if marker)]


LFM2_FORM = ToolForm("python", "<|tool_call_start|>", listed=True, section=("<|tool_call_end|>",))
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_FORMS = (
    ToolForm("gemma", "<|tool_call>", "<tool_call|>", quote='<|"|>'),  # Gemma 4
    ToolForm("gemma", "<start_function_call>", "<end_function_call>", quote="<escape>"),  # FunctionGemma
    ToolForm("json", "<tool_call>", "</tool_call>", key="arguments"),  # Hermes, Qwen
    ToolForm("json", key="parameters"),  # Llama 3
    ToolForm("json", "<|function_call|>", key="arguments"),  # GigaChat 3.1
    ToolForm("json", "[TOOL_CALLS]", key="arguments", listed=True),  # Mistral, older ones
    ToolForm("json", "<TOOLCALL>", key="arguments", listed=True, section=("</TOOLCALL>",)),  # Nemotron
    ToolForm(  # Command R7B, Command A
        "json",
        "<|START_ACTION|>",
        key="parameters",
        name_key="tool_name",
        listed=True,
        section=("<|END_ACTION|>",),
    ),
    LFM2_FORM,
    ToolForm(  # gpt-oss
        "named",
        "<|channel|>commentary to=functions.",
        "<|call|>",
        name=("", " <|constrain|>json<|message|>"),
        also_open=" to=functions.",
        probe=" to=functions. probe_tool <|channel|>commentary json<|message|>",
    ),
    ToolForm("named", "[TOOL_CALLS]", key="[CALL_ID]", name=("", "[ARGS]")),  # Mistral
    ToolForm("named", "<function=", "</function>", name=("", ">")),  # Functionary 3.1
    ToolForm(  # Kimi K2
        "named",
        "<|tool_call_begin|>",
        "<|tool_call_end|>",
        name=("functions.", ":0<|tool_call_argument_begin|>"),
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ),
    ToolForm(  # DeepSeek R1
        "named",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        "```<｜tool▁call▁end｜>",
        name=("", "\n```json"),
        section=_DEEPSEEK,
    ),
    ToolForm(  # DeepSeek V3.1
        "named",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        name=("", "<｜tool▁sep｜>"),
        section=_DEEPSEEK,
    ),
    ToolForm(  # GLM
        "tagged",
        "<tool_call>",
        "</tool_call>",
        argument=("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"),
    ),
    *(
        ToolForm(  # Qwen3-Coder, Qwen 3.5, Nemotron 3; Seed-OSS
            "tagged",
            f"<{tag}>",
            f"</function>\n</{tag}>",
            name=("<function=", ">"),
            argument=("<parameter=", ">", "</parameter>"),
        )
        for tag in ("tool_call", "seed:tool_call")
    ),
    ToolForm(  # MiniMax M2
        "tagged",
        '<invoke name="',
        "</invoke>",
        name=("", '">'),
        argument=('<parameter name="', '">', "</parameter>"),
        section=("<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    *(
        ToolForm(  # DeepSeek V3.2, V4
            "tagged",
            '<｜DSML｜invoke name="',
            "</｜DSML｜invoke>",
            name=("", '">'),
            argument=('<｜DSML｜parameter name="', '" string="true">', "</｜DSML｜parameter>"),
            section=(f"<｜DSML｜{calls}>", f"</｜DSML｜{calls}>"),
        )
        for calls in ("function_calls", "tool_calls")
    ),
    ToolForm(  # Hunyuan 3
        "tagged",
        "<tool_call:opensource>",
        "</tool_call:opensource>",
        name=("", "<tool_sep:opensource>"),
        argument=(
            "<arg_key:opensource>",
            "</arg_key:opensource>\n<arg_value:opensource>",
            "</arg_value:opensource>",
        ),
        section=("<tool_calls:opensource>", "</tool_calls:opensource>"),
    ),
    ToolForm(  # MiniCPM 5
        "tagged",
        '<function name="',
        "</function>",
        name=("", '">'),
        argument=('<param name="', '">', "</param>"),
    ),
)
# A form without markers is detected only as a whole turn of a Llama 3 template.
_TURN_OPEN, _TURN_CLOSE = "<|end_header_id|>\n\n", "<|eot_id|>"


def find_form(rendered: str) -> ToolForm | None:
    """The form in ``rendered``, a conversation with a call of ``probe_tool`` with ``probe_key`` "probe value"."""
    return next((form for form in _FORMS if re.search(_probe_pattern(form), rendered)), None)


def _probe_pattern(form: ToolForm) -> str:
    if form.kind == "gemma":
        text = f"{form.open}call:probe_tool{{probe_key:{form.quote}probe value{form.quote}}}{form.close}"
        return re.escape(text)
    arguments = r'\{\s*"probe_key":\s*"probe value"\s*\}'
    if form.kind == "tagged":
        key_open, key_close, value_close = form.argument
        arguments = _spaced(f"{key_open} probe_key {key_close} probe value {value_close}")
    if form.kind == "python":
        return _spaced(f"{form.open} [ probe_tool( probe_key= 'probe value' ) ]")
    if form.kind != "json":
        head = _spaced(form.probe or f"{form.open} {form.name[0]} probe_tool {form.name[1]}")
        if form.key:
            head = head.replace(r"probe_tool\s*", rf"probe_tool(?:{re.escape(form.key)}\w+)?\s*")
        return rf"{head}\s*{arguments}\s*{_spaced(form.close)}"
    name = rf'("tool_call_id":\s*"\w+",\s*)?"{form.name_key}":\s*"probe_tool"'
    call = rf'\s*\{{\s*{name},\s*"{form.key}":\s*{arguments}\s*'
    if form.listed:  # Mistral's calls have an id
        return rf'{re.escape(form.open)}\s*\[{call}(,\s*"id":\s*"\w+")?\}}\s*\]'
    call += r"\}\s*"
    return re.escape(form.open or _TURN_OPEN) + call + re.escape(form.close if form.open else _TURN_CLOSE)


def _spaced(text: str) -> str:
    """A pattern of ``text`` with any white space where it has some."""
    return r"\s*".join(map(re.escape, text.split()))
