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
from difflib import get_close_matches
from itertools import takewhile
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.ask.checking.evidence import SAME_AS, Evidence, EvidencePassage, Statement, as_meant, meaning
from gateway.ask.text.passages import CELLS
from gateway.ask.text.words import content_words, features, tokens
from gateway.base.stems import stem
from gateway.store.stop_words import STOP_WORDS, stop_words

Kind = Literal["year", "number", "person"]

# The share of its words that a question must have in a passage, beside names and title: more where the title is not in
# the question, and for a sentence that stands in for an answer.
_LEAST_SHARE, _LEAST_WITHOUT_TITLE, _LEAST_CLEAR, _LEAST_CLEAR_UNKNOWN = 0.3, 0.5, 0.5, 0.66
# Weights of a question's word in a sentence, in the ones beside it, and above it.
_OWN, _BESIDE, _ABOVE = 1.0, 0.4, 0.5
# In mean weights of a word: the kind of thing that is asked for, a passage that fits, a title that the question names,
# the first sentence of a page for a question that names only its title, a sentence, and the price of a second one.
_KIND, _FITS, _TITLED, _FIRST, _PROSE, _SECOND = 2.0, 0.5, 0.6, 2.0, 0.3, 0.3
_PLACE = 0.05  # what each place among the pages costs
# Of the best score, for a sentence that answers about as well.
LEAST_POINT = 0.8
_SHORT = 4  # words of a question that needs nearly all of them
_LONGEST = 400  # characters of a quotation
_LEAST_WORDS = 4  # of a sentence
_SHORTEST_MISSPELT, _SIMILAR = 5, 0.81
_NEAR = 3  # words between a number and what it counts
_SHORTEST_ROOT = 6  # of words that differ in their last letter only

_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("year", re.compile(r"\bwhen (?:was|were|did)\b|\byears?\b|\bdate\b", re.I)),
    ("number", re.compile(r"\bhow (?:many|much|long|large|big|old|often|far|fast|tall|high)\b", re.I)),
    ("person", re.compile(r"\bwho(?:m|se)?\b(?! (?:is|was|are)\b)|\b(?:author|inventor|creator)\b", re.I)),
)
_FOREIGN_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("year", re.compile(r"\b(?:wann|jahre?|quand|cuándo|quando|wanneer)\b", re.I)),
    ("number", re.compile(r"\b(?:wie ?viele?|combien|cuánt[oa]s?|quant[aeio]s?|hoeveel)\b", re.I)),
    ("person", re.compile(r"\b(?:wer|wem|wessen|qui|quién(?:es)?|chi|quem)\b", re.I)),
)
# A person is named in two words, before a verb, after "by", or in a table's cell.
_PERSON = re.compile(
    r"\b[A-Z][\w'’-]+ (?:[A-Z]\.? ?|(?:de|da|di|la|le|van|von|der|den) )*[A-Z]\w"
    r"|\b[A-Z]\w+,? (?:\w+ed|wrote|made|built|won)\b|\b(?:by|after)\s|[A-Z]\. ?[A-Z]\w| \| |\w: "
)
# What does it: the zeppelins of "What strength do zeppelins have?". One that no page has is as good as a name.
_SUBJECT = re.compile(
    r"\b(?:do|does|did) (?:(?:the|an?) )?(\w+) \w+(?: (?:like|for|to|in|on|with|from))?\W*\Z", re.I
)
_BETWEEN = frozenset("/&")  # signs between words that are no names, unless a page has them
_HOW_MANY = re.compile(r"\bhow many (\w+)", re.I)
_YEAR = re.compile(r"(?<![0-9])(?:1[0-9]|20)[0-9]{2}(?![0-9])")
_NUMBER = re.compile(
    r"[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|"
    r"infinite(?:ly)?|unlimited|single|no|none|both)\b",
    re.I,
)
# Digits and underscores make a token a name: tcp_fin_timeout.
_NO_WORD, _LETTER = re.compile("[0-9_]"), re.compile(r"[^\W\d_]")
_SEVERAL = re.compile(r"\b(?:and|or|vs|versus|both|between|same|differ\w*|than)\b", re.I)
# Words that ask, and say nothing about what is asked for.
_ASKING = frozenset(
    map(
        stem,
        """
        name named call called mean meaning stand kind sort type wiki page tell describe give happen exactly work way
        look like actually originally many much number count year date time long old one large newer big size
        differ difference same both vs versus between hi hello hey thank thanks
        """.split(),  # noqa: SIM905
    )
)
_VERBS = frozenset(SAME_AS.values())


