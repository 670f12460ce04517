"""Whether the pages answer a question, and the sentences that do. Words decide, no model.

A question has names (capitalised words, numbers and symbols), other words, and a kind: it may ask for a year, a number
or a person. A passage fits if it has all names, with its headings and its page's title and first passage, and a part of
the words that the title does not have. A question that no passage fits is not answered by these pages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile

import msgspec
from msgspec import Struct

from gateway.ask.checking.evidence import SAME_AS, Evidence, EvidencePassage, Statement, meaning
from gateway.ask.checking.question import read_question, same_word, translated
from gateway.ask.text.passages import CELLS, introduces
from gateway.ask.text.synonyms import measured, synonymous
from gateway.ask.text.words import content_words, features

# The share of its words that a question must have in a passage, beside names and title: more where the title is not in
# the question, and for a sentence that stands in for an answer.
_LEAST_SHARE, _LEAST_WITHOUT_TITLE, _LEAST_CLEAR, _LEAST_CLEAR_UNKNOWN = 0.3, 0.5, 0.5, 0.66
# Weights of a question's word in a sentence, in the ones beside it, and above it.
_OWN, _BESIDE, _ABOVE = 1.0, 0.4, 0.5
# In mean weights of a word: the kind of thing that is asked for, a passage that fits, a title that the question names,
# the first sentence of a page for a question that names only its title, a sentence that begins with what is to be
# defined, steps where these are asked for, a sentence, and the price of a second one.
_KIND, _FITS, _TITLED, _FIRST, _DEFINES, _STEPS, _PROSE, _SECOND = 2.0, 0.5, 0.6, 2.0, 1.0, 2.0, 0.3, 0.3
# A row under what is asked for, one that begins with a name of the question, and the price of a sentence about the
# text itself.
_COLUMN, _ROW, _ABOUT = 1.0, 1.0, 1.0
_LEAST_TITLE = 0.6  # of the question's words, for a page whose title asks about the same
_PLACE = 0.05  # what each place among the pages costs
# Of the best score, for a sentence that answers about as well.
LEAST_POINT = 0.9
_LEAST_CHOSEN = 0.8  # the same for a clear quotation, beside one that is not
_SHORT = 4  # words of a question that needs nearly all of them
_LONGEST, _LONGEST_LIST = 400, 1000  # characters of a quotation
_LEAST_WORDS = 4  # of a sentence
_NEAR = 3  # words between a number and what it counts

# A person is named in two words, before a verb, after "by", or in a table's cell.
_PERSON = re.compile(
    r"\b[A-Z][\w'’-]+ (?:[A-Z]\.? ?|(?:de|da|di|la|le|van|von|der|den) )*[A-Z]\w"
    r"|\b[A-Z]\w+,? (?:\w+ed|wrote|made|built|won)\b|\b(?:by|after)\s|[A-Z]\. ?[A-Z]\w| \| |\w: "
)
_YEAR = re.compile(r"(?<![0-9])(?:1[0-9]|20)[0-9]{2}(?![0-9])")
_NUMBER = re.compile(
    r"[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|"
    r"infinite(?:ly)?|unlimited|single|no|none|both|một|hai|ba|bốn|sáu|bảy|tám|chín|mười)\b",
    re.I,
)
_VERBS = frozenset(SAME_AS.values())
_ITEM_NUMBER = re.compile(r"\s*([0-9]+)[.)]")
_DEFINED = re.compile(r"(.{2,80}?)(?: (?:is|are|was|were|means?|refers? to|stands? for|denotes?)\b|: )")
# A sentence about the text says nothing about its subject.
_ABOUT_TEXT = re.compile(
    r"(?:in )?(?:this|the (?:next|following|above|previous)|these|here) "
    r"(?:chapters?|sections?|pages?|documents?|manual|guide|tutorial|appendix|articles?|tables?|figures?|part|"
    r"is a list)\b",
    re.I,
)


class Quote(Struct, frozen=True):
    """Sentences of page ``n``, word for word, from the evidence's passage of that index.

    ``lines`` are a list, or lines of code or a table after a colon. ``clear`` if the sentences answer the question, and
    ``complete`` if they have all of its words.
    """

    n: int
    section: int
    passage: int
    start: int  # index of its first statement in the passage
    statements: tuple[str, ...]
    lines: list[Statement]
    score: float
    clear: bool
    complete: bool


class Relevance:
    """Compares a question with the passages of numbered pages.

    ``hopeless`` if no passage has the names, or without names enough of the words: no model can answer from these.
    ``doubtful`` if every passage that has the names lacks the other words: an answer must have one of them.
    """

    def __init__(self, text: str, evidence: Evidence, terms: Sequence[str] = ()) -> None:
        self._evidence = evidence
        self._every = [each.words | each.context for each in evidence.passages]
        known = frozenset[str]().union(*self._every)
        self.question = read_question(text, known, evidence.ordinary)
        if terms and not self.question.native:
            self.question = translated(
                self.question, read_question(" ".join(terms), known, frozenset()), known
            )
        other = self.question.words - self.question.names.keys()
        self._asked_as = {word: asked for asked in other for word in known if synonymous(word, asked)} | {
            word: asked for asked in self.question.words for word in known if same_word(word, asked)
        }
        self._leads: dict[int, EvidencePassage] = {}
        for each in evidence.passages:
            self._leads.setdefault(each.n, each)
        prose = sorted(
            evidence.statements,
            key=lambda each: (each.kind != "prose", _ABOUT_TEXT.match(each.text) is not None),
        )
        self._first: dict[int, Statement] = {}  # of each page: of prose, where it has any
        for statement in prose:
            self._first.setdefault(statement.n, statement)
        self._known = self._shared(self.question.words, known)
        self._weights = self._weighed()
        self._mean = sum(self._weights.values()) / max(1, len(self._weights)) or 1.0
        self._shares = [
            self._share(each, every) for each, every in zip(evidence.passages, self._every, strict=True)
        ]

    @property
    def hopeless(self) -> str:
        """Why no passage can answer; empty if one may."""
        if any(share is not None for share in self._shares):
            return ""
        known = self._shared(self.question.names.keys(), frozenset[str]().union(*self._every))
        unknown = [f"`{token}`" for name, token in self.question.names.items() if name not in known]
        return f"no page has {' or '.join(unknown)}" if unknown else "it has nothing about the question"

    @property
    def doubtful(self) -> bool:
        return all(share is None or share < _LEAST_SHARE for share in self._shares)

    def _weighed(self) -> dict[str, float]:
        """The words of the question, with less weight if more passages have them."""
        holding = Counter(word for every in self._every for word in self._shared(self.question.words, every))
        size = len(self._every)
        return {
            word: math.log(1.0 + (size - holding[word] + 0.5) / (holding[word] + 0.5))
            for word in self.question.words
        }

    def _share(self, passage: EvidencePassage, every: frozenset[str]) -> float | None:
        """The share of the question's words that the passage has, beside names and title; None if it is off topic."""
        question, title = self.question, self._evidence.titles[passage.n]
        named = self._shared(question.names.keys(), every | self._leads[passage.n].words)
        if not question.words or len(named) < (
            min(1, len(question.names)) if question.several else len(question.names)
        ):
            return None
        sought = self._sought(passage.n)
        about = bool(self._shared(question.words & (question.names.keys() | title), every))
        if not sought or (about and not question.native):
            return 1.0
        alike = question.words & title - question.names.keys()
        if len(alike) > 1 and len(alike) >= _LEAST_TITLE * len(question.words):
            return 1.0
        if sought <= _VERBS and self.has_kind(passage.text, passage.n):
            return 1.0
        found = self._shared(sought, every)
        missing = sought - found
        if len(missing) == 1 and any(measured(word, passage.text) for word in missing):
            found = sought
        share = len(found) / len(sought)
        enough = share >= _LEAST_WITHOUT_TITLE and len(found) >= min(2, len(sought))
        return share if about or enough else None

    def _shared(self, words: Set[str], every: frozenset[str]) -> frozenset[str]:
        """Those ``words`` of the question that are among ``every`` one of a text."""
        return frozenset(words & {self._asked_as[word] for word in every if word in self._asked_as})

    def counted(self, numbers: Set[str], statement: str) -> bool:
        """Whether a statement has one of the numbers before what the question counts; rows pass."""
        if not numbers or not self.question.counts or CELLS in statement:
            return True
        last, at = "", 0  # the number before a word, and its place
        for place, word in enumerate(content_words(statement)):
            if word.isdigit():
                last, at = word, place
            elif last in numbers and place - at <= _NEAR and same_word(word, self.question.counts):
                return True
        return False

    def _sought(self, n: int) -> frozenset[str]:
        return self.question.words - self.question.names.keys() - self._evidence.titles[n]

    def _defines(self, text: str) -> bool:
        """Whether a sentence begins with what the question names: "A vendor is a company"."""
        if (begin := _DEFINED.match(text)) is None:
            return False
        words = meaning(content_words(begin[1]))
        asked = self._shared(self.question.words, words)
        return asked == self.question.words and len(words) <= len(asked) + 1

    def has_kind(self, text: str, n: int) -> bool:
        """Whether the text of page ``n`` has a thing of the kind that is asked for."""
        match self.question.kind:
            case "year":
                return _YEAR.search(text) is not None
            case "number":
                return _NUMBER.search(text) is not None
            case "person":
                known = self.question.words | self._evidence.titles[n]
                named = features(text, self._evidence.ordinary).names - known
                return bool(named) and _PERSON.search(text) is not None
        return True

    def quotes(self) -> list[Quote]:
        """The sentences that answer best: of one page, or of each page that a question about several names."""
        every = list(self._candidates())
        least = _LEAST_CHOSEN * max((quote.score for quote in every), default=0.0)
        best: dict[int, Quote] = {}
        for quote in sorted(every, key=lambda quote: (quote.clear, quote.score), reverse=True):
            if quote.score >= least:
                best.setdefault(quote.n, quote)
        named = [quote for quote in best.values() if self._evidence.titles[quote.n] <= self.question.words]
        chosen = named if self.question.several and len(named) > 1 else list(best.values())[:1]
        return [self._with_context(quote) for quote in chosen]

    def takes_up(self, text: str, n: int) -> bool:
        """Whether a text about page ``n`` has a name of the question, and a word that is asked for beside it."""
        said = meaning(content_words(text))
        named = not self.question.names or self.question.names.keys() & (said | self._evidence.titles[n])
        return bool(named) and any(same_word(word, each) for word in said for each in self._sought(n))

    def score(self, n: int, statement: str) -> float:
        """How well a statement of page ``n`` answers, on the scale of the quotes."""
        return max(
            (
                self._quote(index, start, start + 1).score
                for index, passage in enumerate(self._evidence.passages)
                for start, each in enumerate(passage.statements)
                if passage.n == n and each.text == statement
            ),
            default=0.0,
        )

    def _with_context(self, quote: Quote) -> Quote:
        """The sentences with the rest of their paragraph, unless the question asks for a single thing."""
        passage = self._evidence.passages[quote.passage]
        statements = passage.whole
        kinds = [each.kind for each in statements[:2]]
        if kinds == ["code", "prose"] and not quote.lines and quote.start < 2:
            term = f"{statements[0].text.strip()}: {statements[1].text}"
            quote = msgspec.structs.replace(quote, start=1, statements=(term, *quote.statements[1:]))
        if quote.lines or self.question.kind is not None or statements[quote.start].kind != "prose":
            return quote
        start, end = quote.start, quote.start + len(quote.statements)
        while _quotable(statements, start, end + 1):
            end += 1
        while start and _quotable(statements, start - 1, end):
            start -= 1
        before = tuple(each.text for each in statements[start : quote.start])
        after = tuple(each.text for each in statements[quote.start + len(quote.statements) : end])
        words = passage.context.union(*(each.words for each in statements[start:end]))
        complete = quote.clear and not self.question.words - self._shared(self.question.words, words)
        return msgspec.structs.replace(
            quote,
            start=start,
            statements=(*before, *quote.statements, *after),
            complete=quote.complete or complete,
        )

    def _candidates(self) -> Iterator[Quote]:
        for index, passage in enumerate(self._evidence.passages):
            for start in range(len(passage.statements)):
                if self.question.kind is None and _begins_list(passage.whole, start):
                    yield self._quote(index, start, start)
                for end in (start + 1, start + 2):
                    if _quotable(passage.statements, start, end):
                        yield self._quote(index, start, end)

    def _quote(self, index: int, start: int, end: int) -> Quote:
        question, passage, share = self.question, self._evidence.passages[index], self._shares[index]
        statements = passage.whole
        said_here = statements[start:end]
        own = frozenset[str]().union(*(each.words for each in said_here))
        lines = _lines(statements, start, end)
        beside = frozenset[str]().union(
            *(each.words for each in [*statements[max(0, start - 1) : end + 1], *lines])
        )
        score, left = 0.0, question.words
        title, sought = self._evidence.titles[passage.n], self._sought(passage.n)
        titled = title <= question.words
        # A title's words say no more in a sentence than above it.
        for words, weight in ((own - title, _OWN), (beside - title, _BESIDE), (passage.context, _ABOVE)):
            found = self._shared(left, words)
            score += weight * sum(self._weights[word] for word in found)
            left -= found
        text = " ".join(each.text for each in said_here)
        has_kind = self.has_kind(text, passage.n)
        fits = share is not None and share >= _LEAST_SHARE
        whole = not sought and not question.words - self._shared(question.words, own | passage.context)
        row = CELLS in text
        about_text = _ABOUT_TEXT.match(text) is not None
        first = (
            whole and not about_text and not question.how_to and statements[start] is self._first[passage.n]
        )
        score += self._mean * (
            _KIND * (has_kind and question.kind is not None)
            + _FITS * fits
            + _TITLED * len(title & question.words) ** 2 / max(1, len(title))
            + max(_FIRST * first, _DEFINES * (question.defines and self._defines(text)))
            + _COLUMN * (row and question.which in passage.context)
            + _ROW * (row and bool(question.names.keys() & set(content_words(text.partition(CELLS)[0]))))
            - _ABOUT * about_text
            + _STEPS * (question.how_to and len(lines) > 1)
            - _SECOND * max(0, end - start - 1)
            + _PROSE * (statements[start].kind == "prose")
        )
        every = own | passage.context | frozenset[str]().union(*(each.words for each in lines))
        said = self._shared(sought, every)
        # A word that no page has may be the very thing that is asked for.
        sure = titled or question.names or sought <= self._known or len(sought) > _SHORT
        clear = len(said) >= (_LEAST_CLEAR if sure else _LEAST_CLEAR_UNKNOWN) * len(sought)
        return Quote(
            passage.n,
            passage.section,
            index,
            start,
            tuple(each.text for each in said_here),
            lines,
            score / (1.0 + _PLACE * list(self._leads).index(passage.n)),
            has_kind and (share == 1.0 or (fits and clear)),
            has_kind and fits and not question.words - self._shared(question.words, every),
        )


