"""Claims about files of a project, which a model explains in its own words."""

from __future__ import annotations

import re

from gateway.ask.checking.evidence import Evidence, Support, meaning
from gateway.ask.text.words import features

_LEAST_SHARE = 0.5  # of a claim's words that the file has
_CODE = re.compile(r"``?([^`\n]+)``?")
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[./-][\w$]+)*")
# A word that is written as code without being marked as such.
_LIKE_CODE = re.compile(r"\w[_/]\w|\w\.[A-Za-z_]|[a-z][A-Z]|^_|^[A-Z]{2,}$")


def explained(text: str, evidence: Evidence) -> dict[int, Support]:
    """The files that have each name and number of a claim, and half of its words; none for a claim without names.

    Prose about code rarely has the words of one statement: "Pass `salt` to the constructor of `Signer`" explains a line
    that has the names alone. Whether what it says of them is true cannot be told.
    """
    claimed = features(text, evidence.ordinary)
    marked = {name for code in _CODE.findall(text) for name in _NAME.findall(code)}
    names = marked | {name for name in _NAME.findall(_CODE.sub(" ", text)) if _LIKE_CODE.search(name)}
    if not names:
        return {}
    titles = "\n".join(evidence.names.values())
    found: dict[int, Support] = {}
    for n in evidence.files:
        passages = [each for each in evidence.passages if each.n == n]
        shown = "\n".join([titles, *(f"{each.heading}\n{each.text}" for each in passages)])
        if not all(name in shown for name in names) or not all(each in shown for each in claimed.numbers):
            continue
        words = meaning(claimed.words) - claimed.numbers
        there = meaning(features(shown).words)
        if len(words & there) < _LEAST_SHARE * len(words):
            continue
        best = max(passages, key=lambda each: len(words & (each.words | each.context)))
        found[n] = Support(len(words & best.words) / (len(words) or 1), best.section, best.text)
    return found
