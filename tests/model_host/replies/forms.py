"""Three forms of tool calls, two tools, and a vocabulary with their markers."""

from __future__ import annotations

from typing import Any

from model_host.replies.markers import THOUGHTS, Markers
from model_host.replies.tool_forms import ToolForm

GEMMA = ToolForm("gemma", "<|tool_call>", "<tool_call|>", quote='<|"|>')
HERMES = ToolForm("json", "<tool_call>", "</tool_call>", key="arguments")
LLAMA = ToolForm("json", key="parameters")
TOOLS: dict[str, Any] = {"get": {}, "set": {}}
MARKERS = [*GEMMA.markers, *HERMES.markers, *THOUGHTS[0]]


def markers(*, tokens: bool) -> Markers:
    """A vocabulary that has every marker as a control token, or none."""
    return Markers(MARKERS, lambda text: 100 + MARKERS.index(text) if tokens else None)