def _begins_list(statements: list[Statement], at: int) -> bool:
    """Whether a list begins here that no sentence introduces."""
    kinds = [each.kind for each in statements[at : at + 2]]
    before = statements[at - 1] if at else None
    number = _ITEM_NUMBER.match(statements[at].text)
    if number is not None and number[1] != "1":
        return False
    return kinds == ["list", "list"] and (
        before is None or (before.kind != "list" and not introduces(before.text, "list"))
    )


def _lines(statements: list[Statement], start: int, end: int) -> list[Statement]:
    """The lines behind a sentence with a colon, or a list, if these are not too many to take in."""
    lines = list(takewhile(lambda each: each.kind != "prose", statements[end:]))
    if start < end and lines and not introduces(statements[end - 1].text, lines[0].kind):
        return []
    listed = all(each.kind == "list" for each in lines)
    return lines if sum(len(each.text) for each in lines) <= (_LONGEST_LIST if listed else _LONGEST) else []


def _quotable(statements: list[Statement], start: int, end: int) -> bool:
    """Whether a line, or one or two whole sentences, can stand alone, and is not more than a reader takes in."""
    chosen = statements[start:end]
    if end > len(statements) or sum(len(each.text) for each in chosen) > _LONGEST:
        return False
    if not all(each.kind == "prose" for each in chosen):
        return len(chosen) == 1
    begins = start == 0 or not chosen[0].text[:1].islower()  # else it is the rest of a sentence: "Ook! is …"
    return begins and all(len(each.text.split()) >= _LEAST_WORDS for each in chosen)