class ReadQuestion(Struct, frozen=True):
    """The stems of a question as the evidence writes them; ``names`` are among ``words``."""

    names: dict[str, str]  # with the words that they are the stems of
    words: frozenset[str]
    kind: Kind | None
    english: bool
    counts: str  # the stem of what it asks the number of, or ""
    several: bool  # its names may be on different pages, or be no names: German nouns


class Quote(Struct, frozen=True):
    """A sentence of page ``n``, or two, word for word, from the evidence's passage of that index.

    ``introduced`` are lines of code, a list or a table after a colon. ``clear`` if the sentences answer the question,
    and ``complete`` if they have all of its words.
    """

    n: int
    section: int
    passage: int
    statements: tuple[str, ...]
    introduced: list[Statement]
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
        if terms and not self.question.english:
            self.question = _translated(
                self.question, read_question(" ".join(terms), known, frozenset()), known
            )
        self._asked_as = {
            word: asked for asked in self.question.words for word in known if _same(word, asked)
        }
        self._leads: dict[int, EvidencePassage] = {}
        for each in evidence.passages:
            self._leads.setdefault(each.n, each)
        prose = sorted(evidence.statements, key=lambda each: each.kind != "prose")
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
        if not sought or (about and not question.english):
            return 1.0
        if sought <= _VERBS and question.kind is not None and self.has_kind(passage.text, passage.n):
            return 1.0
        found = self._shared(sought, every)
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
            elif last in numbers and place - at <= _NEAR and _same(word, self.question.counts):
                return True
        return False

    def _sought(self, n: int) -> frozenset[str]:
        return self.question.words - self.question.names.keys() - self._evidence.titles[n]

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
        least = LEAST_POINT * max((quote.score for quote in every), default=0.0)
        best: dict[int, Quote] = {}
        for quote in sorted(every, key=lambda quote: (quote.clear, quote.score), reverse=True):
            if quote.score >= least:
                best.setdefault(quote.n, quote)
        named = [quote for quote in best.values() if self._evidence.titles[quote.n] <= self.question.words]
        return named if self.question.several and len(named) > 1 else list(best.values())[:1]

    def takes_up(self, text: str, n: int) -> bool:
        """Whether a text about page ``n`` has a name of the question, and a word that is asked for beside it."""
        said = meaning(content_words(text))
        named = not self.question.names or self.question.names.keys() & (said | self._evidence.titles[n])
        return bool(named) and any(_same(word, each) for word in said for each in self._sought(n))

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

    def _candidates(self) -> Iterator[Quote]:
        for index, passage in enumerate(self._evidence.passages):
            for start in range(len(passage.statements)):
                for end in (start + 1, start + 2):
                    if _quotable(passage.statements, start, end):
                        yield self._quote(index, start, end)

    def _quote(self, index: int, start: int, end: int) -> Quote:
        question, passage, share = self.question, self._evidence.passages[index], self._shares[index]
        statements = passage.statements
        own = frozenset[str]().union(*(each.words for each in statements[start:end]))
        beside = frozenset[str]().union(*(each.words for each in statements[max(0, start - 1) : end + 1]))
        score, left = 0.0, question.words
        title, sought = self._evidence.titles[passage.n], self._sought(passage.n)
        titled = title <= question.words
        # A title's words say no more in a sentence than above it.
        for words, weight in ((own - title, _OWN), (beside - title, _BESIDE), (passage.context, _ABOVE)):
            found = self._shared(left, words)
            score += weight * sum(self._weights[word] for word in found)
            left -= found
        text = " ".join(each.text for each in statements[start:end])
        has_kind = self.has_kind(text, passage.n)
        fits = share is not None and share >= _LEAST_SHARE
        whole = not sought and not question.words - self._shared(question.words, own | passage.context)
        first = whole and statements[start] is self._first[passage.n]
        score += self._mean * (
            _KIND * (has_kind and question.kind is not None)
            + _FITS * fits
            + _TITLED * titled * len(title)
            + _FIRST * first
            - _SECOND * (end - start - 1)
            + _PROSE * (statements[start].kind == "prose")
        )
        every = own | passage.context
        said = self._shared(sought, every)
        # A word that no page has may be the very thing that is asked for.
        sure = titled or question.names or sought <= self._known or len(sought) > _SHORT
        clear = len(said) >= (_LEAST_CLEAR if sure else _LEAST_CLEAR_UNKNOWN) * len(sought)
        return Quote(
            passage.n,
            passage.section,
            index,
            tuple(each.text for each in statements[start:end]),
            _introduced(statements, end),
            score / (1.0 + _PLACE * list(self._leads).index(passage.n)),
            has_kind and (share == 1.0 or (fits and clear)),
            has_kind and fits and not question.words - self._shared(question.words, every),
        )


