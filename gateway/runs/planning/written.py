"""Checklists by the model: a pick for each part that no rule knows, or a list of its own where it says so.

A pick is a line that code wrote. A list of the model's own is written under a schema of the tools' arguments and then
checked: what the task does not name is not there, and what is kept or listed has only the task's words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.memory.learning.entailment import content
from gateway.runs.planning.beyond import KEPT, LISTED, beyond_steps
from gateway.runs.planning.checklist import items_of_lines
from gateway.runs.planning.items import MAX_ITEMS, MAX_TITLE, RESULT, PlannedItem, item_of_call, times_in
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.wordings import URL
from gateway.runs.planning.words import options, parts_of
from gateway.runs.tool import Toolbox

_NOTHING = "nothing"  # the pick of a model that finds no step
_SEVERAL = "several steps"
_MOST_WRITTEN = 200  # characters of a text: longer ones make large grammars
_WORD = re.compile(r"[\w./@:-]*\w")
_NAME = re.compile(r".*[\d/@:]|.*\w\.\w|.+[A-Z]|[A-Z]")
_Exact = dict[str, list[str]]
# Writes with a prompt of that name, its values and a schema.
Write = Callable[[str, dict[str, str], dict[str, Any]], Awaitable[str]]


class _Step(Struct, frozen=True, forbid_unknown_fields=True):
    tool: str = ""
    arguments: dict[str, str] = {}
    think: str = ""
    ask: str = ""


async def items_by_model(
    title: str, tools: Toolbox, known: NamedThings, write: Write, *, asks: bool
) -> list[PlannedItem]:
    """The items of a title; with ``asks`` they may be questions to the owner. Raises InvalidRequestError."""
    items: list[PlannedItem] = []
    parts = parts_of(title, tools, known)
    for part in parts:
        if part.items:
            items += part.items
            continue
        try:
            items += await _of_part(part.text, tools, known, write, asks=asks, before=len(items))
        except InvalidRequestError as error:
            others = [f"`{_line(item)}`" for other in parts for item in other.items]
            rest = f". For the rest there are {', '.join(others)}" if others else ""
            raise InvalidRequestError(f"{error.message.rstrip('.')}{rest}") from None
    if len(items) > MAX_ITEMS:
        raise InvalidRequestError(f"The model's list has {len(items)} steps, and {MAX_ITEMS} are possible")
    return items


async def _of_part(
    text: str, tools: Toolbox, known: NamedThings, write: Write, *, asks: bool, before: int
) -> list[PlannedItem]:
    """The items of a part that no rule knows, after ``before`` others. Raises InvalidRequestError."""
    if reason := beyond_steps(text, tools, known):
        raise InvalidRequestError(reason)
    lines = [line for line in options(text, tools, known) if _is_step(line, tools)]
    picks = {"enum": [*lines, _SEVERAL, _NOTHING]}
    written = await write("checklist", {"asked": text}, picks) if lines else ""
    picked = _decoded(written, str)
    if picked == _SEVERAL:
        exact = _exact(text, tools, known)
        values = {"tools": _described(tools, exact), "asked": text, "result": "{{3}}"}
        written = await write("steps", values, _schema(tools, exact, asks=asks))
        return _checked(_decoded(written, list[_Step]) or [], text, tools, exact, before)
    if picked not in lines:
        raise InvalidRequestError(f"No tool is known for {text!r}")
    return items_of_lines([picked], tools)


def _line(item: PlannedItem) -> str:
    return item.title if item.tool else f"think: {item.title}"


def _is_step(line: str, tools: Toolbox) -> bool:
    try:
        return bool(items_of_lines([line], tools))
    except InvalidRequestError:  # such as a question of one letter
        return False


def _decoded(written: str, kind: Any) -> Any:
    """None if it was cut off, or comes from a server that does not follow schemas."""
    try:
        return msgspec.json.decode(written, type=kind)
    except msgspec.DecodeError:
        return None


def _exact(text: str, tools: Toolbox, known: NamedThings) -> _Exact:
    """The arguments that are nobody's to make up, each with what the text has for it."""
    files, names = (
        [place.partition(" | ") for place in each.values()] for each in (known.files, known.names)
    )
    projects = [*known.projects.values(), *(project for _, _, project in (*files, *names) if project)]
    return {
        "path": [path for path, _, _ in files],
        "name": [name for name, _, _ in names],
        "project": list(dict.fromkeys(projects)),
        "time": times_in(text, tools),
        "url": URL.findall(text),
        "key": [],
        "day": [],
    }


