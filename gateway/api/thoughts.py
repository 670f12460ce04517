"""Fields of requests about thoughts and other variables of the model's chat template."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gateway.api.parsing.fields import ThoughtFields, ignore, invalid
from gateway.api.services import Services
from gateway.models.gguf_header import chat_template
from model_host.protocol import RESERVED_VARIABLES, Variables

_TAG = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NAME = re.compile(r"(?<![.\w])[A-Za-z]\w*")
_END_OF_THOUGHT = re.compile(
    r"</(?:\w+:)?think>|\[/THINK\]|<\|END_THINKING\|>|<channel\|>|<\|channel\|>analysis"
)
# Names of upstream servers that pass the variables on to their template.
_PASSING = frozenset({"hearth", "llamacpp", "vllm"})


class Template(Struct, frozen=True):
    """Abilities of a chat template: names that it reads, and the markers of thoughts. ``names`` None: any name."""

    names: frozenset[str] | None
    thinks: bool

    def knows(self, name: str) -> bool:
        return self.names is None or name in self.names


@lru_cache(maxsize=4)
def _read(path: Path, changed_ns: int) -> Template:
    text = chat_template(path) or ""
    names = (name for tag in _TAG.findall(text) for name in _NAME.findall(_QUOTED.sub("''", tag)))
    return Template(frozenset(names), _END_OF_THOUGHT.search(text) is not None)


async def served_template(services: Services) -> Template:
    """The template of the chat model. Upstream servers do not show theirs; some programs take any variable for it."""
    if services.settings.upstream.urls:
        replicas = services.inference.health().replicas
        passing = any(replica.abilities.get("program") in _PASSING for replica in replicas)
        return Template(None, True) if passing else Template(frozenset(), False)
    path = services.model.path
    try:
        return await asyncio.to_thread(_read, path, path.stat().st_mtime_ns)
    except OSError:  # not downloaded yet
        return Template(frozenset(), False)


def thinks(body: Struct) -> bool:
    """Whether ``body`` asks for thoughts, so that they are shown."""
    thinking: dict[str, Any] = getattr(body, "thinking", None) or {}
    return thinking.get("type") in ("enabled", "adaptive") or bool(getattr(body, "think", None))


async def thought_settings(services: Services, body: Struct) -> dict[str, Any]:
    """The fields of GenerateCall for ``chat_template_kwargs``, ``think``, ``thinking`` and ``reasoning`` of ``body``.

    The reply's header names those that the template does not know. Raises InvalidRequestError.
    """
    sent: dict[str, Any] = {name: getattr(body, name, None) for name in ThoughtFields.__struct_fields__}
    sent["output_config.effort"] = getattr(body, "effort", None)  # Anthropic's
    if not any(sent.values()) and sent["think"] is None:
        return {}
    template = await served_template(services)
    variables: dict[str, Any] = {}
    for field, wanted in _wishes(sent):
        known = {name: value for name, value in wanted.items() if template.knows(name)}
        variables |= known
        asks = any(value is not False for value in wanted.values())
        if asks and not known and not (template.thinks and wanted.get("enable_thinking")):
            ignore(field)
    _check_variables(variables)
    thinking = dict(sent["thinking"] or {})
    budget = thinking.pop("budget_tokens", None)
    if budget is not None and not (isinstance(budget, int) and 0 <= budget <= 1_048_576):
        raise invalid("thinking.budget_tokens", "send a number of tokens")
    if budget is not None and (services.settings.upstream.urls or not template.thinks):
        ignore("thinking.budget_tokens")
    if thinking.keys() - {"type"}:
        ignore("thinking")
    return {"template_variables": variables, "thought_tokens": budget}


def _wishes(sent: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The variables that each field asks for; one that comes later wins."""
    wishes = []
    for field in ("reasoning_effort", "output_config.effort"):
        if effort := sent[field]:
            wishes.append((field, _effort(effort)))
    reasoning = sent["reasoning"] or {}
    if reasoning.keys() - {"effort", "enabled"}:
        ignore("reasoning")
    if effort := reasoning.get("effort"):
        wishes.append(("reasoning", _effort(effort)))
    if isinstance(reasoning.get("enabled"), bool):
        wishes.append(("reasoning", _switch(reasoning["enabled"])))
    if (think := sent["think"]) is not None:
        level = {"reasoning_effort": think} if isinstance(think, str) else {}
        wishes.append(("think", _switch(think not in (False, "none")) | level))
    if kind := (sent["thinking"] or {}).get("type"):
        if kind not in ("enabled", "adaptive", "disabled"):
            raise invalid("thinking.type", "send `enabled`, `adaptive` or `disabled`")
        wishes.append(("thinking", _switch(kind != "disabled")))
    given = sent["chat_template_kwargs"] or {}
    if reserved := RESERVED_VARIABLES.intersection(given):
        raise invalid(f"chat_template_kwargs.{min(reserved)}", "the request itself sets it")
    _check_variables(dict.fromkeys(given))  # the names, which the reply's header may have
    return wishes + [(f"chat_template_kwargs.{name}", {name: value}) for name, value in given.items()]


def _check_variables(variables: dict[str, Any]) -> None:
    """Raises InvalidRequestError for names and values that a template does not take."""
    try:
        msgspec.convert(variables, Variables)
    except msgspec.ValidationError:
        problem = "send at most 16 variables, whose values are truth values, numbers and texts of letters and digits"
        raise invalid("chat_template_kwargs", problem) from None


def _switch(on: bool) -> dict[str, Any]:
    """The names under which templates know it."""
    return {"enable_thinking": on, "thinking": on}


def _effort(effort: Any) -> dict[str, Any]:
    if not isinstance(effort, str) or not effort.isalpha() or len(effort) > 16:
        raise invalid("reasoning_effort", "send a word such as `low`, `medium` or `high`")
    return _switch(False) if effort == "none" else {"reasoning_effort": effort}
