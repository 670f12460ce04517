"""The forms in which chat templates write tool calls. Pure.

A form is recognised by the text that a template makes of a known call, so that a template may be worded as it likes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolForm:
    """How a call is written.

    ``json``: ``open {"name": NAME, KEY: {…}} close``. ``gemma``: ``open call:NAME{key:value,…} close``, where a string
    stands between two ``quote`` and everything else is as in JSON. Without ``open`` a call is a whole reply.
    """

    kind: Literal["json", "gemma"]
    open: str = ""
    close: str = ""
    key: str = ""
    quote: str = ""

    @property
    def responses_with_calls(self) -> bool:
        """Whether templates of this form want results as ``tool_responses`` of the message with the calls.

        Gemma's take them so in all versions, and as messages in the newer ones only.
        """
        return self.kind == "gemma"

    @property
    def markers(self) -> list[str]:
        """Texts with a meaning in a reply; in many vocabularies each is one control token."""
        return [marker for marker in (self.open, self.close, self.quote) if marker]


_FORMS = (
    ToolForm("gemma", "<|tool_call>", "<tool_call|>", quote='<|"|>'),  # Gemma 4
    ToolForm("gemma", "<start_function_call>", "<end_function_call>", quote="<escape>"),  # FunctionGemma
    ToolForm("json", "<tool_call>", "</tool_call>", key="arguments"),  # Hermes, Qwen
    ToolForm("json", key="parameters"),  # Llama 3
)
# Reasoning before the reply: what is between these does not belong to it.
THOUGHTS = (("<|channel>", "<channel|>"),)  # Gemma 4
# Without markers, only the whole turn of a model that is known to write so is taken for a call.
_TURN_OPEN, _TURN_CLOSE = "<|end_header_id|>\n\n", "<|eot_id|>"


def find_form(rendered: str) -> ToolForm | None:
    """The form of ``rendered``: a conversation with the call of ``probe_tool`` with ``probe_key`` "probe value"."""
    return next((form for form in _FORMS if re.search(_probe_pattern(form), rendered)), None)


def _probe_pattern(form: ToolForm) -> str:
    if form.kind == "gemma":
        text = f"{form.open}call:probe_tool{{probe_key:{form.quote}probe value{form.quote}}}{form.close}"
        return re.escape(text)
    call = (
        r'\{\s*"name":\s*"probe_tool",\s*"' + form.key + r'":\s*\{\s*"probe_key":\s*"probe value"\s*\}\s*\}'
    )
    before = re.escape(form.open or _TURN_OPEN)
    return rf"{before}\s*{call}\s*{re.escape(form.close or _TURN_CLOSE)}"
