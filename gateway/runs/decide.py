"""Decide a run's next action. Pure: a function of the stored run, the tools and the settings.

Code decides what is safe, never a model: a step that would bring together all three risks in one run, or has an effect
in a task of the archetype `hybrid`, waits for the owner's approval. Approvals bind to the step's hash.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.items import RESULT, line_of
from gateway.runs.reading import NO_ANSWER
from gateway.runs.tool import Risk, RunTool, Toolbox
from gateway.store.memory.approvals import ANY, Pattern
from gateway.store.memory.runs import BreakpointKind, Intent, NewBreakpoint, RunStep, RunView
from gateway.store.memory.tasks import Task

TEXT = {"type": "string", "minLength": 1, "maxLength": 4000}
STEPS = {"type": "array", "minItems": 1, "maxItems": 12, "items": {"type": "string", "minLength": 1}}
YES_OR_STEPS = {"anyOf": [{"enum": ["yes", "cancel"]}, STEPS]}
STEPS_OR_CANCEL = {"anyOf": [{"enum": ["cancel"]}, STEPS]}
_ALL_RISKS = 3
_RISKS: dict[Risk, str] = {
    "untrusted": "reads text of others",
    "private": "reads your data",
    "effect": "has an effect",
}


class Plan(Struct, frozen=True):
    """The model is to pick the steps."""


class Execute(Struct, frozen=True, kw_only=True):
    """Carry out ``intent``; ``again`` is the step of an earlier process that began it, and may be repeated."""

    intent: Intent
    again: RunStep | None = None


class Ask(Struct, frozen=True):
    """Stop at a BREAKPOINT."""

    breakpoint: NewBreakpoint


class Finish(Struct, frozen=True):
    """All items are done or cancelled."""

    result: str


Move = Plan | Execute | Ask | Finish


def decide(view: RunView, tools: Toolbox) -> Move:
    """The next move of a run that is in the state `running`."""
    run, pending = view.run, next((step for step in view.steps if step.outcome is None), None)
    if pending is not None:
        tool = tools.find(pending.tool)
        if pending.tool and (tool is None or not tool.repeatable):
            called = call_text(pending.tool, pending.arguments)
            question = f"The program ended while this was done: {called}. Did it happen?"
            return Ask(asked("happened", question, ["yes", "no"], item=pending.item))
        intent = Intent(item=pending.item, tool=pending.tool, arguments=pending.arguments, hash=pending.hash)
        return Execute(intent=intent, again=pending)
    if not view.items:
        return Plan()
    if run.planned == "model" and not _answered(view, "confirm", "", "yes"):
        lines = "\n".join(map(line_of, view.items))
        question = (
            f"This is what the model makes of it:\n{lines}\nIs this right? Or write other steps, one a line."
        )
        return Ask(NewBreakpoint(item=None, kind="confirm", question=question, schema=YES_OR_STEPS))
    item = next((each for each in view.items if each.state not in ("done", "cancelled")), None)
    if item is None:
        return Finish(
            next((step.result or "" for step in reversed(view.steps) if step.outcome == "done"), "")
        )
    if item.breakpoint and not _answered(view, "question", item.id):
        return Ask(
            NewBreakpoint(item=item.id, kind="question", question=item.question or item.title, schema=TEXT)
        )
    return _over_limit(view) or _step(view, item, tools)


def _step(view: RunView, item: Task, tools: Toolbox) -> Move:
    tool: RunTool | None = None
    try:
        arguments = _filled(view, item, tools)
        if item.tool is not None:
            tool = tools.get(str(item.tool.get("name")))
            tool.checked(arguments)
    except InvalidRequestError as error:
        question = f"The step {item.title!r} cannot be carried out: {error.message}. Change it and retry?"
        return Ask(asked("failed", question, ["retry", "skip", "cancel"], item=item.id))
    if tool is None:
        arguments = {"question": item.title}
    digest = tool.digest(arguments) if tool else f"think {item.title}"
    intent = Intent(item=item.id, tool=tool.name if tool else "", arguments=arguments, hash=digest)
    called = call_text(intent.tool, arguments)
    before = [step for step in view.steps if step.item != item.id and step.outcome == "done"]
    repeats = any(step.hash == digest for step in before)
    if repeats and not _answered(view, "repeat", item.id, "yes", digest):
        question = f"This step was done already in this run: {called}. Do it again?"
        return Ask(asked("repeat", question, ["yes", "skip", "cancel"], item=item.id, digest=digest))
    why = _reason(view, tool, tools) if tool else ""
    if tool and why and not _approved(view, item, tool, arguments, digest):
        pattern = _pattern(item, tool)
        like = call_text(tool.name, pattern.arguments)
        question = f"May this be done: {called}? {why} `always` approves every call like {like}."
        asks = asked("approval", question, ["yes", "always", "skip", "cancel"], item=item.id, digest=digest)
        return Ask(msgspec.structs.replace(asks, pattern=msgspec.to_builtins(pattern)))
    return Execute(intent=intent)


def _approved(view: RunView, item: Task, tool: RunTool, arguments: dict[str, Any], digest: str) -> bool:
    once = _answered(view, "approval", item.id, "yes", digest)
    return once or any(each.calls.matches(tool.name, tool.described, arguments) for each in view.approvals)


def _pattern(item: Task, tool: RunTool) -> Pattern:
    """The calls of an item as it is written: any text in the places of results."""
    given: dict[str, Any] = (item.tool or {}).get("arguments", {})
    texts = {name: RESULT.sub(ANY, value) for name, value in given.items() if isinstance(value, str)}
    return Pattern(tool=tool.name, version=tool.described, arguments=given | texts)


def _reason(view: RunView, tool: RunTool, tools: Toolbox) -> str:
    """Why the owner has to approve a call; "" if they need not."""
    before: set[Risk] = set()
    for step in view.steps:
        used = tools.find(step.tool)
        before |= used.risks if used else frozenset()
    if tool.risks and len(before | tool.risks) == _ALL_RISKS:
        earlier = " and ".join(_RISKS[risk] for risk in _RISKS if risk in before - tool.risks)
        own = " and ".join(_RISKS[risk] for risk in _RISKS if risk in tool.risks)
        return f"It {own}, in a run that {earlier}." if earlier else f"It {own}."
    if "effect" in tool.risks and view.task.archetype == "hybrid":
        return "It has an effect."
    return ""


def _over_limit(view: RunView) -> Ask | None:
    run, done = view.run, sum(step.outcome is not None for step in view.steps)
    spent = [
        f"{text} of {most:g} {unit}"
        for value, text, most, unit in (
            (done, f"{done}", run.max_steps, "steps"),
            (run.tokens, f"{run.tokens}", run.max_tokens, "tokens"),
            (run.seconds, f"{run.seconds:.0f}", run.max_seconds, "seconds"),
        )
        if value >= most
    ]
    if not spent:
        return None
    question = f"The run has used {' and '.join(spent)}. Go on with as much again?"
    return Ask(asked("limit", question, ["yes", "cancel"]))


def _filled(view: RunView, item: Task, tools: Toolbox) -> dict[str, Any]:
    """An item's arguments, with results in the places of `{{n}}`. Raises InvalidRequestError.

    A step may report that an earlier one found nothing, but must not store that as a result.
    """
    numbers = {each.id: number for number, each in enumerate(view.items, 1)}
    steps = {numbers.get(step.item): step for step in view.steps if step.outcome != "failed"}
    tool = tools.find(str(item.tool.get("name"))) if item.tool is not None else None

    def result(match: re.Match[str]) -> str:
        number = int(match[1])
        if (step := steps.get(number)) is None:
            raise InvalidRequestError(f"step {number} has no result for {match[0]}", param="steps")
        found, source = step.result or "", tools.find(step.tool)
        is_nothing = (source and source.nothing == found) if step.tool else found.startswith(NO_ANSWER)
        if tool and "effect" in tool.risks and found and is_nothing:
            reason = found.partition("\n")[0].partition(". ")[0].rstrip(".")
            raise InvalidRequestError(f"step {number} found nothing: {reason}", param="steps")
        return found

    given: dict[str, Any] = (item.tool or {}).get("arguments", {})
    return {
        name: RESULT.sub(result, value) if isinstance(value, str) else value for name, value in given.items()
    }


def _answered(view: RunView, kind: BreakpointKind, item: str, value: str = "", digest: str = "") -> bool:
    """Whether the owner has answered such a BREAKPOINT, with ``value`` unless that is "", for that hash."""
    return any(
        each.answer is not None
        and (each.kind, each.item or "", each.hash) == (kind, item, digest)
        and (not value or each.answer["value"] == value)
        for each in view.breakpoints
    )


def asked(
    kind: BreakpointKind, question: str, choices: list[str], *, item: str | None = None, digest: str = ""
) -> NewBreakpoint:
    """A BREAKPOINT that is answered with one of ``choices``."""
    return NewBreakpoint(item=item, kind=kind, question=question, schema={"enum": choices}, hash=digest)


def call_text(tool: str, arguments: dict[str, Any]) -> str:
    """A call for people: every argument in full."""
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{tool or 'think'}({given})"