def read_question(text: str, known: frozenset[str], ordinary: frozenset[str]) -> ReadQuestion:
    """Find names, other words and kind; a word that is not ``known`` may be another one, misspelt."""
    text = as_meant(text)
    found = features(text, ordinary)
    words: set[str] = set()
    names: dict[str, str] = {}
    stops = stop_words(token.casefold() for token in tokens(text))
    english = stops == STOP_WORDS
    subject = _SUBJECT.search(text)
    for token in tokens(text):
        if token.casefold() in stops or (token in _BETWEEN and token not in known):
            continue
        for word in content_words(token):
            if word in _ASKING or (word.isdigit() and token.isalpha()):
                continue
            (meant,) = meaning([_spelt(word, known)])
            words.add(meant)
            unknown = subject is not None and token == subject[1] and meant not in known
            if unknown or stem(token) in found.names or _NO_WORD.search(token) or not _LETTER.search(token):
                names[meant] = token
    kinds = _KINDS if english else (*_FOREIGN_KINDS, *_KINDS)
    kind = next((kind for kind, asks in kinds if asks.search(text)), None)
    several = len(names) > 1 and (not english or _SEVERAL.search(text) is not None)
    many = _HOW_MANY.search(text)
    counts = stem(many[1]) if many else ""
    return ReadQuestion(names, frozenset(words), kind, english, counts, several)


def _translated(question: ReadQuestion, terms: ReadQuestion, known: frozenset[str]) -> ReadQuestion:
    """A question in another language than English, with the search terms for those words that no page has."""
    names = {name: token for name, token in question.names.items() if name in known} | terms.names
    return msgspec.structs.replace(question, names=names, words=question.words & known | terms.words)


def _spelt(word: str, known: frozenset[str]) -> str:
    if len(word) < _SHORTEST_MISSPELT or word in known or word in SAME_AS:
        return word
    similar = [each for each in {*known, *SAME_AS} if each[:1] == word[:1]]
    return next(iter(get_close_matches(word, similar, 1, _SIMILAR)), word)


def _same(word: str, other: str) -> bool:
    """Whether two stems are one word, be it with another ending: extend, extension."""
    shorter = min(len(word), len(other))
    return word == other or (shorter >= _SHORTEST_ROOT and word[: shorter - 1] == other[: shorter - 1])


def _introduced(statements: list[Statement], end: int) -> list[Statement]:
    """The lines that follow a sentence with a colon, as far as a reader takes them in; none if that is not all."""
    if not statements[end - 1].text.endswith(":"):
        return []
    lines = list(takewhile(lambda each: each.kind != "prose", statements[end:]))
    return lines if sum(len(each.text) for each in lines) <= _LONGEST else []


def _quotable(statements: list[Statement], start: int, end: int) -> bool:
    """Whether a line, or one or two whole sentences, can stand alone, and is not more than a reader takes in."""
    chosen = statements[start:end]
    if end > len(statements) or sum(len(each.text) for each in chosen) > _LONGEST:
        return False
    if not all(each.kind == "prose" for each in chosen):
        return len(chosen) == 1
    begins = start == 0 or not chosen[0].text[:1].islower()  # else it is the rest of a sentence: "Ook! is …"
    return begins and all(len(each.text.split()) >= _LEAST_WORDS for each in chosen)
