"""Rules over several fields of a request, which the types of :mod:`model_host.protocol` cannot express.

Each function returns what is wrong, in words, or None.
"""

from __future__ import annotations

from model_host.protocol.generation import Count, Generate
from model_host.protocol.vectors import Embed


def check_generate(request: Generate) -> str | None:
    """One source of the prompt, one thing at most that shapes the output, tools that fit together."""
    if (request.messages is None) == (request.prompt is None):
        return "exactly one of `messages` and `prompt` is needed"
    if request.grammar is not None and request.json_schema is not None:
        return "`grammar` and `json_schema` exclude each other"
    if request.tools and request.messages is None:
        return "`tools` need `messages`"
    return _check_tools(request)


def check_count(request: Count) -> str | None:
    """Texts or messages, and tools with messages only."""
    if (request.messages is None) == (request.texts is None):
        return "exactly one of `messages` and `texts` is needed"
    if request.tools and request.messages is None:
        return "`tools` need `messages`"
    return None


def check_embed(request: Embed) -> str | None:
    """Something to embed, of one kind."""
    if bool(request.texts) == bool(request.tokens):
        return "exactly one of `texts` and `tokens` is needed, and not empty"
    return None


def _check_tools(request: Generate) -> str | None:
    names = [tool.name for tool in request.tools]
    if len(set(names)) < len(names):
        return f"`tools` has two tools of one name: {next(name for name in names if names.count(name) > 1)}"
    for tool in request.tools:
        if tool.parameters.get("type", "object") != "object":
            return f"the `parameters` of the tool {tool.name} must be a schema of an object"
    kind, _, wanted = request.tool_choice.partition(":")
    if wanted and wanted not in names:
        return f"`tool_choice` names the tool {wanted!r}, which is not in `tools`"
    if kind != "none" and names and (request.grammar is not None or request.json_schema is not None):
        return "`tools` exclude `grammar` and `json_schema`, unless `tool_choice` is none"
    if kind == "required" and not names:
        return "`tool_choice` required needs `tools`"
    return None
