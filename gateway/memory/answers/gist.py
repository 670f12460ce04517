"""A summary of a pasted text in its own sentences. Pure, English.

Asked to summarize, small models repeat the text, or write something else. Its most telling sentences are a summary.
"""

from __future__ import annotations

import re
from collections import Counter

from gateway.base.calendar import NUMBERS
from gateway.base.patterns import any_case
from gateway.memory.learning.entailment import content
from gateway.memory.learning.plain import FILLERS

GIST = "In its own words:"
_ASKS = any_case(
    rf"\W*(?:(?:{FILLERS}|(?:can|could|would|will) you|i need you to)\W+)*(?:summari[sz]e|sum up|tl;?dr|"
    r"(?:give|write|make)(?: me)? an? (?:(?:short|brief|quick|one[- ]sentence) )*summary of|what is the gist of)"
    r"(?: (?:this|these|the|following|for me|it|below|text|email|mail|message|paragraph|article|note|briefly|please|"
    rf"shortly|in (?:just |only )?(?P<number>\d|{'|'.join(NUMBERS[1:6])}|a) sentences?))*\s*[:\n]\s*(?P<text>.+)",
    re.S,
)
# Not behind "Mr." and "J."
_END = re.compile(r"(?<=[.!?…])(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\b\w\.)\s+")
_PART = 3  # of so many sentences one is kept


def gist_answer(asked: str) -> str:
    """A third of the sentences of a text that a message asks to summarize, or as many as it names; "" for another one.

    The first one stands for the text, others by the words that they share with the rest.
    """
    found = _ASKS.fullmatch(asked)
    said = _END.split(" ".join(found["text"].split())) if found else []
    if found is None or len(said) < 2:
        return ""
    named = (found["number"] or "").casefold()
    wanted = NUMBERS.index(named) if named in NUMBERS else int(named.replace("a", "1") or 0)
    most = wanted or -(-len(said) // _PART)
    weights = Counter(stem for each in said for stem in content(each))
    ranked = sorted(range(1, len(said)), key=lambda at: -sum(weights[stem] - 1 for stem in content(said[at])))
    return f"{GIST} {' '.join(said[at] for at in sorted([0, *ranked[: most - 1]]))}"
