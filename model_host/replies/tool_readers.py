"""Reads one tool call from text that comes in pieces, and turns its arguments into JSON on the way. Pure.

Arguments are forwarded before the end of the call is known; the whole is checked when it is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from model_host.replies.markers import Markers
from model_host.replies.text import overlap
from model_host.replies.tool_forms import ToolForm

MAX_NESTING = 64
_MAX_HEAD = 1000  # characters before the arguments, where the name comes first
_MAX_KEY = 1000
_MAX_SCALAR = 40
_SCALAR = re.compile(r"[^\s,:\[\]{}]+")
_GEMMA_HEAD = re.compile(r"\s*call:\s*([A-Za-z0-9_.-]{1,64})\s*\{")

# A parser that pauses where it needs more text, which is then in its reader's buffer.
Parser = Iterator[None]


class MalformedCallError(ValueError):
    """The model wrote something that is not a tool call."""


class CallReader:
    """Reads the text between a call's opening marker and the end of its closing marker."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Collection[str]) -> None:
        self.name: str | None = None
        self.done = False
        self.rest = ""  # unread text; once ``done``, the text after the call
        self._form = form
        self._markers = markers
        self._tools = tools
        self._quote = markers.sign(form.quote)
        self._arguments: list[str] = []
        self._complete = False  # but for what closes the call
        self._parser = self._json_call() if form.kind == "json" else self._gemma_call()

    def push(self, text: str) -> str:
        """Read more text; return more of the arguments' JSON.

        Raises MalformedCallError; if :attr:`name` is still None, the text is not a call at all.
        """
        self.rest += text
        before = len(self._arguments)
        next(self._parser, None)
        return "".join(self._arguments[before:])

    def end(self) -> None:
        """End the reply. Raises MalformedCallError unless nothing but the closing marker is missing."""
        if not self._complete or self.rest.strip():
            raise MalformedCallError("the reply ended within it")

    # ------------------------------------------------------------------ the call

    def _json_call(self) -> Parser:
        """``{"name": NAME, KEY: {…}}``. Arguments are forwarded as they come if the name stands before them."""
        yield from self._next_character()
        if self.rest[0] != "{":
            raise MalformedCallError("it does not begin with {")
        key = re.escape(self._form.key)
        head = re.compile(rf'\s*\{{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"{key}"\s*:\s*(?=\{{)')
        whole, call = _JsonObject(self._markers), ""
        while True:
            call += self._part_of(whole)
            match = head.match(call[:_MAX_HEAD])
            if match is not None or whole.done:
                break
            yield
        if match is None:
            self._take_call(call)
        else:
            self._take_name(_decoded(match[1], str, "its name is not valid JSON"))
            # What was read ahead is read again as arguments; repairing it twice changes nothing.
            self.rest = call[match.end() :] + self.rest
            arguments = _JsonObject(self._markers)
            self._emit(self._part_of(arguments))
            while not arguments.done:
                yield
                self._emit(self._part_of(arguments))
        self._check()
        if match is not None:
            yield from self._next_character()
            if self.rest[0] != "}":
                raise MalformedCallError(f"{self._shown()} behind its arguments")
            self.rest = self.rest[1:]
        yield from self._closing_marker()

    def _gemma_call(self) -> Parser:
        """``call:NAME{…}``."""
        while not (match := _GEMMA_HEAD.match(self.rest)):
            if "{" in self.rest or len(self.rest) > _MAX_HEAD:
                raise MalformedCallError("it does not begin with call:NAME{")
            yield
        self._take_name(match[1])
        self.rest = self.rest[match.end() :]
        self._emit("{")
        yield from self._gemma_members("}", 1)
        self._check()
        yield from self._closing_marker()

    def _closing_marker(self) -> Parser:
        close = self._markers.sign(self._form.close)
        while not self._strip().startswith(close):
            if not close.startswith(self.rest):
                raise MalformedCallError(f"{self._shown()} instead of {self._form.close}")
            yield
        self.rest = self.rest[len(close) :]
        self.done = True

    def _take_name(self, name: str) -> None:
        if name not in self._tools:
            raise MalformedCallError(f"no tool is named {name[:64]!r}")
        self.name = name

    def _take_call(self, text: str) -> None:
        """Take a complete JSON call, whose arguments came before its name."""
        call = _decoded(text, dict[str, Any], "it is not valid JSON")
        name, arguments = call.get("name"), call.get(self._form.key, {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise MalformedCallError("it has no name or no arguments")
        self._take_name(name)
        self._emit(json.dumps(arguments, ensure_ascii=False))

    def _check(self) -> None:
        """Check the arguments as a whole."""
        _decoded("".join(self._arguments), dict[str, Any], "its arguments are not a valid JSON object")
        self._complete = True

    # ------------------------------------------------------------------ Gemma's arguments

    def _gemma_members(self, close: str, depth: int) -> Parser:
        """The members of an object or a list after its opening bracket, and its closing bracket."""
        if depth > MAX_NESTING:
            raise MalformedCallError(f"arguments nested deeper than {MAX_NESTING} levels")
        yield from self._next_character()
        more = self.rest[0] != close
        while more:
            if close == "}":
                yield from self._gemma_key()
            yield from self._gemma_value(depth)
            yield from self._next_character()
            if more := self.rest[0] == ",":
                self._take(",")
        self._take(close)

    def _gemma_key(self) -> Parser:
        """A bare name or a string, and the colon."""
        yield from self._next_character()
        if self.rest.startswith(self._quote):
            yield from self._gemma_string()
            yield from self._next_character()
            self._take(":")
            return
        while ":" not in self.rest[: _MAX_KEY + 1]:
            if len(self.rest) > _MAX_KEY:
                raise MalformedCallError(f"a name of more than {_MAX_KEY} characters in the arguments")
            yield
        name, _, self.rest = self.rest.partition(":")
        name = name.rstrip()
        if not name or _SCALAR.fullmatch(name.replace(" ", "_")) is None:
            raise MalformedCallError(f"{self._markers.spelled(name)[:40]!r} as a name in the arguments")
        self._emit(json.dumps(self._markers.spelled(name), ensure_ascii=False) + ":")

    def _gemma_value(self, depth: int) -> Parser:
        yield from self._next_character()
        if self.rest.startswith(self._quote):
            yield from self._gemma_string()
        elif (bracket := self.rest[0]) in "{[":
            self._take(bracket)
            yield from self._gemma_members("}" if bracket == "{" else "]", depth + 1)
        else:
            yield from self._gemma_scalar()

    def _gemma_scalar(self) -> Parser:
        while (match := _SCALAR.match(self.rest)) and match[0] == self.rest and len(self.rest) <= _MAX_SCALAR:
            yield  # it may go on
        word = match[0] if match else ""
        self.rest = self.rest[len(word) :]
        value = "null" if word == "None" else word  # Gemma's templates print a null so
        shown = self._markers.spelled(word or self.rest[:1])
        problem = f"{shown[:40]!r} as a value in the arguments"
        if len(word) > _MAX_SCALAR or isinstance(_decoded(value, Any, problem), str):
            raise MalformedCallError(problem)
        self._emit(value)

    def _gemma_string(self) -> Parser:
        """Text between two quote markers."""
        self.rest = self.rest[len(self._quote) :]
        self._emit('"')
        while self._quote not in self.rest:
            sure = len(self.rest) - overlap(self.rest, self._quote)
            inside, self.rest = self.rest[:sure], self.rest[sure:]
            self._emit(self._escaped(inside))
            yield
        inside, _, self.rest = self.rest.partition(self._quote)
        self._emit(self._escaped(inside) + '"')

    # ------------------------------------------------------------------ characters

    def _strip(self) -> str:
        self.rest = self.rest.lstrip()
        return self.rest

    def _next_character(self) -> Parser:
        """Skip white space and wait for what follows it; for all of a quote marker that has begun."""
        while not self._strip() or (self.rest != self._quote and self._quote.startswith(self.rest)):
            yield

    def _take(self, character: str) -> None:
        if not self.rest.startswith(character):
            found = self._markers.spelled(self.rest[:1])
            raise MalformedCallError(f"{found!r} instead of {character!r} in the arguments")
        self.rest = self.rest[1:]
        self._emit(character)

    def _part_of(self, value: _JsonObject) -> str:
        """Let ``value`` read what there is; return its part of it."""
        made, used = value.push(self.rest)
        self.rest = self.rest[used:]
        return made

    def _emit(self, arguments: str) -> None:
        self._arguments.append(arguments)

    def _escaped(self, text: str) -> str:
        return json.dumps(self._markers.spelled(text), ensure_ascii=False)[1:-1]

    def _shown(self) -> str:
        return repr(self._markers.spelled(self.rest[:20]))


class _JsonObject:
    """The text of one JSON object: finds its end, and escapes the control characters that models leave in strings."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._depth = 0
        self._string = self._escaped = False
        self.done = False

    def push(self, text: str) -> tuple[str, int]:
        """The object's text in ``text``, and how many characters of it that took: all, until :attr:`done`."""
        made: list[str] = []
        for at, character in enumerate(text, 1):
            made.append(self._in_string(character) if self._string else self._outside(character))
            if self.done:
                return "".join(made), at
        return "".join(made), len(text)

    def _outside(self, character: str) -> str:
        if character == '"':
            self._string = True
        elif character in "{[":
            self._depth += 1
            if self._depth > MAX_NESTING:
                raise MalformedCallError(f"arguments nested deeper than {MAX_NESTING} levels")
        elif character in "}]":
            self._depth -= 1
            self.done = self._depth == 0
        elif not self._markers.hidden(character):
            raise MalformedCallError(f"{self._markers.spelled(character)} within the arguments")
        return character

    def _in_string(self, character: str) -> str:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            self._string = False
        elif character < " ":
            return json.dumps(character)[1:-1]  # mostly a line break
        return self._markers.spelled(character)


def _decoded(text: str, kind: Any, problem: str) -> Any:
    """The value of a JSON text. Raises MalformedCallError with ``problem`` if it is not of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise MalformedCallError(problem) from None
