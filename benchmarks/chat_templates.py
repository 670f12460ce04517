"""Render llama.cpp's chat templates as hearth does: ``python -m benchmarks.chat_templates``.

The templates come from the source archive of llama-cpp-python that hearth pins. For each one: the form in which tools
are offered, its own or the generic one, and the conversations that it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import command_line
from benchmarks.peer_build import sources
from model_host.prompts.generic_tools import GENERIC_FORM
from model_host.prompts.renderer import ChatTemplateError, TemplateWorker
from model_host.prompts.templates import PromptBuilder
from model_host.protocol import Message, Tool, ToolCall

WEATHER = Tool("weather", "Of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
NOW = Tool("now", "The time", {"type": "object", "properties": {}})
ROME, TIME = ToolCall("1", "weather", {"city": "Rome"}), ToolCall("2", "now", {})
SYSTEM, HI = Message("system", "Be brief."), Message("user", "Hi")
SUNNY = Message("tool", "sunny", tool_call_id="1", name="weather")
NOON = Message("tool", "noon", tool_call_id="2", name="now")
SAID = [Message("assistant", "Sunny."), Message("user", "Thanks.")]
CONVERSATIONS: dict[str, tuple[Sequence[Message], Sequence[Tool]]] = {
    "chat": ([HI], []),
    "turns": ([SYSTEM, HI, *SAID], []),
    "tools": ([SYSTEM, HI], [WEATHER, NOW]),
    "call": ([HI, Message("assistant", "", tool_calls=[ROME]), SUNNY], [WEATHER]),
    "text beside a call": ([HI, Message("assistant", "So:", tool_calls=[ROME]), SUNNY, *SAID], [WEATHER]),
    "two calls": ([HI, Message("assistant", "", tool_calls=[ROME, TIME]), SUNNY, NOON], [WEATHER, NOW]),
    "calls without tools": ([HI, Message("assistant", "", tool_calls=[ROME]), SUNNY], []),
}


class Characters:
    """A vocabulary of characters, with the control token by which LFM2's form of tool calls is recognized."""

    bos, eos = "<s>", "</s>"
    control = r"<\|tool_call_start\|>"

    def controls(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(self.control, text)]

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [ord(character) for character in text]


def refused(builder: PromptBuilder) -> list[str]:
    found = []
    for name, (messages, tools) in CONVERSATIONS.items():
        try:
            builder.build(messages, tools)
        except ChatTemplateError as error:
            found.append(f"{name}: {error}")
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--sources", type=Path, help="unpacked sources of llama-cpp-python; fetched otherwise"
    )
    folder = (parser.parse_args().sources or sources()) / "vendor" / "llama.cpp" / "models" / "templates"
    worker = TemplateWorker()
    builders = {}
    for path in sorted(folder.glob("*.jinja")):
        lfm = Characters()
        if not path.name.startswith("LFM2"):
            lfm.control = "(?!)"
        builders[path.stem] = PromptBuilder(path.read_text(encoding="utf-8"), lfm, worker)
    failed = {name: refused(builder) for name, builder in builders.items()}
    for name, builder in builders.items():
        form = "generic" if builder.form is GENERIC_FORM else builder.form.kind
        print(f"{name:50} {form:8} {'; '.join(failed[name]) or 'all'}")
    own = sum(builder.form is not GENERIC_FORM for builder in builders.values())
    print(
        f"{len(builders)} templates, {own} with tools in their own form, {sum(map(bool, failed.values()))} refuse"
    )
    worker.close()


if __name__ == "__main__":
    main()
