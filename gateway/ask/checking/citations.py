"""The citation check: compares every sentence of an answer with the pages.

A supported sentence keeps its correct markers; if it has none, it gets the best page's. An unsupported sentence is left
out if it claims something, with a name or a number, and keeps no marker otherwise. Markers inside code are code.
Sentences are held back until the first supported one that is to the point, and an answer without any is replaced by a
quotation of the pages or by :data:`REFUSAL`, so nothing streamed is ever retracted. Unsafe text is removed on the way
(:mod:`gateway.ask.checking.clean`); links to cited pages stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.ask.checking.clean import REMOVED, without_links, without_markup
from gateway.ask.checking.code import explained
from gateway.ask.checking.evidence import Backing, Evidence, Support, bare_claim, says_nothing, supporting
from gateway.ask.checking.excerpts import Quote, certain
from gateway.ask.checking.quotation import LEAST_POINT, Quotations
from gateway.ask.checking.relevance import Relevance
from gateway.ask.checking.shown import (
    header_of,
    lines_of,
    quotations,
    without_cells,
    without_colon,
    without_heading,
)
from gateway.ask.text.passages import CELLS
from gateway.ask.text.sentences import FENCE, MARKER, Splitter, Unit, ends_in_initial, take_markers
from gateway.ask.text.words import content_words, features, is_babble, same_words
from gateway.base.patterns import any_case
from gateway.base.visible import visible

REFUSAL = "The wiki does not say."

# Repeated sentences after which an answer ends.
_MOST_REPEATED = 3
_LEAST_REMARK = 4  # words of a line that is shown without a source and without a full stop
_LEAST_CODE = 3  # characters of a line of code that identify its source
_REFUSAL = any_case(
    r"(?:sorry|unfortunately|hmm|well|nope)?,?\s*(?:the |this |that )?"
    r"(?:wiki|background|text|context|pages?|articles?|passages?|information|sources?)\b[^:\"“]{0,40}?"
    r"\b(?:do(?:es)?(?:n[o'’]t| not)|never)\s+"
    r"(?:say|contain|mention|tell|state|provide|include|answer|specify|cover|know)"
    r"|(?:the |an |this )?(?:answer|information|question)\b[^:\"“]{0,80}?\b"
    r"(?:(?:is|are|was|were)(?: not|n[o'’]t)|cannot be) (?:\w+ly )?"
    r"(?:provided|mentioned|given|stated|specified|found|available|included|listed|answered)\b"
    r"|there is no (?:mention|information|answer)\b(?! \w+ing\b)|i (?:do not|don['’]t) know\b"
)

Verdict = Literal["supported", "unsupported", "refusal", "neutral"]


class Checked(Struct, frozen=True):
    """A checked unit. ``text`` lacks its leading space; ``changed`` is true if its markers were changed."""

    text: str
    verdict: Verdict
    pages: dict[int, Support] = {}  # cited, or the source of a line of code
    changed: bool = False
    bare: bool = False  # supported with the question's words


class ShownUnit(Struct, frozen=True):
    """A checked text with the white space before it; ``aside`` if it is supported, but beside the point."""

    text: str
    checked: Checked
    aside: bool


class AnswerChecker:
    """Checks an answer while it is generated, and cuts its repetitions. ``question`` is what it answers.

    A supported sentence is beside the point if its source answers much less well than the best quotation, or, for a
    ``doubtful`` question, if it takes up none of the question's words. An answer of such sentences, or without a
    supported one, is replaced by the quotation, if that answers clearly, and one of such sentences also by a quotation
    that has most of the question's words. Files of a project are not quoted, and every supported sentence about them is
    to the point. Where ``refusals_stand``, the model's own refusal is replaced only by a quotation with all of the
    question's words.
    """

    def __init__(
        self,
        evidence: Evidence,
        question: str = "",
        doubtful: bool = False,
        terms: Sequence[str] = (),
        refusals_stand: bool = False,
        among: Relevance | None = None,
    ) -> None:
        self._evidence = evidence
        self._question = question
        self._doubtful = doubtful
        self._refusals_stand = refusals_stand
        self._relevance = Quotations(question, evidence, terms, among)
        found = self._relevance.quotes() if question and not doubtful and not evidence.files else []
        self._near = found if all(quote.near for quote in found) else []
        self.quotes = found if all(quote.clear for quote in found) else []
        self._least = LEAST_POINT * found[0].score if found else 0.0
        self._splitter = Splitter()
        self._held: list[ShownUnit] | None = []  # None once a supported sentence to the point was emitted
        self._said: Counter[str] = Counter()
        self._bare: set[bool] = set()  # whether the names and numbers that were said alone had digits
        self._ended = False  # the model began to write its prompt
        self._gap = ""  # before the sentences that were cut last
        self.unsupported: list[str] = []
        self.repeated: list[str] = []
        self.left_out = 0  # unsupported claims
        self.corrected = 0
        self.cited: dict[int, Support] = {}
        self.answer = ""
        # Of a block of code: its lines so far while no page has one of them, then empty; None outside of a block.
        self._block: list[ShownUnit] | None = None
        self._given: set[str] = set()  # statements that support what was emitted

    def feed(self, text: str) -> str:
        """Add raw text and return the checked text that may be shown now."""
        return "".join(map(self._show, self._splitter.feed(visible(text))))

    @property
    def certain(self) -> bool:
        """Whether the quotes alone cover enough of the question to answer it."""
        return certain(self.quotes)

    @property
    def looping(self) -> bool:
        """Whether the answer only repeats itself, so that nothing new can be expected."""
        babble = is_babble(MARKER.sub(" ", self._splitter.pending))
        return babble or self._ended or len(self.repeated) >= _MOST_REPEATED

    def end(self, cut: bool = False) -> str:
        """Return the rest of the checked text. An answer ``cut`` by the token limit ends in an ellipsis.

        Of an answer that repeats itself, the unfinished sentence is dropped.
        """
        if self.looping:
            self._splitter = Splitter()
            cut = False
        before = self._splitter.pending[-1:] or " "
        units = self._splitter.feed(" …" if before in ".!?… \n" else "…") if cut else []
        rest = "".join(map(self._show, units + self._splitter.end()))
        if self._held is None:
            last = MARKER.sub("", self.answer).rstrip()[-1:]
            if cut and last != "…":  # its last sentence was left out
                rest += self._add(" …")
            return rest + self._missing(cut)
        held, self._held = self._held, None
        refused = self._refusals_stand and any(each.checked.verdict == "refusal" for each in held)
        if refused and not all(quote.complete for quote in self.quotes):
            self.quotes = []
        beside = not self._doubtful and any(each.aside for each in held)
        if quotes := self.quotes or (self._near if beside else []):
            return self._quoted(quotes)
        if beside and self._relevance.question.several:
            return self._emit(held)  # no sentence may have all that is asked for
        return self._add(REFUSAL)

    def _add(self, text: str) -> str:
        self.answer += text
        return text

    def _missing(self, cut: bool) -> str:
        """Name the missing part of an answer: lines behind its colon, pages, or half of the steps asked for."""
        question = self._relevance.question
        unfinished = MARKER.sub("", self.answer).rstrip().endswith(":") and not cut
        if unfinished and (quote := self._relevance.behind(self._given)) is not None:
            return self._add("\n" + "\n".join(lines_of(quote)))
        if (question.lists or self._relevance.compared) and len(self.quotes) > 1 and not cut:
            self.quotes = [quote for quote in self.quotes if quote.n not in self.cited]
            return self._quoted(self.quotes)
        asked = question.how_to or question.code
        self.quotes = [quote for quote in self.quotes if quote.lines] if asked else []
        given = sum(each.text in self._given for quote in self.quotes for each in quote.lines)
        if 2 * given >= sum(len(quote.lines) for quote in self.quotes):
            return ""
        return self._quoted(self.quotes)

    def _quoted(self, quotes: Sequence[Quote]) -> str:
        """Add quotations to the answer, or answer with them alone."""
        if not quotes:
            return ""
        self.cited |= {quote.n: Support(1.0, quote.section) for quote in quotes}
        return self._add(("\n\n" if self.answer else "") + quotations(quotes, self._evidence))

    def _to_the_point(self, checked: Checked) -> bool:
        if self._evidence.files:
            return True
        beside = self._relevance.beside_the_point
        if all(beside(n, support.statement) for n, support in checked.pages.items() if support.statement):
            return False
        if self._doubtful:
            return any(self._relevance.takes_up(checked.text, n) for n in checked.pages)
        single = self._relevance.question.kind is not None
        lines = [] if single else [each.text for quote in self.quotes for each in quote.lines]
        return any(
            not support.statement
            or support.statement in lines
            or (
                self._relevance.score(n, support.statement) >= self._least
                and ((not single and not self.quotes) or self._relevance.has_kind(support.statement, n))
            )
            for n, support in checked.pages.items()
        )

    def _show(self, unit: Unit) -> str:
        unit = msgspec.structs.replace(unit, body=without_markup(unit.body, unit.code).strip())
        if unit.code:
            return self._cut(unit) if self._ended else self._show_code(unit)
        if self._repeats(unit):
            self.repeated.append(unit.body)
            return self._cut(unit)
        if self._echoes(unit):
            self._ended = self._ended or self._held is None
            return self._cut(unit)
        if "\n" in self._gap and "\n" not in unit.lead:  # lines without a full stop must not run together
            unit = msgspec.structs.replace(unit, lead=self._gap)
        self._gap = ""
        checked = self._checked(unit)
        self.corrected += checked.changed
        if checked.verdict == "unsupported":
            self.unsupported.append(unit.body)
            if self._claims(checked.text):
                self.left_out += 1
                return self._cut(unit)
            if says_nothing(checked.text):
                return self._cut(unit)
        own = [self._evidence.urls[n] for n in {*self.cited, *checked.pages}]
        text = without_links(self._readable(checked), own)
        if checked.pages and not content_words(text.replace(REMOVED, "")):
            return self._cut(unit)
        supported = checked.verdict == "supported"
        aside = supported and self._held is not None and not self._to_the_point(checked)
        return self._place(ShownUnit(unit.lead + text if text else "", checked, aside))

    def _readable(self, checked: Checked) -> str:
        """The text of a checked sentence; a table's row has the names of its columns."""
        if CELLS not in checked.text or not checked.pages:
            sections = {(n, support.section) for n, support in checked.pages.items()}
            return without_colon(without_heading(checked.text, sections, self._evidence))
        said, marked = take_markers(checked.text)
        sources = {n: support.statement for n, support in checked.pages.items()}
        return (
            without_cells(said, header_of(sources, self._evidence)) + " " + "".join(f"[{n}]" for n in marked)
        )

    def _place(self, shown: ShownUnit) -> str:
        """Emit a checked unit, or hold it until a supported one is to the point."""
        if self._held is None:
            return self._emit([shown])
        self._held.append(shown)
        if shown.checked.verdict != "supported" or shown.aside:
            return ""
        held, self._held = self._held, None
        return self._emit([each for each in held if not each.aside])

    def _show_code(self, unit: Unit) -> str:
        """Show those lines of a block of code that a page has, and short ones beside them; no block without such."""
        text = without_links(unit.body, (), True)
        shown = ShownUnit(unit.lead + text if text else "", _check_code(unit, self._evidence), False)
        fence = unit.body.startswith(FENCE)
        if fence and self._block is None:
            self._block = [shown]
            return ""
        if not fence and shown.checked.verdict == "unsupported":
            self.unsupported.append(unit.body)
            self.left_out += 1
            return ""
        pending = self._block or []
        if fence:
            self._block = None
            return "" if pending else self._place(shown)
        if shown.checked.verdict == "neutral" and pending:
            pending.append(shown)
            return ""
        self._block = []
        return "".join(map(self._place, [*pending, shown]))

    def _checked(self, unit: Unit) -> Checked:
        """Check a unit. A name or number that is said alone must be what is asked for, and come first."""
        checked = _check_sentence(unit, self._evidence, self._question)
        if not checked.bare:
            return checked
        said = take_markers(unit.body)[0]
        numbers = features(said).numbers
        fits = any(
            self._relevance.has_kind(said, n) and self._relevance.counted(numbers, support.statement)
            for n, support in checked.pages.items()
        )
        if not fits or bool(numbers) in self._bare:
            return Checked(said, "unsupported", changed=checked.changed)
        self._bare.add(bool(numbers))
        return checked

    def _emit(self, shown: list[ShownUnit]) -> str:
        for each in shown:
            for n, support in each.checked.pages.items():
                self._given.add(support.statement)
                if n not in self.cited or support.share > self.cited[n].share:
                    self.cited[n] = support
        text = "".join(each.text for each in shown)
        return self._add(text if self.answer else text.lstrip())

    def _cut(self, unit: Unit) -> str:
        """Leave a unit out, but not the line break before it."""
        self._gap = max(self._gap, unit.lead, key=lambda lead: lead.count("\n"))
        return ""

    def _echoes(self, unit: Unit) -> bool:
        """Whether the model writes the question instead of answering it; what follows it is a new one."""
        asked = same_words(self._question)
        return self._ended or (asked.count(" ") > 1 and asked in same_words(unit.body))

    def _claims(self, text: str) -> bool:
        """Whether an unsupported sentence says something that a reader could believe, or is no sentence."""
        found = features(bare_claim(text), self._evidence.ordinary)
        fragment = len(text.split()) < _LEAST_REMARK and text.rstrip("*_`\"')")[-1:] not in ".!?…"
        code = text.rstrip().endswith((";", "{", "}"))
        return bool(found.names or found.numbers or CELLS in text or '"' in text or fragment or code)

    def _repeats(self, unit: Unit) -> bool:
        """Whether a sentence repeats itself or an earlier one. A single word may come a few times, as in a list."""
        if is_babble(bare_claim(unit.body)):
            return True
        key = same_words(bare_claim(unit.body))
        self._said[key] += 1
        return self._said[key] > (1 if " " in key else _MOST_REPEATED)


