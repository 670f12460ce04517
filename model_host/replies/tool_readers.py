"""Readers of one tool call, from behind its opening marker to behind its closing one. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from model_host.replies.markers import Markers
from model_host.replies.tool_arguments import GemmaObject, JsonObject, MalformedCallError
from model_host.replies.tool_forms import ToolForm

_MAX_HEAD = 1000  # characters before the arguments, in the order that models are taught
_GEMMA_HEAD = re.compile(r"\s*call:\s*([A-Za-z0-9_.-]{1,64})\s*\{")


class CallReader:
    """Reads a call from text that comes in pieces. What it raises before :attr:`name` is known means: this is text."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Collection[str]) -> None:
        self.name: str | None = None
        self.done = False
        self.rest = ""  # text behind the call, once it is done
        self._form = form
        self._markers = markers
        self._tools = tools
        self._close = markers.sign(form.close) if form.close else ""
        self._buffer = ""
        self._state: Literal["head", "arguments", "brace", "close"] = "head"
        self._arguments: list[str] = []

    def push(self, text: str) -> str:
        """More text in; more of the arguments out, as JSON. Raises MalformedCallError."""
        self._buffer += text
        made = ""
        if self._state == "head":
            made = self._read_head()
        if self._state == "arguments":
            made += self._read_arguments()
        if made:
            self._arguments.append(made)
        if self._state in ("brace", "close"):
            self._read_end()
        return made

    def end(self) -> None:
        """The reply ended within the call: complete but for its closing marker is good enough, else it is malformed."""
        if self._state not in ("brace", "close") or self._buffer.strip():
            raise MalformedCallError("the reply ended within it")

    def _read_head(self) -> str:
        """Find the name. Returns the whole arguments when they stood before it."""
        raise NotImplementedError

    def _read_arguments(self) -> str:
        raise NotImplementedError

    def _known(self, name: str) -> str:
        if name not in self._tools:
            raise MalformedCallError(f"no tool is named {name[:64]!r}")
        return name

    def _check(self) -> None:
        """The arguments as a whole."""
        try:
            value = msgspec.json.decode("".join(self._arguments))
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            raise MalformedCallError("its arguments are no valid JSON") from None
        if not isinstance(value, dict):
            raise MalformedCallError("its arguments are no JSON object")

    def _read_end(self) -> None:
        if self._arguments:
            self._check()
            self._arguments.clear()
        self._buffer = self._buffer.lstrip()
        if self._state == "brace" and self._buffer:
            if self._buffer[0] != "}":
                raise MalformedCallError(f"{self._shown()} behind its arguments")
            self._buffer, self._state = self._buffer[1:].lstrip(), "close"
        if self._state != "close" or (not self._buffer and self._close):
            return
        if self._buffer.startswith(self._close):
            self.rest = self._buffer[len(self._close) :]
            self._buffer, self.done = "", True
        elif not self._close.startswith(self._buffer):
            raise MalformedCallError(f"{self._shown()} instead of {self._form.close}")

    def _shown(self) -> str:
        return repr(self._markers.spelled(self._buffer[:20]))


class JsonCallReader(CallReader):
    """``{"name": …, KEY: {…}}``. Arguments are forwarded as they come when the name stands before them."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Collection[str]) -> None:
        super().__init__(form, markers, tools)
        self._head = ""
        self._whole = JsonObject(markers)  # the object around, until the name is known
        self._object = JsonObject(markers)
        key = re.escape(form.key)
        self._pattern = re.compile(rf'\s*\{{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"{key}"\s*:\s*(?=\{{)')

    def _read_head(self) -> str:
        new, self._buffer = self._buffer, ""
        if not self._head:
            new = new.lstrip()
        if not self._head and new and new[0] != "{":
            raise MalformedCallError("it does not begin with {")
        text, used = self._whole.push(new) if new else ("", 0)
        self._head += text
        rest = new[used:]
        match = self._pattern.match(self._head[:_MAX_HEAD])
        if match:
            self.name = self._known(_string(match[1]))
            # What was read ahead is read again as arguments; repairing it twice changes nothing.
            self._buffer, self._head = self._head[match.end() :] + rest, ""
            self._state = "arguments"
        elif self._whole.done:
            self._buffer, self._state = rest, "close"
            return self._take_whole()
        return ""

    def _take_whole(self) -> str:
        try:
            call: dict[str, Any] = msgspec.json.decode(self._head, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeEncodeError):
            raise MalformedCallError("it is no valid JSON") from None
        name, arguments = call.get("name"), call.get(self._form.key, {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise MalformedCallError("it has no name or no arguments")
        self.name = self._known(name)
        return json.dumps(arguments, ensure_ascii=False)

    def _read_arguments(self) -> str:
        made, used = self._object.push(self._buffer)
        self._buffer = self._buffer[used:]
        if self._object.done:
            self._state = "brace"
        return made


class GemmaCallReader(CallReader):
    """``call:NAME{…}``. Arguments are turned into JSON as they come."""

    def __init__(self, form: ToolForm, markers: Markers, tools: Collection[str]) -> None:
        super().__init__(form, markers, tools)
        self._object = GemmaObject(markers, form.quote)

    def _read_head(self) -> str:
        match = _GEMMA_HEAD.match(self._buffer)
        if match:
            self.name = self._known(match[1])
            self._buffer, self._state = self._buffer[match.end() :], "arguments"
        elif "{" in self._buffer or len(self._buffer) > _MAX_HEAD:
            raise MalformedCallError("it does not begin with call:NAME{")
        return ""

    def _read_arguments(self) -> str:
        made, rest = self._object.push(self._buffer)
        self._buffer = rest
        if self._object.done:
            self._state = "close"
        return made


def reader_for(form: ToolForm, markers: Markers, tools: Collection[str]) -> CallReader:
    """A reader of one call in ``form`` of one of ``tools``."""
    return (JsonCallReader if form.kind == "json" else GemmaCallReader)(form, markers, tools)


def _string(text: str) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise MalformedCallError("its name is no valid JSON") from None
