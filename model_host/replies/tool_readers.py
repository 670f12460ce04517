"""Reads one tool call from text that comes in pieces, and turns its arguments into JSON on the way. Pure.

Arguments are forwarded before the end of the call is known; the whole is checked when it is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any

from model_host.replies.argument_values import (
    MalformedCallError,
    decoded,
    is_text,
    json_or_text,
    keyword_arguments,
)
from model_host.replies.markers import Markers, overlap
from model_host.replies.tool_forms import ToolForm

MAX_NESTING = 64
_MAX_HEAD = 1000  # characters before the arguments of a Gemma call
_MAX_KEY = 1000
_MAX_SCALAR = 40
_SCALAR = re.compile(r"[^\s,:\[\]{}]+")
_GEMMA_HEAD = re.compile(r"\s*call:\s*([A-Za-z0-9_.-]{1,64})\s*(?=\{)")
_HEAD = re.compile(r"([A-Za-z0-9_.-]{1,64})\s*((?::\d+|[\udc00-\udcff<\[]).*)?", re.DOTALL)
_STRING_PART = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)
# A string, a parenthesis, or what is neither.
_PYTHON_PART = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()]|[^()'"]+""", re.DOTALL)
_MAX_PYTHON = 65_536
_CONTROL = re.compile(r"[\0-\x1f]")  # models leave line breaks in strings

# A parser that pauses where it needs more text, which is then in its reader's buffer.
Parser = Generator[None, None, None]
TextParser = Generator[None, None, str]  # returns what it read


