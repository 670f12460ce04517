"""Splits what a model writes into the reply's text, tool calls, and thoughts. Pure.

The input is a stream in which control tokens are single characters (:mod:`model_host.replies.markers`). The result does
not depend on how the stream is cut into pieces.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from msgspec import Struct

from model_host.replies.argument_values import MalformedCallError
from model_host.replies.markers import CHANNEL_THOUGHTS, CHANNELS, LABEL, THOUGHTS, Markers, Pair, overlap
from model_host.replies.tool_forms import ToolForm
from model_host.replies.tool_readers import CallReader


class Content(Struct, frozen=True):
    """Text of the reply, from the characters ``start`` to ``end`` of the stream."""

    text: str
    start: int
    end: int


class ThoughtPiece(Struct, frozen=True):
    """Text of a thought, never empty."""

    text: str


class CallPiece(Struct, frozen=True):
    """A piece of the call ``index``; the first one has the call's id and the tool's name."""

    index: int
    call_id: str | None
    name: str | None
    arguments: str


Piece = Content | ThoughtPiece | CallPiece

_FENCES = ("", "```", "```json")  # before a call without its marker
_HEAD = 100  # characters that have to tell such a call, white space included


class ReplyParser:
    """One reply. Calls are looked for if there are ``form`` and ``tools``; ``parallel`` allows more than one.

    A reply may also begin with JSON calls that lack the markers of their form, each bare or in a block of code: small
    models write them so whatever their template teaches.

    ``tools`` has the schemas of the parameters by the tools' names. ``leading`` thoughts are read at the beginning
    only; the prompt may have opened one, which ends with ``opened``.
    """

    def __init__(
        self,
        markers: Markers,
        form: ToolForm | None = None,
        tools: Mapping[str, Any] | None = None,
        *,
        parallel: bool = True,
        thoughts: Sequence[Pair] = THOUGHTS,
        leading: Sequence[Pair] = (),
        opened: str = "",
    ) -> None:
        self.markers = markers
        self.calls = 0  # complete ones
        self.over = False  # the only call allowed is complete
        self._form = form if tools else None
        self._tools = tools or {}
        self._parallel = parallel
        pairs = [*thoughts, *([CHANNEL_THOUGHTS] if markers.has_tokens(CHANNEL_THOUGHTS[0]) else ())]
        self._thoughts = [(markers.written(start), markers.written(end)) for start, end in pairs]
        self._leading = [(markers.written(start), markers.written(end)) for start, end in leading]
        calls = form if tools else None
        self._opens = (
            [markers.written(text) for text in (calls.open, calls.also_open) if text] if calls else []
        )
        self._heads: tuple[str, ...] = ()  # of calls without markers, without white space
        if calls and calls.kind == "json" and not calls.listed:
            first = f'{{"{calls.name_key}":' if calls.open else "{"
            self._heads = tuple(fence + first for fence in _FENCES)
        self._headers = [markers.written(text) for text in CHANNELS if markers.has_tokens(text)]
        self._headers += [markers.written(text) for text in calls.section] if calls else []
        self._mode: Literal["content", "thought", "call", "list"] = "thought" if opened else "content"
        self._thought_end = markers.written(opened)
        self._thought_begun = False
        self._buffer = ""
        self._total = 0  # characters of the stream so far
        self._may_open = True  # a call without an opening marker: there was no text yet
        self._trimming = False
        self._reader: CallReader | None = None
        self._opening = ""  # of the current call: its marker, and the white space before it
        self._raw = ""  # the current call, while it may turn out to be text

    @property
    def in_call(self) -> bool:
        """Whether a call was opened and only white space of it was read."""
        return self._mode == "call" and not self._raw.strip()

    @property
    def open_thought(self) -> str:
        """The marker that ends the thought that is open; empty without one."""
        return self.markers.spelled(self._thought_end) if self._mode == "thought" else ""

    def push(self, text: str) -> list[Piece]:
        """Read more of the stream. Raises MalformedCallError for a call whose name was reported already."""
        self._buffer += text
        self._total += len(text)
        made: list[Piece] = []
        while self._step(made):
            pass
        return made

    def finish(self, *, ended: bool) -> list[Piece]:
        """Return what was held back. If the model ``ended`` the reply itself, a call must be complete."""
        made: list[Piece] = []
        while self._reader is not None and self._mode == "call":
            if self._reader.name is None:
                self._take_back(made)
                while self._step(made):
                    pass
                continue
            try:
                self._reader.end()
            except MalformedCallError as error:
                if ended:
                    raise _explained(self._reader.name, error) from None
            else:
                self._complete()
            return made
        if self._mode == "content":
            self._emit(len(self._buffer), made)
        elif self._mode == "thought":
            self._think(self._buffer.rstrip(), made)
        return made

    def _step(self, made: list[Piece]) -> bool:
        """Read one thing from the buffer; False when more text is needed."""
        if self.over or not self._buffer:
            return False
        if self._mode == "thought":
            return self._read_thought(made)
        if self._mode == "call":
            return self._read_call(made)
        if self._mode == "list":
            return self._read_list()
        if self._heads and self._may_open:
            begun = self._buffer.lstrip()[:_HEAD]
            start = "".join(begun.split())
            if start.startswith(self._heads):
                opening, _, rest = self._buffer.partition("{")
                self._buffer = "{" + rest
                return self._begin_call(opening, close="```" if opening.strip() else "")
            if len(begun) < _HEAD and any(head.startswith(start) for head in self._heads):
                return False
        if self._leading and self._may_open:
            start = self._buffer.lstrip()
            if pair := next((pair for pair in self._leading if start.startswith(pair[0])), None):
                self._buffer = start.removeprefix(pair[0])
                return self._begin_thought(pair[1])
            if any(marker.startswith(start) for marker, _ in self._leading):
                return False
        return self._read_content(made)

    def _read_content(self, made: list[Piece]) -> bool:
        openings = [*(start for start, _ in self._thoughts), *self._headers, *self._opens]
        found = [(at, marker) for marker in openings if (at := self._buffer.find(marker)) >= 0]
        if not found:
            sure = len(self._buffer) - max((overlap(self._buffer, marker) for marker in openings), default=0)
            if self._form is not None:  # white space before a call does not belong to the reply
                sure = len(self._buffer[:sure].rstrip())
            self._emit(sure, made)
            return False
        at, marker = min(found)
        is_call, is_header = marker in self._opens, marker in self._headers
        self._emit(len(self._buffer[:at].rstrip()) if is_call or is_header else at, made)
        opening, _, self._buffer = self._buffer.partition(marker)
        if is_call:
            return self._begin_call(opening + marker)
        if is_header:
            return True
        return self._begin_thought(next(end for start, end in self._thoughts if start == marker))

    def _begin_thought(self, end: str) -> bool:
        self._mode, self._thought_end, self._thought_begun = "thought", end, False
        return True

    def _read_thought(self, made: list[Piece]) -> bool:
        text, found, rest = self._buffer.partition(self._thought_end)
        if found:
            self._think(text.rstrip(), made)
            self._buffer, self._mode, self._leading, self._trimming = rest, "content", [], True
            return True
        if not self._thought_begun and LABEL.startswith(text.strip()):
            return False
        sure = text[: len(text) - overlap(text, self._thought_end)].rstrip()
        self._think(sure, made)
        self._buffer = text[len(sure) :]
        return False

    def _think(self, raw: str, made: list[Piece]) -> None:
        """Emit text of a thought, which begins with no white space and no label."""
        text = self.markers.hidden(raw)
        if not self._thought_begun:
            labelled = self._thought_end == self.markers.written(THOUGHTS[0][1])
            text = (text.strip() + "\n").removeprefix(f"{LABEL}\n" if labelled else "").strip()
        if text:
            self._thought_begun = True
            made.append(ThoughtPiece(text))

    def _read_list(self) -> bool:
        """Read what is between two calls of a list, or behind the last one."""
        self._buffer = self._buffer.lstrip()
        if self._buffer.startswith(","):
            self._buffer = self._buffer[1:]
            return self._begin_call(",")
        if self._buffer:
            self._buffer = self._buffer.removeprefix("]")
            self._mode = "content"
        return bool(self._buffer)

    def _begin_call(self, opening: str, close: str | None = None) -> bool:
        """Read a call from here on; ``close`` ends it if it lacks the form's marker."""
        assert self._form is not None
        self._mode, self._raw = "call", ""
        self._opening = opening
        form = self._form if close is None else replace(self._form, close=close)
        self._reader = CallReader(form, self.markers, self._tools)
        return True

    def _read_call(self, made: list[Piece]) -> bool:
        reader = self._reader
        assert reader is not None
        text, self._buffer = self._buffer, ""
        first = reader.name is None
        if first:
            self._raw += text
        try:
            arguments = reader.push(text)
        except MalformedCallError as error:
            if reader.name is not None:
                raise _explained(reader.name, error) from None
            self._take_back(made)
            return True
        if reader.name is None:
            return False
        if first:
            call_id = f"call_{secrets.token_hex(12)}"
            made.append(CallPiece(self.calls, call_id, reader.name, arguments))
        elif arguments:
            made.append(CallPiece(self.calls, None, None, arguments))
        if reader.done:
            self._buffer = reader.rest
            self._complete()
        return reader.done

    def _complete(self) -> None:
        self.calls += 1
        assert self._form is not None
        self._mode, self._reader = "list" if self._form.listed else "content", None
        self._trimming = True
        self.over = not self._parallel

    def _take_back(self, made: list[Piece]) -> None:
        """Treat what looked like a call as text: emit its opening marker, and read the rest again."""
        opening = self._opening or self._raw[: len(self._raw) - len(self._raw.lstrip()) + 1]
        self._buffer = self._raw if self._opening else self._raw[len(opening) :]
        self._mode, self._reader, self._raw = "content", None, ""
        end = self._total - len(self._buffer)
        text = self.markers.spelled(opening)
        made.append(Content(text.lstrip() if self._trimming else text, end - len(opening), end))
        self._may_open = self._trimming = False

    def _emit(self, length: int, made: list[Piece]) -> None:
        """Emit the first characters of the buffer as text."""
        raw, self._buffer = self._buffer[:length], self._buffer[length:]
        end = self._total - len(self._buffer)
        text = self.markers.hidden(raw)
        if self._trimming:
            text = text.lstrip()
        if text:
            self._trimming = self._may_open = False
            made.append(Content(text, end - length, end))


def _explained(name: str | None, error: MalformedCallError) -> MalformedCallError:
    return MalformedCallError(f"the model wrote a malformed call of {name}: {error}")
