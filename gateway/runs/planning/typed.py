"""Parts of titles without words of politeness, and with question words spelled out. Pure."""

from __future__ import annotations

import re

from gateway.runs.planning.wordings import AFTER, BEFORE

_SPELLED = {
    "wat": "what", "wut": "what", "wats": "what's", "hu": "who", "hus": "who's", "wen": "when", "wich": "which",
    "wer": "where",
}  # fmt: skip
# At the beginning, or behind words such as "find out": elsewhere "Hu" may be a name.
_ASKED = re.compile(
    rf"^(?P<before>(?:(?:find|figure|work) out|look up|check|see|tell me|save|note(?: down)?)\s+)?"
    rf"(?P<word>{'|'.join(_SPELLED)})(?=\s)",
    re.I,
)


def bare(part: str) -> str:
    """A part without words of politeness and order."""
    text = part.strip()
    before = BEFORE.match(text)
    text = AFTER.sub("", text[before.end() :] if before else text)
    return _ASKED.sub(lambda found: f"{found['before'] or ''}{_SPELLED[found['word'].lower()]}", text)