class CallReader:
    """Reads the text between a call's opening marker and the end of its closing marker."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Mapping[str, Any]) -> None:
        self.done = False
        self.rest = ""  # unread text; once ``done``, the text after the call
        self._form = form
        self._markers = markers
        self._tools = tools
        self._name: str | None = None
        self._arguments: list[str] = []
        self._reported = 0  # of these
        self._depth = 0  # open brackets
        self._inside = form.kind != "json"  # what is read belongs to the arguments
        self._complete = False  # apart from the text that closes the call
        is_gemma = form.kind == "gemma"
        self._quote = markers.sign(form.quote) if is_gemma else '"'
        self._string = self._gemma_string if is_gemma else self._json_string
        calls = {
            "json": self._json_call,
            "gemma": self._gemma_call,
            "named": self._named_call,
            "tagged": self._tagged_call,
            "python": self._python_call,
        }
        self._parser = calls[form.kind]()

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
        yield from self._list_start()
        self._take("{")
        yield from self._items("}", self._json_member)
        if self._name is None:
            raise MalformedCallError("it has no name")
        if not self._arguments:
            self._arguments.append("{}")
        self._check()
        yield from self._closing_marker()

    def _json_member(self) -> Parser:
        key = decoded((yield from self._key()), str, "a name in it is not valid JSON")
        yield from self._next_character()
        if key == self._form.key:
            if self._arguments or self.rest[0] != "{":
                raise MalformedCallError("its arguments are not one object")
            self._inside = True
            yield from self._value()
            self._inside = False
            self._check()
        elif key == self._form.name_key:
            if self._name is not None or self.rest[0] != '"':
                raise MalformedCallError("its name is not one string")
            self._take_name(decoded((yield from self._string()), str, "its name is not valid JSON"))
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

    def _named_call(self) -> Parser:
        """``NAME {…}``."""
        yield from self._head([self._form.name[1]])
        yield from self._next_character()
        if self.rest[0] != "{":
            raise MalformedCallError("its arguments are not one object")
        yield from self._value()
        self._check()
        yield from self._closing_marker()

    def _tagged_call(self) -> Parser:
        """``NAME KEY value KEY value``; the first word of the closing marker ends the arguments."""
        key_open, key_close, value_close = map(self._markers.written, self._form.argument)
        close, *more = map(self._markers.written, self._form.close.split())
        yield from self._head([self._form.name[1]] if self._form.name[1] else [key_open, close])
        self._emit("{")
        comma = ""
        while (yield from self._either(key_open, close)) == key_open:
            key = yield from self._until([key_close.split()[0]])
            for word in key_close.split():
                yield from self._either(word, word.replace('"true"', '"false"'))
            self._emit(f'{comma}"{self._escaped(key.strip())}":')
            comma = ","
            properties = self._tools[self._name or ""].get("properties")
            schema = properties.get(key.strip()) if isinstance(properties, dict) else None
            yield from self._tagged_value(schema, value_close)
        self._emit("}")
        self._check()
        yield from self._follow(more)
        self.done = True

    def _python_call(self) -> Parser:
        """``NAME(KEY=value, …)``; reported as a whole, when it is complete."""
        yield from self._list_start()
        head = yield from self._until(["("])
        inside = ""
        depth = -1
        while depth:
            while not (match := _PYTHON_PART.match(self.rest)):
                yield
            inside, self.rest = inside + match[0], self.rest[match.end() :]
            depth = max(depth, 0) + {"(": 1, ")": -1}.get(match[0], 0)
            if len(inside) > _MAX_PYTHON:
                raise MalformedCallError(f"it has more than {_MAX_PYTHON} characters")
        self._take_name(head.strip())
        self._emit(json.dumps(keyword_arguments(self._markers.spelled(inside)), ensure_ascii=False))
        self._check()
        yield from self._closing_marker()

    def _list_start(self) -> Parser:
        """Skip to the call, which may be the first one of a list."""
        yield from self._next_character()
        if self._form.listed and self.rest.startswith("["):
            self.rest = self.rest[1:]
            yield from self._next_character()

    def _head(self, ends: list[str]) -> Parser:
        """Read the name and what surrounds it, up to one of ``ends``, which stays if the arguments begin with it.

        Behind the name, Mistral may write an id, Kimi the call's number, and gpt-oss a channel.
        """
        own = self._form.name[1]
        if own:
            ends = (self._form.markers_in(own) or own.split())[-1:]
        ends = [self._markers.written(end) for end in ends]
        text = yield from self._until(ends)
        if own:
            yield from self._follow(ends)
        before = self._markers.written(self._form.name[0]).strip()
        match = _HEAD.fullmatch(text.strip().removeprefix(before).strip())
        if match is None or (match[2] and not own.strip(">'\"")):
            raise MalformedCallError(f"{self._markers.spelled(text)[:64]!r} is no name of a tool")
        self._take_name(match[1])

    def _until(self, ends: list[str]) -> TextParser:
        """The text before the first of ``ends``, which stays."""
        while not (found := [at for end in ends if (at := self.rest.find(end)) >= 0]):
            if len(self.rest) > _MAX_KEY:
                raise MalformedCallError(f"more than {_MAX_KEY} characters for a name")
            yield
        text, self.rest = self.rest[: min(found)], self.rest[min(found) :]
        return text

    def _either(self, *texts: str) -> TextParser:
        """Take the text that comes next."""
        while not (found := [text for text in texts if self._strip().startswith(text)]):
            if not any(text.startswith(self.rest) for text in texts):
                raise MalformedCallError(f"{self._shown()} instead of {self._markers.spelled(texts[-1])}")
            yield
        self.rest = self.rest[len(found[0]) :]
        return found[0]

    def _follow(self, texts: list[str]) -> Parser:
        for text in texts:
            yield from self._either(text)

    def _tagged_value(self, schema: Any, close: str) -> Parser:
        """A value up to ``close``: text where the schema says so, else JSON if it is that."""
        text, held = "", ""
        plain = is_text(schema)
        while not self.rest:
            yield
        framed = self.rest[0] == "\n"  # some models put each value on lines of its own
        self.rest = self.rest[1:] if framed else self.rest
        self._emit('"' if plain else "")
        while True:
            inside, ended, rest = self.rest.partition(close)
            sure = len(inside) if ended else len(inside) - overlap(inside, close)
            self.rest = rest if ended else inside[sure:]
            held += inside[:sure]
            if plain and not ended:  # the last line break may belong to the frame
                keep = 1 if held.endswith("\n") else 0
                self._emit(self._escaped(held[: len(held) - keep]))
                held = held[len(held) - keep :]
            if ended:
                break
            yield
        text = held.removesuffix("\n") if framed else held
        if plain:
            self._emit(self._escaped(text) + '"')
            return
        self._emit(json_or_text(self._markers.spelled(text), schema))

    def _closing_marker(self) -> Parser:
        yield from self._follow([self._markers.written(text) for text in self._form.close.split()])
        self.done = True

    def _take_name(self, name: str) -> None:
        if name not in self._tools:
            raise MalformedCallError(f"no tool is named {name[:64]!r}")
        self._name = name

    def _check(self) -> None:
        decoded("".join(self._arguments), dict[str, Any], "its arguments are not a valid JSON object")
        self._complete = True

    # ------------------------------------------------------------------ values in both notations

    def _items(self, close: str, item: Callable[[], Parser]) -> Parser:
        """The text between two brackets, and the closing one."""
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
        if len(word) > _MAX_SCALAR or isinstance(decoded(value, Any, problem), str):
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
