"""The citation check: compares every sentence of an answer with the pages.

A supported sentence keeps its correct markers; if it has none, it gets the best page's. An unsupported sentence
keeps no marker. Markers inside code are code. Sentences are held back until the first supported one that is to the
point, and an answer without any is replaced by a quotation of the pages or by :data:`REFUSAL`, so nothing streamed is
ever retracted. Unsafe text is removed on the way (:mod:`gateway.ask.checking.clean`); links to cited pages stay.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.ask.checking.clean import REMOVED, without_links, without_markup
from gateway.ask.checking.evidence import ITEM_NUMBER, Backing, Evidence, Support, bare_claim, supporting
from gateway.ask.checking.relevance import LEAST_POINT, Quote, Relevance
from gateway.ask.text.passages import CELLS
from gateway.ask.text.sentences import MARKER, Splitter, Unit
from gateway.ask.text.words import content_words, is_babble, same_words
from gateway.base.visible import visible

REFUSAL = "The wiki does not say."

# Repeated sentences after which an answer ends.
_MOST_REPEATED = 3
_LEAST_CODE = 3  # characters of a line of code that identify its source
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_REFUSAL = re.compile(
    r"(?:sorry|unfortunately|hmm|well|nope)?,?\s*(?:the |this |that )?"
    r"(?:wiki|background|text|context|pages?|articles?|passages?|information|sources?)\b[^:\"“]{0,40}?"
    r"\b(?:do(?:es)?(?:n[o'’]t| not)|never)\s+"
    r"(?:say|contain|mention|tell|state|provide|include|answer|specify|cover|know)",
    re.I,
)

Verdict = Literal["supported", "unsupported", "refusal", "neutral"]


class Checked(Struct, frozen=True):
    """A checked unit. ``text`` lacks its leading space; ``changed`` is true if its markers were changed."""

    text: str
    verdict: Verdict
    pages: dict[int, Support] = {}  # cited, or the source of a line of code
    changed: bool = False


class AnswerChecker:
    """Checks an answer while it is generated, and cuts its repetitions. ``question`` is what it answers.

    A supported sentence is beside the point if its source answers much less well than the best quotation, or, for a
    ``doubtful`` question, if it takes up none of the question's words. An answer of such sentences, or without a
    supported one, is replaced by the quotation, if that answers clearly.
    """

    def __init__(self, evidence: Evidence, question: str = "", doubtful: bool = False) -> None:
        self._evidence = evidence
        self._question = question
        self._doubtful = doubtful
        self._relevance = Relevance(question, evidence)
        found = self._relevance.quotes() if question and not doubtful else []
        self.quotes = found if all(quote.clear for quote in found) else []
        self._aside = False  # whether a supported sentence was held back
        self._splitter = Splitter()
        self._held: list[str] | None = []  # None once a supported sentence was emitted
        self._said: Counter[str] = Counter()
        self._gap = ""  # before the sentences that were cut last
        self.unsupported: list[str] = []
        self.repeated: list[str] = []
        self.corrected = 0
        self.cited: dict[int, Support] = {}
        self.answer = ""

    def feed(self, text: str) -> str:
        """Add raw text and return the checked text that may be shown now."""
        return "".join(map(self._show, self._splitter.feed(visible(text))))

    @property
    def looping(self) -> bool:
        """Whether the answer only repeats itself, so that nothing new can be expected."""
        return len(self.repeated) >= _MOST_REPEATED or is_babble(MARKER.sub(" ", self._splitter.pending))

    def end(self, cut: bool = False) -> str:
        """Return the rest of the checked text. An answer ``cut`` by the token limit ends in an ellipsis.

        Of an answer that repeats itself, the unfinished sentence is dropped.
        """
        if self.looping:
            self._splitter = Splitter()
            cut = False
        units = self._splitter.feed(_ellipsis(self._splitter.pending)) if cut else []
        rest = "".join(map(self._show, units + self._splitter.end()))
        if self._held is None:
            self.quotes = []
            return rest
        if self.quotes:
            self.cited = {quote.n: Support(1.0, quote.section) for quote in self.quotes}
            self.answer = " ".join(map(self._quotation, self.quotes))
        elif self._aside and not self._doubtful:
            self.answer = "".join(self._held).strip()
        else:
            self.cited = {}
            self.answer = REFUSAL
        self._held = None
        return self.answer

    def _quotation(self, quote: Quote) -> str:
        """Words of a page, marked as such."""
        said = (f"{_plain(_without_cells(each))} [{quote.n}]" for each in quote.statements)
        return f'The page "{_plain(self._evidence.names[quote.n])}" says: {" ".join(said)}'

    def _to_the_point(self, checked: Checked) -> bool:
        if self._doubtful:
            return any(self._relevance.takes_up(checked.text, n) for n in checked.pages)
        if not self.quotes:
            return True
        scores = (self._relevance.score(n, support.statement) for n, support in checked.pages.items())
        least = LEAST_POINT * self.quotes[0].score
        return any(not checked.pages[n].statement for n in checked.pages) or max(scores, default=0.0) >= least

    def _show(self, unit: Unit) -> str:
        unit = msgspec.structs.replace(unit, body=without_markup(unit.body, unit.code).strip())
        if self._repeats(unit):
            self.repeated.append(unit.body)
            self._gap = max(self._gap, unit.lead, key=lambda lead: lead.count("\n"))
            return ""
        if "\n" in self._gap and "\n" not in unit.lead:  # lines without a full stop must not run together
            unit = msgspec.structs.replace(unit, lead=self._gap)
        self._gap = ""
        checked = check_unit(unit, self._evidence, self._question)
        self.corrected += checked.changed
        if checked.verdict == "unsupported":
            self.unsupported.append(unit.body)
        for n, support in checked.pages.items():
            if n not in self.cited or support.share > self.cited[n].share:
                self.cited[n] = support
        text = without_links(checked.text, [self._evidence.urls[n] for n in self.cited], unit.code)
        if checked.verdict == "supported" and not content_words(text.replace(REMOVED, "")) and not unit.code:
            return ""
        text = unit.lead + text if text else ""
        if self._held is not None:
            self._held.append(text)
            if checked.verdict != "supported":
                return ""
            if not self._to_the_point(checked):
                self._aside = True
                return ""
            text = "".join(self._held)
            self._held = None
        text = text if self.answer else text.lstrip()
        self.answer += text
        return text

    def _repeats(self, unit: Unit) -> bool:
        """Whether a sentence repeats itself or an earlier one.

        A single word may come a few times, as in a list, and a line of code always.
        """
        if unit.code:
            return False
        if is_babble(bare_claim(unit.body)):
            return True
        key = same_words(bare_claim(unit.body))
        self._said[key] += 1
        return self._said[key] > (1 if " " in key else _MOST_REPEATED)


def _without_cells(line: str) -> str:
    """A line without the signs of a list or a table."""
    first, *others = ITEM_NUMBER.sub("", line).split(CELLS)
    return f"{first.rstrip('.')}: {', '.join(others)}" if others else first


def _plain(text: str) -> str:
    return without_links(without_markup(" ".join(visible(text).split())), ())


def is_refusal(text: str) -> bool:
    """Whether a sentence says that the wiki has no answer."""
    return _REFUSAL.match(text.strip()) is not None


def check_unit(unit: Unit, evidence: Evidence, question: str = "") -> Checked:
    """Check one sentence or one line of code."""
    if unit.code:
        return _check_code(unit, evidence)
    bare, marked = _take_markers(unit.body)
    if not bare.strip():
        return Checked("", "neutral", changed=bool(marked))
    if is_refusal(bare):
        return Checked(bare, "refusal", changed=bool(marked))
    found = supporting(bare, evidence, question)
    if not found.pages:
        verdict: Verdict = "unsupported" if content_words(bare) else "neutral"
        return Checked(bare, verdict, changed=bool(marked))
    chosen = _citable(found, marked)
    pages = {n: found.pages[n] for n in chosen}
    if set(chosen) == set(marked):
        return Checked(unit.body, "supported", pages)
    return Checked(bare + " " + "".join(f"[{n}]" for n in chosen), "supported", pages, changed=True)


def _citable(found: Backing, marked: list[int]) -> list[int]:
    """Choose the correctly marked pages, or else the best one; all if they support the claim together."""
    if found.together:
        return list(found.pages)
    right = [n for n in marked if n in found.pages]
    return right or [max(found.pages, key=lambda n: (found.pages[n].share, -n))]


def _check_code(unit: Unit, evidence: Evidence) -> Checked:
    """A line of code is supported if a page contains it verbatim; it gets no marker."""
    line = unit.body.strip("`").strip()
    if len(line) >= _LEAST_CODE:
        for source in evidence.passages:
            if line in source.text:
                return Checked(unit.body, "supported", {source.n: Support(1.0, source.section)})
    return Checked(unit.body, "neutral")


def _take_markers(body: str) -> tuple[str, list[int]]:
    """Split off the markers and return their numbers; markers inside inline code stay."""
    numbers: list[int] = []
    while matches := _markers(body):
        pieces: list[str] = []
        at = 0
        for match in matches:
            pieces.append(body[at : match.start()].rstrip())
            at = match.end()
            numbers += [int(digits[:9]) for digits in re.findall("[0-9]+", match[0])]
        # Removing a marker can form another one: [[1]2].
        body = "".join([*pieces, body[at:]])
    return body.strip(), list(dict.fromkeys(numbers))


def _markers(body: str) -> list[re.Match[str]]:
    code = [match.span() for match in _INLINE_CODE.finditer(body)]
    found = MARKER.finditer(body)
    return [match for match in found if not any(start < match.start() < end for start, end in code)]


def _ellipsis(pending: str) -> str:
    """Return what marks ``pending`` as incomplete."""
    return " …" if not pending or pending[-1] in ".!?… \n" else "…"
