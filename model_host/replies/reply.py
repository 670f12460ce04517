"""A reply as it grows: from sampled tokens to text, tool calls and log-probabilities that may be sent. Pure."""

from __future__ import annotations

import codecs
import math
from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from model_host.protocol import TokenLogprob
from model_host.replies.markers import Markers, StopMatcher
from model_host.replies.reply_parser import CallPiece, Piece, ReplyParser, ThoughtPiece

DEBOUNCE_SECONDS = 0.05  # between two deltas of one reply; people do not read faster


class Text(Struct, frozen=True):
    """Text that may be sent, never empty, and the log-probabilities of its tokens where they were requested."""

    text: str
    logprobs: list[TokenLogprob] = []
    thought: bool = False


class DeltaBuffer:
    """Debounces the text of a fast reply, so that one delta carries several tokens. Times are passed in.

    Each delta costs the host, the gateway and the client time on the cores that decode (docs/benchmarks.md). The first
    text of a reply never waits.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._last_sent = -math.inf
        self.thought = False  # what it holds

    def __bool__(self) -> bool:
        return bool(self._texts)

    def add(self, piece: Text) -> None:
        self._texts.append(piece.text)
        self.thought = piece.thought
        self._logprobs += piece.logprobs

    def due(self, now: float, step_seconds: float) -> bool:
        """Whether the pause would be too long after one more step of about ``step_seconds``."""
        return now + step_seconds - self._last_sent >= DEBOUNCE_SECONDS

    def take(self, now: float) -> Text:
        """Remove and return everything, to be sent now."""
        taken = Text("".join(self._texts), self._logprobs, self.thought)
        self._texts, self._logprobs, self._last_sent = [], [], now
        return taken


class Reply:
    """The output of one generation. Stop strings are looked for in its text, not in calls or thoughts.

    ``after_thought``: the grammar applies from the end of the thought on that the prompt has opened. After
    ``thought_limit`` tokens a thought is ended with the tokens in ``thought_ends``, which are given by its end marker.
    """

    def __init__(
        self,
        stop: StopMatcher | None = None,
        parser: ReplyParser | None = None,
        *,
        after_thought: bool = False,
        thought_limit: int | None = None,
        thought_ends: Mapping[str, list[int]] = MappingProxyType({}),
    ) -> None:
        self._after_thought = after_thought
        self._thought_limit = thought_limit
        self._thought_ends = thought_ends
        self._thought_tokens = 0
        self._ending: list[int] = []  # tokens that remain of a thought's end
        self._stop = stop or StopMatcher(())
        self._parser = parser or ReplyParser(Markers((), lambda _: None), thoughts=())
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # incomplete characters wait in it
        self._length = 0  # characters of the parser's stream
        self._content_end = 0  # where in it the text ends
        # Of each token that was not shown yet: where it begins and ends in the stream.
        self._logprobs: deque[tuple[int, int, TokenLogprob]] = deque()

    @property
    def stop_string(self) -> str | None:
        return self._stop.matched

    @property
    def complete(self) -> bool:
        """Whether nothing that follows would be shown."""
        return self._stop.matched is not None or self._parser.over

    @property
    def calls(self) -> int:
        return self._parser.calls

    @property
    def constrained(self) -> bool:
        """Whether a lazy grammar applies to the next token: a call or, with ``after_thought``, the text begins."""
        return self._parser.in_call or (self._after_thought and not self._parser.open_thought)

    def forced(self) -> int | None:
        """The next token, if the thought is over its limit."""
        limit = self._thought_limit
        if not self._ending and limit is not None and self._thought_tokens >= limit:
            self._end_thought()
        return self._ending.pop(0) if self._ending else None

    def instead_of_end(self) -> int | None:
        """The token that replaces an end within a thought, if what the grammar demands must follow."""
        if self._after_thought:
            self._end_thought()
        return self._ending.pop(0) if self._ending else None

    def _end_thought(self) -> None:
        self._ending = list(self._thought_ends.get(self._parser.open_thought, ()))

    def push(self, token: int, piece: bytes, logprob: TokenLogprob | None = None) -> list[Text | CallPiece]:
        """Add a sampled token; return what may be sent now. Raises MalformedCallError."""
        sign = self._parser.markers.signs.get(token)
        text = self._decoder.decode(b"", True) + sign if sign is not None else self._decoder.decode(piece)
        if logprob is not None:
            self._logprobs.append((self._length, self._length + len(text), logprob))
        self._length += len(text)
        self._thought_tokens += bool(self._parser.open_thought)
        return self._shown(self._parser.push(text)) if text else []

    def finish(self, *, ended: bool) -> list[Text | CallPiece]:
        """Return what was held back. ``ended``: the model ended the reply itself. Raises MalformedCallError."""
        if self.complete:
            return []
        rest = self._decoder.decode(b"", True)
        self._length += len(rest)
        shown = self._shown([*self._parser.push(rest), *self._parser.finish(ended=ended)])
        # The last characters may complete a stop string, or begin one that never came.
        held = self._stop.flush() if self._stop.matched is None else ""
        return [*shown, Text(held, self._take_logprobs(self._content_end))] if held else shown

    def _shown(self, pieces: Iterable[Piece]) -> list[Text | CallPiece]:
        shown: list[Text | CallPiece] = []
        for piece in pieces:
            if isinstance(piece, CallPiece):
                shown.append(piece)
                continue
            if isinstance(piece, ThoughtPiece):
                shown.append(Text(piece.text, thought=True))
                continue
            self._drop_logprobs(self._content_end, piece.start)
            self._content_end = piece.end
            begins = piece.start - self._stop.held
            text = self._stop.push(piece.text)
            if text:
                shown.append(Text(text, self._take_logprobs(begins + len(text))))
            if self._stop.matched is not None:
                break
        return shown

    def _take_logprobs(self, end: int) -> list[TokenLogprob]:
        """Those of the tokens that begin before ``end``."""
        taken: list[TokenLogprob] = []
        while self._logprobs and self._logprobs[0][0] < end:
            taken.append(self._logprobs.popleft()[2])
        return taken

    def _drop_logprobs(self, start: int, end: int) -> None:
        """Drop the tokens of hidden text: calls, thoughts, and white space around them."""
        if start < end:
            kept = [item for item in self._logprobs if item[0] < start or item[1] > end or item[0] == end]
            self._logprobs = deque(kept)
