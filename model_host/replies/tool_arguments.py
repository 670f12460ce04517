"""Arguments of tool calls as they come, turned into JSON piece by piece. Pure.

What comes out is forwarded before the end is known; whoever reads the call checks the whole in the end.
"""

from __future__ import annotations

import json
import re
from typing import Literal

import msgspec

from model_host.replies.markers import Markers
from model_host.replies.text import overlap

MAX_NESTING = 64
_MAX_KEY = 1000
_MAX_SCALAR = 40
_SCALAR = re.compile(r"[^\s,:\[\]{}]+")
_WORDS = {"None": "null"}  # Gemma's templates print a null so


class MalformedCallError(ValueError):
    """The model wrote something that is no tool call."""


class JsonObject:
    """The text of one JSON object: finds its end, and repairs what models get wrong inside strings."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._depth = 0
        self._string = self._escaped = False
        self.done = False

    def push(self, text: str) -> tuple[str, int]:
        """The object's text in ``text``, and how many characters of it were used: all, until :attr:`done`."""
        made: list[str] = []
        for at, character in enumerate(text, 1):
            made.append(self._read(character))
            if self.done:
                return "".join(made), at
        return "".join(made), len(text)

    def _read(self, character: str) -> str:
        if self._string:
            return self._in_string(character)
        if character == '"':
            self._string = True
        elif character in "{[":
            self._depth += 1
            if self._depth > MAX_NESTING:
                raise MalformedCallError(f"arguments nested deeper than {MAX_NESTING} levels")
        elif character in "}]":
            self._depth -= 1
            self.done = self._depth == 0
        elif self._markers.hidden(character) == "":
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
            return json.dumps(character)[1:-1]  # a bare line break, mostly
        return self._markers.spelled(character)


class GemmaObject:
    """Gemma's ``key:value,…}``, from behind its ``{``: keys are bare, strings stand between two quote markers."""

    def __init__(self, markers: Markers, quote: str) -> None:
        self._markers = markers
        self._quote = markers.sign(quote)
        self._buffer = ""
        self._open = ["{"]
        self._made = ["{"]
        self._expects: Literal["key", "colon", "value", "string", "comma"] = "key"
        self._first = True  # nothing stands in the innermost bracket yet
        self._key = False  # the string being read is a key
        self.done = False

    def push(self, text: str) -> tuple[str, str]:
        """JSON out, and what follows the object once it is :attr:`done`."""
        self._buffer += text
        while not self.done and self._step():
            pass
        made, self._made = "".join(self._made), []
        rest = ""
        if self.done:
            rest, self._buffer = self._buffer, ""
        return made, rest

    def _step(self) -> bool:
        """Read one thing; False when more text is needed."""
        if self._expects == "string":
            return self._string()
        self._buffer = self._buffer.lstrip()
        if not self._buffer or self._quote_is_coming():
            return False
        if self._expects == "key":
            return self._read_key()
        if self._expects == "value":
            return self._read_value()
        if self._expects == "colon":
            self._take(":")
            self._expects = "value"
            return True
        if self._buffer[0] == ",":
            self._take(",")
            self._expects = "key" if self._open[-1] == "{" else "value"
            return True
        return self._close()

    def _read_key(self) -> bool:
        if self._first and self._buffer[0] == "}":
            return self._close()
        if self._buffer.startswith(self._quote):
            return self._begin_string(key=True)
        name, colon, rest = self._buffer.partition(":")
        if len(name) > _MAX_KEY:
            raise MalformedCallError(f"a name of more than {_MAX_KEY} characters in the arguments")
        if not colon:
            return False
        name = name.rstrip()
        if not name or _SCALAR.fullmatch(name.replace(" ", "_")) is None:
            raise MalformedCallError(f"{self._markers.spelled(name)[:40]!r} as a name in the arguments")
        self._made.append(json.dumps(self._markers.spelled(name), ensure_ascii=False) + ":")
        self._buffer, self._expects, self._first = rest, "value", False
        return True

    def _read_value(self) -> bool:
        character = self._buffer[0]
        if self._buffer.startswith(self._quote):
            return self._begin_string(key=False)
        if character in "{[":
            self._take(character)
            self._open.append(character)
            if len(self._open) > MAX_NESTING:
                raise MalformedCallError(f"arguments nested deeper than {MAX_NESTING} levels")
            self._expects, self._first = ("key" if character == "{" else "value"), True
            return True
        if character == "]" and self._first and self._open[-1] == "[":
            return self._close()
        return self._scalar()

    def _scalar(self) -> bool:
        match = _SCALAR.match(self._buffer)
        word = match[0] if match else ""
        if match and match.end() == len(self._buffer) and len(word) <= _MAX_SCALAR:
            return False  # it may go on
        word = _WORDS.get(word, word)
        if len(word) > _MAX_SCALAR or not _is_scalar(word):
            shown = self._markers.spelled(word or self._buffer[:1])
            raise MalformedCallError(f"{shown[:40]!r} as a value in the arguments")
        self._made.append(word)
        self._buffer = self._buffer[match.end() if match else 0 :]
        self._expects, self._first = "comma", False
        return True

    def _begin_string(self, *, key: bool) -> bool:
        self._buffer = self._buffer[len(self._quote) :]
        self._made.append('"')
        self._expects, self._key, self._first = "string", key, False
        return True

    def _string(self) -> bool:
        inside, quote, rest = self._buffer.partition(self._quote)
        if not quote:
            cut = len(inside) - overlap(inside, self._quote)
            self._buffer, inside = inside[cut:], inside[:cut]
            self._made.append(self._escaped(inside))
            return False
        self._made.append(self._escaped(inside) + '"')
        self._buffer, self._expects = rest, "colon" if self._key else "comma"
        return True

    def _close(self) -> bool:
        wanted = "}" if self._open[-1] == "{" else "]"
        self._take(wanted)
        self._open.pop()
        self._expects, self._first, self.done = "comma", False, not self._open
        return True

    def _take(self, character: str) -> None:
        if not self._buffer.startswith(character):
            found = self._markers.spelled(self._buffer[:1])
            raise MalformedCallError(f"{found!r} instead of {character!r} in the arguments")
        self._buffer = self._buffer[1:]
        self._made.append(character)

    def _quote_is_coming(self) -> bool:
        return self._buffer != self._quote and self._quote.startswith(self._buffer)

    def _escaped(self, text: str) -> str:
        return json.dumps(self._markers.spelled(text), ensure_ascii=False)[1:-1]


def _is_scalar(word: str) -> bool:
    """Whether it is a JSON number, true, false or null."""
    try:
        return not isinstance(msgspec.json.decode(word), str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
