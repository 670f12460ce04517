"""From generation events to the items of a response: each opens, grows and closes before the next one."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.api.openai.responses.items import Status
from gateway.api.openai.responses.replies import (
    ArgumentsDelta,
    ArgumentsDone,
    ItemAdded,
    ItemDone,
    Logprob,
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputTextDelta,
    PartAdded,
    PartDone,
    ResponseEvent,
    TextDone,
    TextPart,
    TopLogprob,
)
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, TokenLogprob, ToolDelta


class Output:
    """The output of one generation as it grows."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self.items: list[OutputItem] = []  # those that are complete
        self.end: Finished | None = None
        self._open: _OpenMessage | _OpenCall | None = None

    def take(self, event: GenerationEvent) -> Iterator[ResponseEvent]:
        """The events that an event of the generation makes."""
        if isinstance(event, Delta):
            yield from self._text(event)
        elif isinstance(event, ToolDelta):
            yield from self._call(event)
        elif isinstance(event, Finished):
            if self._open is None and not self.items:
                yield from self._begin(_OpenMessage(0, self._request_id))  # the model said nothing
            yield from self._close("incomplete" if event.reason == "length" else "completed")
            self.end = event

    def add(self, event: GenerationEvent) -> None:
        """Take an event whose events nobody wants."""
        for _ in self.take(event):
            pass

    def broken_off(self) -> list[OutputItem]:
        """The items, the one that is open as far as it got."""
        return [*self.items, *([self._open.item("incomplete")] if self._open is not None else [])]

    def _text(self, delta: Delta) -> Iterator[ResponseEvent]:
        if not delta.text and not delta.logprobs:
            return  # tokens inside a character
        if not isinstance(self._open, _OpenMessage):
            yield from self._close("completed")
            yield from self._begin(_OpenMessage(len(self.items), self._request_id))
        assert isinstance(self._open, _OpenMessage)
        yield self._open.more(delta)

    def _call(self, delta: ToolDelta) -> Iterator[ResponseEvent]:
        if not isinstance(self._open, _OpenCall) or self._open.number != delta.index:
            yield from self._close("completed")
            yield from self._begin(_OpenCall(len(self.items), self._request_id, delta))
        assert isinstance(self._open, _OpenCall)
        if delta.arguments:
            yield self._open.more(delta)

    def _begin(self, opened: _OpenMessage | _OpenCall) -> Iterator[ResponseEvent]:
        self._open = opened
        yield from opened.begin()

    def _close(self, status: Status) -> Iterator[ResponseEvent]:
        if self._open is not None:
            yield from self._open.finish(status)
            self.items.append(self._open.item(status))
            self._open = None


class _OpenMessage:
    """The message that is being written; ``index`` is its place in the output."""

    def __init__(self, index: int, request_id: str) -> None:
        self._index = index
        self._id = f"msg_{request_id}_{index}"
        self._texts: list[str] = []
        self._logprobs: list[Logprob] = []

    def begin(self) -> Iterator[ResponseEvent]:
        yield ItemAdded(output_index=self._index, item=OutputMessage(id=self._id, status="in_progress"))
        yield PartAdded(output_index=self._index, item_id=self._id, part=TextPart(""))

    def more(self, delta: Delta) -> OutputTextDelta:
        logprobs = [_logprob(logprob) for logprob in delta.logprobs]
        self._texts.append(delta.text)
        self._logprobs += logprobs
        return OutputTextDelta(
            output_index=self._index, item_id=self._id, delta=delta.text, logprobs=logprobs
        )

    def finish(self, status: Status) -> Iterator[ResponseEvent]:
        part = self._part()
        yield TextDone(output_index=self._index, item_id=self._id, text=part.text, logprobs=part.logprobs)
        yield PartDone(output_index=self._index, item_id=self._id, part=part)
        yield ItemDone(output_index=self._index, item=self.item(status))

    def item(self, status: Status) -> OutputMessage:
        return OutputMessage(id=self._id, status=status, content=[self._part()])

    def _part(self) -> TextPart:
        return TextPart("".join(self._texts), logprobs=self._logprobs)


class _OpenCall:
    """The call that is being written; ``number`` tells it from the other calls of the generation."""

    def __init__(self, index: int, request_id: str, first: ToolDelta) -> None:
        self.number = first.index
        self._index = index
        self._id = f"fc_{request_id}_{index}"
        self._call_id = first.call_id or ""
        self._name = first.name or ""
        self._arguments: list[str] = []

    def begin(self) -> Iterator[ResponseEvent]:
        yield ItemAdded(output_index=self._index, item=self.item("in_progress"))

    def more(self, delta: ToolDelta) -> ArgumentsDelta:
        self._arguments.append(delta.arguments)
        return ArgumentsDelta(output_index=self._index, item_id=self._id, delta=delta.arguments)

    def finish(self, status: Status) -> Iterator[ResponseEvent]:
        item = self.item(status)
        yield ArgumentsDone(
            output_index=self._index, item_id=self._id, name=item.name, arguments=item.arguments
        )
        yield ItemDone(output_index=self._index, item=item)

    def item(self, status: Status) -> OutputCall:
        return OutputCall(
            id=self._id,
            status=status,
            call_id=self._call_id,
            name=self._name,
            arguments="".join(self._arguments),
        )


def _logprob(logprob: TokenLogprob) -> Logprob:
    top = [TopLogprob(one.token, one.logprob, one.bytes) for one in logprob.top]
    return Logprob(logprob.token, logprob.logprob, logprob.bytes, top)
