"""Reads one tool call from text that comes in pieces, and turns its arguments into JSON on the way. Pure.

Arguments are forwarded before the end of the call is known; the whole is checked when it is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator
from typing import Any

import msgspec

from model_host.replies.markers import Markers, overlap
from model_host.replies.tool_forms import ToolForm

MAX_NESTING = 64
_MAX_HEAD = 1000  # characters before the arguments of a Gemma call
_MAX_KEY = 1000
_MAX_SCALAR = 40
_SCALAR = re.compile(r"[^\s,:\[\]{}]+")
_GEMMA_HEAD = re.compile(r"\s*call:\s*([A-Za-z0-9_.-]{1,64})\s*(?=\{)")
_STRING_PART = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)
_CONTROL = re.compile(r"[\0-\x1f]")  # models leave line breaks in strings

# A parser that pauses where it needs more text, which is then in its reader's buffer.
Parser = Generator[None, None, None]
TextParser = Generator[None, None, str]  # returns what it read


class MalformedCallError(ValueError):
    """The model wrote something that is not a tool call."""


class CallReader:
    """Reads the text between a call's opening marker and the end of its closing marker."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Collection[str]) -> None:
        self.done = False
        self.rest = ""  # unread text; once ``done``, the text after the call
        self._form = form
        self._markers = markers
        self._tools = tools
        self._name: str | None = None
        self._arguments: list[str] = []
        self._reported = 0  # of these
        self._depth = 0  # open brackets
        self._inside = form.kind == "gemma"  # what is read belongs to the arguments
        self._complete = False  # but for what closes the call
        is_json = form.kind == "json"
        self._quote = '"' if is_json else markers.sign(form.quote)
        self._string = self._json_string if is_json else self._gemma_string
        self._parser = self._json_call() if is_json else self._gemma_call()

    @property
    def name(self) -> str | None:
        """The tool's name, once its arguments have begun: until then the text may not be a call at all."""
        return self._name if self._arguments else None

    def push(self, text: str) -> str:
        """Read more text; return more of the arguments' JSON.

        Raises MalformedCallError; if :attr:`name` is still None, the text is not a call at all.
        """
        self.rest += text
        next(self._parser, None)
        if self.name is None:
            return ""
        made, self._reported = self._arguments[self._reported :], len(self._arguments)
        return "".join(made)

    def end(self) -> None:
        """End the reply. Raises MalformedCallError unless nothing but the closing marker is missing."""
        if not self._complete or self.rest.strip():
            raise MalformedCallError("the reply ended within it")

    # ------------------------------------------------------------------ the call

    def _json_call(self) -> Parser:
        """``{"name": NAME, KEY: {…}}``, in any order and with other members."""
        yield from self._next_character()
        self._take("{")
        yield from self._items("}", self._json_member)
        if self._name is None:
            raise MalformedCallError("it has no name")
        if not self._arguments:
            self._arguments.append("{}")
        self._check()
        yield from self._closing_marker()

    def _json_member(self) -> Parser:
        key = _decoded((yield from self._key()), str, "a name in it is not valid JSON")
        yield from self._next_character()
        if key == self._form.key:
            if self._arguments or self.rest[0] != "{":
                raise MalformedCallError("its arguments are not one object")
            self._inside = True
            yield from self._value()
            self._inside = False
            self._check()
        elif key == "name":
            if self._name is not None or self.rest[0] != '"':
                raise MalformedCallError("its name is not one string")
            self._take_name(_decoded((yield from self._string()), str, "its name is not valid JSON"))
        else:
            yield from self._value()

    def _gemma_call(self) -> Parser:
        """``call:NAME{…}``."""
        while not (match := _GEMMA_HEAD.match(self.rest)):
            if "{" in self.rest or len(self.rest) > _MAX_HEAD:
                raise MalformedCallError("it does not begin with call:NAME{")
            yield
        self._take_name(match[1])
        self.rest = self.rest[match.end() :]
        yield from self._value()
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
        self._name = name

    def _check(self) -> None:
        _decoded("".join(self._arguments), dict[str, Any], "its arguments are not a valid JSON object")
        self._complete = True

    # ------------------------------------------------------------------ values in both notations

    def _items(self, close: str, item: Callable[[], Parser]) -> Parser:
        """What is between two brackets, and the closing one."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise MalformedCallError(f"arguments nested deeper than {MAX_NESTING} levels")
        yield from self._next_character()
        more = self.rest[0] != close
        while more:
            yield from item()
            yield from self._next_character()
            if more := self.rest[0] == ",":
                self._take(",")
        self._take(close)
        self._depth -= 1

    def _member(self) -> Parser:
        yield from self._key()
        yield from self._value()

    def _key(self) -> TextParser:
        """A string or, for Gemma, a bare name, and the colon."""
        yield from self._next_character()
        if self._form.kind == "json" or self.rest.startswith(self._quote):
            text = yield from self._string()
            yield from self._next_character()
            self._take(":")
            return text
        while ":" not in self.rest[: _MAX_KEY + 1]:
            if len(self.rest) > _MAX_KEY:
                raise MalformedCallError(f"a name of more than {_MAX_KEY} characters in the arguments")
            yield
        name, _, self.rest = self.rest.partition(":")
        name = name.rstrip()
        if not name or _SCALAR.fullmatch(name.replace(" ", "_")) is None:
            raise MalformedCallError(f"{self._markers.spelled(name)[:40]!r} as a name in the arguments")
        return self._emit(f'"{self._escaped(name)}":')

    def _value(self) -> Parser:
        yield from self._next_character()
        if self.rest.startswith(self._quote):
            yield from self._string()
        elif (bracket := self.rest[0]) in "{[":
            self._take(bracket)
            yield from self._items("}", self._member) if bracket == "{" else self._items("]", self._value)
        else:
            yield from self._scalar()

    def _json_string(self) -> TextParser:
        self._take('"')
        text = '"'
        while True:
            inside = _STRING_PART.match(self.rest)[0]  # type: ignore[index]  # it matches the empty text, too
            self.rest = self.rest[len(inside) :]
            inside = _CONTROL.sub(lambda match: json.dumps(match[0])[1:-1], self._markers.spelled(inside))
            text += self._emit(inside)
            if self.rest.startswith('"'):
                self._take('"')
                return text + '"'
            yield

    def _scalar(self) -> Parser:
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

    def _gemma_string(self) -> TextParser:
        self.rest = self.rest[len(self._quote) :]
        text = self._emit('"')
        while self._quote not in self.rest:
            sure = len(self.rest) - overlap(self.rest, self._quote)
            inside, self.rest = self.rest[:sure], self.rest[sure:]
            text += self._emit(self._escaped(inside))
            yield
        inside, _, self.rest = self.rest.partition(self._quote)
        return text + self._emit(self._escaped(inside) + '"')

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

    def _emit(self, text: str) -> str:
        """Forward JSON of the arguments."""
        if self._inside:
            self._arguments.append(text)
        return text

    def _escaped(self, text: str) -> str:
        return json.dumps(self._markers.spelled(text), ensure_ascii=False)[1:-1]

    def _shown(self) -> str:
        return repr(self._markers.spelled(self.rest[:20]))


def _decoded(text: str, kind: Any, problem: str) -> Any:
    """The value of a JSON text. Raises MalformedCallError with ``problem`` if it is not of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise MalformedCallError(problem) from None
