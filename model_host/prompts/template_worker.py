"""Renders chat templates in a separate process: a template comes with the model file and is not trusted.

Jinja2's immutable sandbox keeps a template away from Python, but lets it loop forever or build a gigabyte of text. The
operating system prevents that: this process has an address-space limit, and its parent kills it when an answer takes
too long. One JSON object per line: ``{"template", "messages", …}`` in, ``{"text"}`` or ``{"error"}`` out.
"""

from __future__ import annotations

import datetime
import json
import resource
import sys
from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from model_host.prompts.placeholders import ESCAPED, OPEN

MEMORY_LIMIT_BYTES = 512 * 1024 * 1024
OUTPUT_LIMIT_CHARS = 4 * 1024 * 1024


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(str(message)[:500])


def _strftime_now(format_: str) -> str:
    return datetime.datetime.now().astimezone().strftime(format_)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Hugging Face's templates expect it (`json.dumps`, not HTML-safe), with its placeholders marked."""
    text = json.dumps(
        value,
        ensure_ascii=False,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=list,  # of a filter's generator
    )
    return text.replace(OPEN, ESCAPED + OPEN)


class _Generation(Extension):
    """The block ``{% generation %}``, which marks the model's own text for training: its content."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """Templates may change lists, as Kimi's do: all of them are of this rendering alone."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        of_list = type(obj) is list and attr in ("append", "pop")
        return of_list or super().is_safe_attribute(obj, attr, value)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


@lru_cache(maxsize=2)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


def render(request: dict[str, Any]) -> dict[str, str]:
    """Render once; return ``{"text": …}``, or ``{"error": …}`` with the message of the template or of Jinja2."""
    try:
        text = _compiled(request.pop("template")).render({"datetime": _strftime_now("%b %d %Y")} | request)
    except MemoryError:
        return {"error": "the template needs too much memory"}
    except RecursionError:
        return {"error": "the template is nested too deeply"}
    except Exception as error:  # a hostile template can make Jinja2 raise anything
        return {"error": f"{type(error).__name__}: {error}"[:1000]}
    if len(text) > OUTPUT_LIMIT_CHARS:
        return {
            "error": f"the template produced {len(text)} characters, over the limit of {OUTPUT_LIMIT_CHARS}"
        }
    return {"text": text}


def main() -> None:
    """Serve renderings until stdin closes."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    for line in sys.stdin.buffer:
        answer = render(msgspec.json.decode(line))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
