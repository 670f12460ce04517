"""Removal of invisible characters from foreign text: they can control terminals, and reorder or hide text.

Zero-width joiners stay, because scripts and emoji need them, as do tab and line feed.
"""

from __future__ import annotations

import re

# All line and page breaks except the line feed.
_BREAKS = re.compile("\r(?!\n)|[\x0b\x0c\x85\u2028\u2029]")
# Control characters; direction marks and embeddings; fillers and other characters without a glyph; lone surrogates; the
# tags of plane 14.
_INVISIBLE = re.compile(
    "[\x00-\x08\r\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_EITHER = re.compile(f"{_BREAKS.pattern}|{_INVISIBLE.pattern}")


def visible(text: str) -> str:
    """Remove invisible characters; breaks except the line feed become spaces."""
    return _INVISIBLE.sub("", _BREAKS.sub(" ", text))


def escaped(text: str) -> str:
    r"""Write invisible characters as ``\uXXXX``, which does not change the meaning of JSON."""
    return _EITHER.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    pairs = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at : at + 2].hex()}" for at in range(0, len(pairs), 2))