def _arguments(tools: Toolbox, exact: _Exact) -> dict[str, dict[str, Any]]:
    """The schemas of the arguments, by tool; tools with an argument that the text does not have are left out."""
    found = {}
    for name in tools.names:
        schema = tools.get(name).schema
        lacking = {each for each in schema["properties"] if not exact.get(each, True)}
        if not lacking & set(schema.get("required", ())):
            found[name] = {
                each: {"enum": exact[each]}
                if each in exact
                else {"type": "string", "minLength": 1, "maxLength": _MOST_WRITTEN}
                for each in schema["properties"]
                if each not in lacking
            }
    return found


def _described(tools: Toolbox, exact: _Exact) -> str:
    return "\n".join(
        f"{name}({', '.join(given)}): {tools.get(name).description}"
        for name, given in _arguments(tools, exact).items()
    )


def _schema(tools: Toolbox, exact: _Exact, *, asks: bool) -> dict[str, Any]:
    def fields(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "required": list(properties),
            "additionalProperties": False,
            "properties": properties,
        }

    text = {"type": "string", "minLength": 3, "maxLength": _MOST_WRITTEN}
    calls = [
        fields(tool={"const": name}, arguments=fields(**given))
        for name, given in _arguments(tools, exact).items()
    ]
    questions = [fields(think=text), *([fields(ask=text)] if asks else [])]
    return {"type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": {"anyOf": [*calls, *questions]}}


def _checked(steps: list[_Step], text: str, tools: Toolbox, exact: _Exact, before: int) -> list[PlannedItem]:
    """The items of a list that follow from the text, after ``before`` others. Raises InvalidRequestError."""
    items: list[PlannedItem] = []
    for number, step in enumerate(steps, 1):
        problem = _problem(step, number, text, tools, exact)
        if not problem:
            item = _item(step, tools, before)
            problem = "repeats another one" if item in items else ""
            items.append(item)
        if problem:
            raise InvalidRequestError(f"No step is known for {text!r}: the model's step {number} {problem}")
    if not items:
        raise InvalidRequestError(f"The model wrote no steps for {text!r}")
    return items


def _problem(step: _Step, number: int, text: str, tools: Toolbox, exact: _Exact) -> str:
    """Why a step is not one of the text; "" if it is."""
    if [bool(each) for each in (step.tool, step.think, step.ask)].count(True) != 1:
        return "is neither a call nor a question"
    tool = tools.get(step.tool) if step.tool else None
    for name, value in step.arguments.items():
        if name in exact and value not in exact[name]:
            return f"has a `{name}` that the task does not name: {value!r}"
    if step.tool == "add_task" and not LISTED.search(text):
        return "adds a task, which the task does not ask for"
    if step.tool == "remember" and not KEPT.search(text):
        return "remembers something, which the task does not ask for"
    free = " ".join(value for name, value in step.arguments.items() if name not in exact)
    said = f"{free}{step.think}{step.ask}"
    results = [int(match) for match in RESULT.findall(said)]
    if any(not 1 <= result < number for result in results):
        return "uses a result that is not there yet"
    bare = RESULT.sub(" ", said)
    spoken = {word.casefold() for word in _WORD.findall(text)}
    starts = re.findall(rf"(?:^|[.?!]\s+)({_WORD.pattern})", bare.strip())
    invented = [
        word
        for word in _WORD.findall(bare)
        if _NAME.match(word) and word.casefold() not in spoken and not (word in starts and word.isalpha())
    ]
    if invented:
        return f"names what the task does not: {invented[0]!r}"
    words, about = content(bare), content(text)
    most_new = 0 if tool is not None and "effect" in tool.risks else len(words) / 2
    follows = bool(words & about) or (not words and bool(results)) or (bool(step.think) and number > 1)
    if not follows or (not step.think and len(words - about) > most_new):
        return "is not about the task"
    return ""


def _item(step: _Step, tools: Toolbox, before: int) -> PlannedItem:
    """The item, whose results are those after ``before`` others."""

    def moved(value: str) -> str:
        return RESULT.sub(lambda match: f"{{{{{int(match[1]) + before}}}}}", value)

    if not step.tool:
        return PlannedItem(title=moved(step.think or step.ask)[:MAX_TITLE], asks=bool(step.ask))
    return item_of_call(tools.get(step.tool), {name: moved(value) for name, value in step.arguments.items()})
