"""Markers in a stream of text: control tokens, stop strings, thoughts, and text that may begin one. Pure.

A control token is one character that no text can contain: decoded UTF-8 has no lone surrogates, so each lone surrogate
in the stream is a control token. A marker that is a token of the vocabulary counts only as that token; spelled out by
other tokens it is text. Any other marker is looked for in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

_FIRST = 0xDC00


class Markers:
    """The markers of a model's replies. ``token_of`` returns the control token of a spelling, if there is one."""

    def __init__(self, spellings: Iterable[str], token_of: Callable[[str], int | None]) -> None:
        self.tokens: dict[str, int] = {}  # spelling → token
        self.signs: dict[int, str] = {}  # token → character in the stream
        self._spellings: dict[str, str] = {}  # character in the stream → spelling
        for spelling in dict.fromkeys(spellings):
            token = token_of(spelling)
            if token is not None:
                sign = chr(_FIRST + len(self.signs))
                self.tokens[spelling] = token
                self.signs[token] = sign
                self._spellings[sign] = spelling

    def sign(self, spelling: str) -> str:
        return self.signs[self.tokens[spelling]] if spelling in self.tokens else spelling

    def has_tokens(self, text: str) -> bool:
        return any(spelling in text for spelling in self.tokens)

    def written(self, text: str) -> str:
        """``text`` as it is in the stream when the model writes the markers in it as tokens."""
        for spelling, token in self.tokens.items():
            text = text.replace(spelling, self.signs[token])
        return text

    def spelled(self, text: str) -> str:
        """``text`` with its control tokens spelled out."""
        return "".join(self._spellings.get(character, character) for character in text)

    def hidden(self, text: str) -> str:
        """``text`` without its control tokens."""
        return "".join(character for character in text if character not in self._spellings)


class StopMatcher:
    """Cuts a stream of text at the first stop string, and holds back text that may begin one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """Add text; return what is safe to show. After a match, in :attr:`matched`, the rest is dropped."""
        if self.matched is not None:
            return ""
        self._held += text
        hits = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            # The earliest match wins, then the longest, so that the order of the stop strings does not matter.
            at, self.matched = min(hits, key=lambda hit: (hit[0], -len(hit[1])))
            shown, self._held = self._held[:at], ""
            return shown
        keep = max((overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def flush(self) -> str:
        shown, self._held = self._held, ""
        return shown

    @property
    def held(self) -> int:
        return len(self._held)


def overlap(text: str, marker: str) -> int:
    """Length of the longest proper prefix of ``marker`` that ends ``text``, and may grow to the marker."""
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if text.endswith(marker[:length]):
            return length
    return 0


Pair = tuple[str, str]  # what begins a thought, what ends it

# Gemma 4's channel, anywhere in a reply; the word `thought` follows the marker.
THOUGHTS: tuple[Pair, ...] = (("<|channel>", "<channel|>"),)
LABEL = "thought"
# gpt-oss: its thoughts, what begins the parts of a reply, and the tokens in these.
CHANNEL_THOUGHTS: Pair = ("<|channel|>analysis<|message|>", "<|end|>")
CHANNELS = ("<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>")
CHANNEL_MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>")
# At the beginning of a reply, or already at the end of the prompt, with models whose template has the marker.
_LEADING: tuple[Pair, ...] = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)


def leading_thoughts(template: str) -> tuple[Pair, ...]:
    """The markers of thoughts that the template knows, for the beginning of a reply."""
    return tuple(pair for pair in _LEADING if pair[1] in template)


def opened_thought(tail: str, pairs: Iterable[Pair]) -> str:
    """The marker that ends the thought that ``tail``, the end of a prompt, leaves open; empty without one."""
    return next((end for begin, end in pairs if tail.rfind(begin) > tail.rfind(end)), "")
