"""The table of routes and fields in docs/api.md, from the types that validate.

python -m tests.gateway.api.fields_table     # writes it
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gateway.api.ollama.request import OllamaOptions
from gateway.api.parsing.fields import Body, unimplemented_fields
from gateway.server.app import ENDPOINTS

DOCUMENT = Path(__file__).parents[3] / "docs" / "api.md"
HEADING = "## All routes and fields\n"
# Whose routes these are, and the clients that the tests drive them with, beside plain HTTP.
_CLIENTS = {
    "/v1/chat/completions": "openai, litellm, langchain-openai, llm, pydantic-ai, openai-agents, `ai`",
    "/v1/chat/completions/input_tokens": "llama-server's tests",
    "/v1/completions": "openai, llama-server's tests",
    "/v1/responses": "openai, pydantic-ai, openai-agents",
    "/v1/responses/{id}": "openai",
    "/v1/responses/{id}/input_items": "openai",
    "/v1/embeddings": "openai, llama-server's tests",
    "/v1/models": "openai, llama-server's tests",
    "/v1/models/{id:path}": "openai",
    "/v1/moderations": "",
    "/v1/rerank": "llama-server's tests",
    "/v1/messages": "anthropic, litellm, langchain-anthropic, pydantic-ai",
    "/v1/messages/count_tokens": "anthropic",
    "/tokenize": "llama-server's tests",
    "/detokenize": "llama-server's tests",
    "/props": "llama-server's tests",
    "/slots": "llama-server's tests",
    "/api/version": "",
    "/api/tags": "ollama",
    "/api/ps": "ollama",
    "/api/show": "ollama",
    "/api/chat": "ollama, litellm, langchain-ollama",
    "/api/generate": "ollama, litellm",
    "/api/embed": "ollama",
    "/api/embeddings": "ollama",
    "/api/pull": "ollama",
    "/api/copy": "ollama",
    "/api/delete": "ollama",
}
_PLAIN = "HTTP"
_SHORT = {"/v1/chat/completions": "chat"}


def table() -> str:
    """The routes, then the fields of their bodies by name: where they are honoured, hints, or refused."""
    lines = [
        "| route or field | honoured | hint, without effect | refused, except | tested with |",
        "|---|---|---|---|---|",
    ]
    order = list(_CLIENTS)
    fields: dict[str, Field] = defaultdict(Field)
    for endpoint in sorted(
        (each for each in ENDPOINTS if each.path in _CLIENTS), key=lambda each: order.index(each.path)
    ):
        how = "yes | | " if endpoint.described else "| | always "
        clients = ", ".join(filter(None, (_PLAIN, _CLIENTS[endpoint.path])))
        lines.append(f"| `{endpoint.method} {endpoint.path.replace(':path', '')}` | {how}| {clients} |")
        counts = endpoint.path.endswith("_tokens")  # their bodies are those of what they count
        if isinstance(endpoint.body, type) and issubclass(endpoint.body, Body) and not counts:
            _add(fields, endpoint.body, _SHORT.get(endpoint.path, endpoint.path.removeprefix("/v1/")))
    return "\n".join([*lines, *(_row(name, fields[name]) for name in sorted(fields))]) + "\n"


class Field(Struct):
    """Of one field: the routes by how they treat it."""

    honoured: list[str] = []
    hints: dict[str, list[str]] = {}  # by the values that are hints
    refused: dict[str, list[str]] = {}  # by the values that are accepted


def _add(fields: dict[str, Field], kind: type[Body], route: str, place: str = "") -> None:
    for name in kind.__struct_encode_fields__:
        fields[place + name].honoured.append(route)
        if name == "options":
            _add(fields, OllamaOptions, route, "options.")
    for name, other in (kind.all_aliases() | kind.inherited("forms")).items():
        fields[name].honoured.append(f"{route} (`{other}`)" if other else route)
    for path, row in unimplemented_fields(kind):
        if row.hint:
            values = "" if row.hint is True else _values(row.hint)
            fields[place + path].hints.setdefault(values, []).append(route)
        if row.hint is not True:
            fields[place + path].refused.setdefault(_values(row.neutral) or "null", []).append(route)


def _row(name: str, field: Field) -> str:
    hints = "; ".join(
        ", ".join(routes) + (f": {values}" if values else "") for values, routes in field.hints.items()
    )
    refused = "; ".join(f"{', '.join(routes)}: {values}" for values, routes in field.refused.items())
    return f"| `{name}` | {', '.join(field.honoured)} | {hints} | {refused} | {_PLAIN} |"


def _values(values: list[Any]) -> str:
    texts = (msgspec.json.encode(value).decode() for value in values)
    return " ".join("`{}`".format(text.replace("|", r"\|")) for text in texts)


def written(document: str) -> str:
    """The document with the table of today under its heading, to the end."""
    before, heading, rest = document.partition(HEADING)
    intro = rest.split("\n| ", 1)[0]
    return f"{before}{heading}{intro}\n{table()}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
