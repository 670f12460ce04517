"""Checklists: from lines that a user wrote, from words that plainly name a tool, and from the model. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.memory.learning.entailment import content
from gateway.runs.tool import RunTool, Toolbox

MAX_ITEMS = 12
_MIN_BY_MODEL = 2
MAX_TITLE = 300
_RESULT = re.compile(r"\{\{\d{1,3}\}\}")
_LINE = re.compile(r"\s*([a-z_]+(?:\.[A-Za-z0-9_.-]+)?)\s*:\s*(.+?)\s*", re.S)
# "Ask the wiki who made Befunge, then remind me at 15:00 to read it".
_PARTS = re.compile(r"\s*(?:\n|;)\s*|(?:,|\.)?\s+(?:and then|then|rồi)\s+(?=\w)", re.I)
_SPAN = r"(?:\d+|an?|one)\s*(?:seconds?|minutes?|mins?|hours?|days?|[smhd])"
_TIME = (
    r"(?:(?:at|lúc|on)\s+)?(?P<time>(?:tomorrow|today|\d{4}-\d{2}-\d{2})?\s*(?:at\s+)?\d{1,2}(?:[:.h]\d{2})?\s*(?:am|pm)?"
    r"(?:\s+(?:tomorrow|today))?|in\s+" + _SPAN + r")"
)
_PLEASE = r"(?:please\s+|can you\s+|could you\s+|hãy\s+)?"
# Words that name a tool, the most particular first. The groups are arguments.
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tool, re.compile(_PLEASE + words + r"[\s.!]*", re.I | re.S))
    for tool, words in (
        (
            "remind_at",
            rf"(?:remind me|nhắc tôi|nhắc mình)\s+{_TIME}\s*(?:,|to|that|about|:)?\s+(?P<text>.+?)",
        ),
        ("remind_at", rf"(?:remind me|nhắc tôi|nhắc mình)\s+(?:to|that|about)?\s*(?P<text>.+?)\s+{_TIME}"),
        ("wait_until", rf"(?:wait|chờ)(?:\s+until|\s+for|\s+đến)?\s+{_TIME}"),
        ("wait_until", rf"(?:wait|chờ)(?:\s+for)?\s+(?P<time>{_SPAN})"),
        ("search_wiki", r"(?:search|look in) (?:the )?wiki (?:for|about)\s+(?P<query>.+?)"),
        ("ask_wiki", r"(?:ask|check with|hỏi) (?:the )?wiki(?: about)?\s*[:,]?\s+(?P<question>.+?)"),
        (
            "search_code",
            r"search (?:the )?(?:code|project|source)(?: of (?P<project>\S+))? for\s+(?P<query>.+?)",
        ),
        (
            "callers_of",
            r"(?:find |list |show )?(?:all |the )?callers of\s+(?P<name>[\w.]+)(?: in (?P<project>\S+?))?",
        ),
        (
            "callers_of",
            r"(?:find (?:out )?)?(?:who|what) calls\s+(?P<name>[\w.]+)(?: in (?P<project>\S+?))?[?]?",
        ),
        ("read_file", r"(?:read|show|open) (?:the )?file\s+(?P<path>[^\s]+?)(?: in (?P<project>\S+?))?"),
        # Reading does no harm: a question to find out something goes to the wiki, unless it is about a file.
        ("search_wiki", r"look up\s+(?P<query>[^.;]{1,60}?) in the wiki"),
        (
            "ask_wiki",
            r"(?:find out|learn|look up|tell me|check)\s+(?P<question>(?:who|what|when|where|which|why|how)\b"
            r"(?![^;]*[\w-][./]\w)(?:(?! and )[^;])+?)(?: and (?:tell me|let me know))?",
        ),
        ("http_get", r"(?:fetch|get|download|load)\s+(?P<url>https?://\S+?)"),
        ("notify", r"(?:notify me|tell me|let me know)\s*(?:that\s*:?|:)\s+(?P<text>.+?)"),
        ("remember", r"remember\s*(?:that\s*:?|:)\s+(?P<text>.+?)"),
        ("add_task", r"add (?:a |the )?task\s*(?:to|:)?\s+(?P<title>.+?)"),
    )
)


class PlannedItem(Struct, frozen=True, kw_only=True):
    """An item to make: a call, a question to the owner (``asks``), or else a question to the model."""

    title: str
    tool: dict[str, Any] | None = None
    asks: bool = False


def items_of_lines(lines: Sequence[str], tools: Toolbox) -> list[PlannedItem]:
    """One item a line: ``tool: argument | argument``, ``tool: {json}``, ``ask: …``, ``think: …``, or words.

    Raises InvalidRequestError that names the line.
    """
    if not 1 <= len(lines) <= MAX_ITEMS:
        raise InvalidRequestError(f"a checklist has 1 to {MAX_ITEMS} steps, not {len(lines)}", param="steps")
    found: list[PlannedItem] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match and match[1] == "ask":
            found.append(PlannedItem(title=match[2][:MAX_TITLE], asks=True))
        elif match and match[1] == "think":
            found.append(PlannedItem(title=match[2][:MAX_TITLE]))
        elif match and ("." in match[1] or tools.find(match[1])):
            found.append(_call(tools.get(match[1]), _given(tools.get(match[1]), match[2])))
        elif words := item_of_words(line, tools):
            found.append(words)
        else:
            there = ", ".join([*tools.names, "ask", "think"])
            raise InvalidRequestError(
                f"the step {line[:100]!r} names no tool; write `TOOL: ARGUMENT` with one of: {there}",
                param="steps",
            )
    return found


def named_tools(lines: Sequence[str]) -> list[str]:
    """The tools that lines name."""
    return [match[1] for line in lines if (match := _LINE.fullmatch(line))]


def items_of_words(title: str, tools: Toolbox) -> list[PlannedItem]:
    """The items of a title whose every part plainly names a tool; none if a part does not.

    Raises InvalidRequestError when an argument is wrong, such as a date that is past.
    """
    parts = [part for part in _PARTS.split(title) if part.strip()]
    items = [item_of_words(part, tools) for part in parts]
    found = [item for item in items if item is not None]
    return found if len(found) == len(items) <= MAX_ITEMS else []


def item_of_words(text: str, tools: Toolbox) -> PlannedItem | None:
    """The call that a text plainly asks for."""
    for name, words in _WORDS:
        tool, match = tools.find(name), words.fullmatch(text.strip())
        if tool is not None and match is not None:
            return _call(tool, {key: value.strip() for key, value in match.groupdict().items() if value})
    return None


class _Proposed(Struct, frozen=True):
    tool: str = ""
    arguments: dict[str, Any] = {}
    question: str = ""


def model_schema(tools: Toolbox, title: str) -> dict[str, Any]:
    """What the model may write: 2 to 12 items, each a call of a tool that fits the title, or a question to itself."""
    question = {
        "type": "object",
        "required": ["question"],
        "additionalProperties": False,
        "properties": {"question": {"type": "string", "minLength": 3, "maxLength": 200}},
    }
    return {
        "type": "array",
        "minItems": _MIN_BY_MODEL,
        "maxItems": MAX_ITEMS,
        "items": {"anyOf": [*tools.item_schemas(title), question]},
    }


def items_of_model(written: str, title: str, tools: Toolbox) -> list[PlannedItem]:
    """The model's checklist. Raises InvalidRequestError that says why it is not usable.

    Models invent. So no item may repeat another one, each has to be about the task, half of a call's words are
    the task's, and a tool that is ``exact`` gets only what the task says, word for word.
    """
    try:
        proposed = msgspec.json.decode(written, type=list[_Proposed])
    except msgspec.DecodeError:
        raise InvalidRequestError("it could not be read") from None
    if not _MIN_BY_MODEL <= len(proposed) <= MAX_ITEMS:
        raise InvalidRequestError(f"it has {len(proposed)} steps")
    items: list[PlannedItem] = []
    about, words = content(title), _folded(title)
    for number, each in enumerate(proposed, 1):
        tool = tools.get(each.tool) if each.tool else None
        given = [str(value) for value in each.arguments.values()]
        if tool is not None and tool.exact and any(_folded(value) not in words for value in given):
            raise InvalidRequestError(f"the task does not say what step {number} does")
        bare = _RESULT.sub("", " ".join([each.question, *given])).strip()
        if not bare and tool is not None and number > 1:
            items.append(_call(tool, each.arguments))  # passes a result on
            continue
        said = content(bare)
        if not said & about or (tool is not None and len(said & about) * 2 < len(said)):
            raise InvalidRequestError(f"step {number} is not about the task")
        item = _call(tool, each.arguments) if tool else PlannedItem(title=each.question[:MAX_TITLE])
        if item in items:
            raise InvalidRequestError(f"step {number} repeats another one")
        items.append(item)
    return items


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _given(tool: RunTool, text: str) -> dict[str, Any]:
    """The arguments in a line: a JSON object, or texts in order with ``|`` between them."""
    if text.startswith("{") and not text.startswith("{{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InvalidRequestError(
                f"`{tool.name}`: its arguments are no JSON: {error}", param="steps"
            ) from None
    names = tool.arguments.__struct_encode_fields__
    return dict(zip(names, (part.strip() for part in text.split("|", len(names) - 1)), strict=False))


def _call(tool: RunTool, given: dict[str, Any]) -> PlannedItem:
    arguments = tool.prepared(given)
    tool.checked(arguments)
    title = f"{tool.name}: {' | '.join(map(str, arguments.values()))}"
    return PlannedItem(title=title[:MAX_TITLE], tool={"name": tool.name, "arguments": arguments})
