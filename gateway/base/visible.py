"""Text that others wrote, without the characters that nobody sees: these drive terminals, and reorder or hide text.

Joiners (zero width) stay, because scripts and emoji need them, and so do tab and line feed.
"""

from __future__ import annotations

import re

# Every line or page break but the line feed.
_BREAKS = re.compile("\r(?!\n)|[\x0b\x0c\x85\u2028\u2029]")
# Control characters; signs for direction, also those that come in pairs; fillers and others without a shape; halves of
# surrogate pairs; the tags of plane 14.
_INVISIBLE = re.compile(
    "[\x00-\x08\r\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_EITHER = re.compile(f"{_BREAKS.pattern}|{_INVISIBLE.pattern}")


def visible(text: str) -> str:
    """Without invisible characters; every break but the line feed is a space."""
    return _INVISIBLE.sub("", _BREAKS.sub(" ", text))


def escaped(text: str) -> str:
    r"""Those characters written as ``\uXXXX``: JSON means the same afterwards."""
    return _EITHER.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    pairs = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at : at + 2].hex()}" for at in range(0, len(pairs), 2))