def is_refusal(text: str) -> bool:
    """Whether a sentence says that the wiki has no answer."""
    return _REFUSAL.match(text.strip()) is not None


def _check_sentence(unit: Unit, evidence: Evidence, question: str) -> Checked:
    bare, marked = take_markers(unit.body)
    if ends_in_initial(bare):
        return Checked(bare, "unsupported", changed=bool(marked))
    if not bare.strip():
        return Checked("", "neutral", changed=bool(marked))
    if is_refusal(bare):
        return Checked(bare, "refusal", changed=bool(marked))
    heading = bare.endswith(":") and len(bare.split()) < _LEAST_REMARK
    found = Backing() if heading else supporting(bare, evidence, question)
    if evidence.files and not heading and not found.pages:
        found = Backing(explained(bare, evidence))
    if not found.pages:
        verdict: Verdict = "unsupported" if content_words(bare) else "neutral"
        return Checked(bare, verdict, changed=bool(marked))
    chosen = _citable(found, marked)
    pages = {n: found.pages[n] for n in chosen}
    if set(chosen) == set(marked) and not MARKER.match(unit.body):
        return Checked(unit.body, "supported", pages, bare=found.bare)
    marked_text = bare + " " + "".join(f"[{n}]" for n in chosen)
    return Checked(marked_text, "supported", pages, changed=True, bare=found.bare)


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
        return Checked(unit.body, "unsupported")
    return Checked(unit.body, "neutral")
