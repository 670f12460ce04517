"""Control tokens in a stream of text: each is one character that no text can contain. Pure.

Decoded UTF-8 has no lone surrogates, so each lone surrogate in the stream is a control token. A marker that is a token
of the vocabulary counts only as that token; spelled out by other tokens it is text. Any other marker is looked for in
the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
        """The marker as it is in the stream."""
        return self.signs[self.tokens[spelling]] if spelling in self.tokens else spelling

    def spelled(self, text: str) -> str:
        """``text`` with its control tokens spelled out."""
        return "".join(self._spellings.get(character, character) for character in text)

    def hidden(self, text: str) -> str:
        """``text`` without its control tokens."""
        return "".join(character for character in text if character not in self._spellings)
