"""A reply as it grows: from sampled tokens to text, tool calls and log-probabilities that may be sent. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from model_host.protocol import TokenLogprob
from model_host.replies.markers import Markers
from model_host.replies.reply_parser import CallPiece, Content, ReplyParser
from model_host.replies.text import IncrementalText, StopMatcher


class Text(Struct, frozen=True):
    """Text that may be shown, never empty, and the log-probabilities of its tokens where they are kept."""

    text: str
    logprobs: list[TokenLogprob]


class Reply:
    """The output of one generation. Stop strings count in its text, not in calls or thoughts."""

    def __init__(self, stop: StopMatcher | None = None, parser: ReplyParser | None = None) -> None:
        self._stop = stop or StopMatcher(())
        self._parser = parser or ReplyParser(Markers((), lambda _: None), thoughts=())
        self._decoder = IncrementalText()
        self._length = 0  # characters of the parser's stream
        self._content_end = 0  # where in it the text ends
        self._logprobs: deque[tuple[int, int, TokenLogprob]] = (
            deque()
        )  # of tokens not shown yet, with their place

    @property
    def stop_string(self) -> str | None:
        """The stop string that was found."""
        return self._stop.matched

    @property
    def complete(self) -> bool:
        """Whether nothing that follows would be shown."""
        return self._stop.matched is not None or self._parser.over

    @property
    def calls(self) -> int:
        """Tool calls that are complete."""
        return self._parser.calls

    @property
    def call_opened(self) -> bool:
        """Whether the next token is the first one of a tool call."""
        return self._parser.in_call

    def push(self, token: int, piece: bytes, logprob: TokenLogprob | None = None) -> list[Text | CallPiece]:
        """A sampled token in; what may be sent of it out. Raises MalformedCallError."""
        sign = self._parser.markers.signs.get(token)
        text = self._decoder.flush() + sign if sign is not None else self._decoder.push(piece)
        if logprob is not None:
            self._logprobs.append((self._length, self._length + len(text), logprob))
        self._length += len(text)
        return self._shown(self._parser.push(text)) if text else []

    def finish(self, *, ended: bool) -> list[Text | CallPiece]:
        """What was held back, at the end. ``ended``: by the model itself. Raises MalformedCallError."""
        if self.complete:
            return []
        rest = self._decoder.flush()
        self._length += len(rest)
        made = self._shown([*self._parser.push(rest), *self._parser.finish(ended=ended)])
        # The last characters may complete a stop string, or be the beginning of one that never came.
        held = self._stop.flush() if self._stop.matched is None else ""
        return [*made, Text(held, self._take_logprobs(self._content_end))] if held else made

    def _shown(self, pieces: Iterable[Content | CallPiece]) -> list[Text | CallPiece]:
        made: list[Text | CallPiece] = []
        for piece in pieces:
            if isinstance(piece, CallPiece):
                made.append(piece)
                continue
            self._drop_logprobs(self._content_end, piece.start)
            self._content_end = piece.end
            begins = piece.start - self._stop.held
            text = self._stop.push(piece.text)
            if text:
                made.append(Text(text, self._take_logprobs(begins + len(text))))
            if self._stop.matched is not None:
                break
        return made

    def _take_logprobs(self, end: int) -> list[TokenLogprob]:
        """Those of the tokens that begin before ``end``."""
        taken: list[TokenLogprob] = []
        while self._logprobs and self._logprobs[0][0] < end:
            taken.append(self._logprobs.popleft()[2])
        return taken

    def _drop_logprobs(self, start: int, end: int) -> None:
        """Forget the tokens of what is not shown: calls, thoughts, and white space around them."""
        if start < end:
            kept = [item for item in self._logprobs if item[0] < start or item[1] > end or item[0] == end]
            self._logprobs = deque(kept)
