"""A tool: one declaration that gives its text in prompts, its JSON schema, and the check of its arguments."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError

# A step may bring together: text that others wrote, data of the owner, an effect beyond the run.
Risk = Literal["untrusted", "private", "effect"]
_LEAST_REPEATED = 12  # characters: a shorter line may belong there twice
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")


class ToolOutput(Struct, frozen=True):
    """Result of a tool, and the model's tokens that it took."""

    text: str
    tokens: int = 0


class Calling(Struct, frozen=True, kw_only=True):
    """For whom a tool works. ``source`` names the effect: equal if the step is carried out again after a crash.

    ``request`` is the id of the step in the request log.
    """

    owner: str
    task: str
    source: str
    request: str


@dataclass(frozen=True)
class RunTool:
    """``call`` has a docstring that describes the tool to models; its name is the tool's.

    ``repeatable``: a second call with the same arguments changes nothing more, so it needs no question after a crash.
    ``prepared`` makes arguments independent of the moment at which they are used: "15:00" becomes a date. ``version``
    is the hash of an outside tool's own description and schema. ``recorded``: it writes the step's record itself.
    ``nothing`` is its result where it found nothing: that is no text to keep.
    """

    arguments: type[Struct]
    call: Callable[[Calling, Any], Awaitable[ToolOutput]]
    risks: frozenset[Risk] = frozenset()
    repeatable: bool = True
    prepared: Callable[[dict[str, Any]], dict[str, Any]] = dict
    version: str = ""
    recorded: bool = False
    nothing: str = ""

    @property
    def name(self) -> str:
        return self.call.__name__

    @property
    def description(self) -> str:
        return " ".join((inspect.getdoc(self.call) or "").split())

    @property
    def only_reads(self) -> bool:
        return bool(self.risks) and "effect" not in self.risks

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        [schema], parts = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        return (
            parts[self.arguments.__name__] | {"additionalProperties": False} if "$ref" in schema else schema
        )

    def checked(self, given: dict[str, Any]) -> Any:
        """The arguments. Raises InvalidRequestError that names the tool and the argument."""
        try:
            return msgspec.convert(given, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidRequestError(f"`{self.name}`: {error}", param="steps") from None

    def digest(self, given: dict[str, Any]) -> str:
        """Hash that an approval binds to: of the tool, its description and schema, and the exact arguments."""
        return hash_of([self.name, self.described, given])

    @property
    def described(self) -> str:
        """A hash that changes with the description or the schema."""
        return self.version or hash_of([self.description, self.schema])


def hash_of(value: object) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()


class ToolSource(Protocol):
    """A server with tools, which are called ``name.tool``; ``problem`` says why there are none."""

    tools: dict[str, RunTool]
    problem: str

    async def refresh(self) -> None:
        """List the tools, unless that was done just now."""


class Toolbox:
    """The tools that runs may use. Models see those that are built in; only steps of the user may name others."""

    def __init__(self, tools: Iterable[RunTool], sources: Mapping[str, ToolSource] | None = None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._sources = sources or {}

    async def ready(self, names: Iterable[str]) -> None:
        """List the tools of the servers whose tools are among ``names``."""
        wanted = {name.partition(".")[0] for name in names if "." in name}
        await asyncio.gather(*(each.refresh() for name, each in self._sources.items() if name in wanted))

    @property
    def names(self) -> Sequence[str]:
        return list(self._tools)

    def find(self, name: str) -> RunTool | None:
        source = self._sources.get(name.partition(".")[0])
        return self._tools.get(name) or (source.tools.get(name) if source is not None else None)

    def get(self, name: str) -> RunTool:
        """Raises InvalidRequestError that lists the tools."""
        found, source = self.find(name), self._sources.get(name.partition(".")[0])
        if found is None:
            there = source.problem if source is not None else ""
            there = there or f"there are: {', '.join([*self._tools, *(source.tools if source else ())])}"
            raise InvalidRequestError(f"there is no tool `{name[:100]}`; {there}", param="steps")
        return found


def as_data(text: str, most: int) -> str:
    """Text of a tool as data: no control characters, at most ``most`` characters, and it says what was cut."""
    clean = _CONTROL.sub(" ", text)
    if len(clean) <= most:
        return clean
    return f"{clean[:most]}\n[{len(clean) - most} of {len(clean)} characters left out]"


def without_repetition(text: str) -> str:
    """A small model's text without repeated sentences and the unfinished one at the end."""
    kept: list[str] = []
    said: set[str] = set()
    pieces = re.split(r"((?<=[.!?])\s+|\n+)", text.strip())
    repeats = False
    for sentence, gap in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        same = " ".join(sentence.casefold().split())
        if same in said and len(same) >= _LEAST_REPEATED:
            repeats = True
            continue
        if repeats and not gap and any(each.startswith(same) for each in said):
            continue  # cut off at the limit of tokens
        said.add(same)
        kept += [sentence, gap]
    return "".join(kept).strip()


def fenced(text: str) -> str:
    """Data within a prompt: a bar before each line, which no text inside can remove."""
    return "\n".join(f"| {line}" for line in text.split("\n"))
