"""The forms in which chat templates write tool calls. Pure.

A form is detected by rendering a probe call, whatever else the template contains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolForm:
    """How a call is written.

    ``json``: ``open {"name": NAME, KEY: {…}} close``. ``gemma``: ``open call:NAME{key:value,…} close``, where strings
    stand between two ``quote`` markers and all else is JSON. Without ``open`` a call is a whole reply.
    """

    kind: Literal["json", "gemma"]
    open: str = ""
    close: str = ""
    key: str = ""
    quote: str = ""

    @property
    def responses_with_calls(self) -> bool:
        """Whether templates take results as ``tool_responses`` of the message with the calls.

        All versions of Gemma's do; only the newer ones take results as messages.
        """
        return self.kind == "gemma"

    @property
    def markers(self) -> list[str]:
        """The markers of the form; in many vocabularies each is one control token."""
        return [marker for marker in (self.open, self.close, self.quote) if marker]


_FORMS = (
    ToolForm("gemma", "<|tool_call>", "<tool_call|>", quote='<|"|>'),  # Gemma 4
    ToolForm("gemma", "<start_function_call>", "<end_function_call>", quote="<escape>"),  # FunctionGemma
    ToolForm("json", "<tool_call>", "</tool_call>", key="arguments"),  # Hermes, Qwen
    ToolForm("json", key="parameters"),  # Llama 3
)
# Markers around reasoning, which is not part of the reply.
THOUGHTS = (("<|channel>", "<channel|>"),)  # Gemma 4
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
    call = rf'\s*\{{\s*"name":\s*"probe_tool",\s*"{form.key}":\s*{arguments}\s*\}}\s*'
    return re.escape(form.open or _TURN_OPEN) + call + re.escape(form.close or _TURN_CLOSE)
