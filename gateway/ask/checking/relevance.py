"""Whether the pages answer a question. Words decide, no model.

A question has names (capitalised words, numbers and symbols), other words, and a kind: it may ask for a year, a number
or a person. A passage fits if it has all names, with its headings and its page's title and first passage, and a part of
the words that the title does not have. A question that no passage fits is not answered by these pages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence, Set

import msgspec

from gateway.ask.checking.evidence import SAME_AS, Evidence, EvidencePassage, Statement, as_meant, meaning
from gateway.ask.checking.question import ReadQuestion, read_question, same_word, translated
from gateway.ask.checking.signals import (
    ASKS,
    CLAUSE_OF_TIME,
    DATE,
    DAY,
    NO_ONE,
    NONE,
    NUMBER,
    PART,
    PAST,
    PERSON,
    PRESENT,
    PRICE,
    UNIT,
    UTMOST,
    YEAR,
)
from gateway.ask.text.passages import CELLS, REFERENCE
from gateway.ask.text.synonyms import measured, synonymous
from gateway.ask.text.wording import row_signs
from gateway.ask.text.words import (
    asks_more,
    asks_the_same,
    common_stems,
    content_words,
    features,
    is_stop_word,
)
from gateway.base.stems import stem

# The share of its words that a question must have in a passage, beside names and title; where the title is not in the
# question, the share of its words, and of their weights.
LEAST_SHARE, _LEAST_WITHOUT_TITLE, _LEAST_WEIGHED = 0.3, 0.5, 0.35
_LEAST_ABOUT = 0.15  # of the mean weight of its words, for one in a title
_LEAST_TITLE = 0.6  # of the question's words, for a page whose title asks about the same
_NEAR = 3  # words between a number and what it counts

# Verbs that say little about what is asked for, and what their weight is multiplied with.
_PLAIN_VERBS = frozenset(
    map(stem, "use used need have do make made come go become put see want help happen".split())  # noqa: SIM905
)
_VERB_SHARE = 0.3
_VERBS = frozenset(SAME_AS.values())
DEFINED = re.compile(
    r"(?!(?i:if|when|while|since|because|although|unless|until|once|whether)\b)"  # "If you sing when it is hot"
    r"(.{2,80}?)(?: (?:is|are|was|were|means?|refers? to|stands? for|denotes?)\b|: | [-–—] )"
)
_PREPOSITIONS = frozenset("of in at from near for on to by into".split())  # noqa: SIM905
_WORD = re.compile(r"[^\W_][\w'’-]*")
_NEAR_NAME = 4  # words between what bears a name and the name


class Relevance:
    """Compares a question with the passages of numbered pages.

    ``hopeless`` if no passage has the names, or without names enough of the words: no model can answer from these.
    ``doubtful`` if every passage that has the names lacks the other words: an answer must have one of them.
    ``among`` is the same question compared with more passages: its reading and the weights of its words hold here, too.
    """

    def __init__(
        self,
        text: str,
        evidence: Evidence,
        terms: Sequence[str] = (),
        among: Relevance | None = None,
    ) -> None:
        self._evidence, self._text = evidence, text
        self._every = [each.words | each.context for each in evidence.passages]
        known = frozenset[str]().union(*self._every)
        self.question: ReadQuestion = (
            among.question if among else read_question(text, known, evidence.ordinary)
        )
        if terms and not self.question.native and among is None:
            self.question = translated(
                self.question, read_question(" ".join(terms), known, frozenset()), known
            )
        other = self.question.words - self.question.names.keys()
        # The words of the question that a word of the pages stands for.
        self._asked_as: dict[str, set[str]] = {}
        initials = evidence.initials
        for word in known:
            asked = {each for each in other if synonymous(word, each)}
            asked |= {each for each in self.question.words if same_word(word, each)}
            asked |= self.question.joined.get(word, frozenset())
            asked |= {name for name, token in self.question.names.items() if initials.get(token) == word}
            if asked:
                self._asked_as[word] = asked
        if self.question.kind == "person" and self.question.words in evidence.titles.values():
            self.question = msgspec.structs.replace(self.question, kind=None)  # "Who is the hollow stag?"
        self.compared = self._titles_compared()
        self._subjects = {
            title for title in evidence.titles.values() if title and title <= self.question.words
        }
        self._leads: dict[int, EvidencePassage] = {}
        for each in evidence.passages:
            self._leads.setdefault(each.n, each)
        self._section_words: dict[tuple[int, int], frozenset[str]] = {}
        self._first: dict[int, Statement] = {}  # of each page whose beginning is among the passages
        for statement in evidence.statements:
            if statement.text == evidence.openings[statement.n]:
                self._first.setdefault(statement.n, statement)
        sections: dict[tuple[int, int], int] = {}  # the first passage of each
        for index, each in enumerate(evidence.passages):
            sections.setdefault((each.n, each.section), index)
        stems = frozenset(content_words(text))
        common = common_stems(self._every)
        self._headed = {
            index
            for index in sections.values()
            if asks_the_same(stems, evidence.passages[index].heading, common)
        }
        self._headed |= {
            index
            for index, each in enumerate(evidence.passages)
            if (index in sections.values() or [first.kind for first in each.statements[:1]] == ["list"])
            and self._tells_how(each.heading)
        }
        self._asking = {n for n, name in evidence.names.items() if asks_the_same(stems, name)} or {
            n for n, name in [*evidence.names.items()][:1] if asks_more(stems, name)
        }
        self._unknown_signs = {
            sign for sign in self.question.signs if not any(sign in each.text for each in evidence.passages)
        }
        self._known = self._shared(self.question.words, known)
        self.weights: dict[str, float] = among.weights if among else self._weighed()
        self._mean = sum(self.weights.values()) / max(1, len(self.weights)) or 1.0
        self._shares = [
            self._share(each, every) for each, every in zip(evidence.passages, self._every, strict=True)
        ]

    @property
    def _vague(self) -> bool:
        """Whether a question is about what was said before, which nothing here knows: "And who made it?"."""
        return bool(self.question.refers) and self.question.words <= _VERBS | _PLAIN_VERBS

    @property
    def hopeless(self) -> str:
        """Why no passage can answer; empty if one may."""
        if self._vague:
            return f"the question does not say what `{self.question.refers}` is"
        if any(share is not None for share in self._shares):
            return ""
        known = self._shared(self.question.names.keys(), frozenset[str]().union(*self._every))
        unknown = [f"`{token}`" for name, token in self.question.names.items() if name not in known]
        unknown += [f"`{sign}`" for sign in sorted(self._unknown_signs)]
        return f"no page has {' or '.join(unknown)}" if unknown else "it has nothing about the question"

    @property
    def doubtful(self) -> bool:
        return all(share is None or share < LEAST_SHARE for share in self._shares)

    def _tells_how(self, heading: str) -> bool:
        """Whether a heading names the task of a question for instructions: "Orphaning a package"."""
        words, named = self.question.words, meaning(content_words(as_meant(heading)))
        return self.question.how_to and len(words) > 1 and words <= named and len(named) <= len(words) + 1

    def _titles_compared(self) -> Set[frozenset[str]]:
        """The titles of the pages whose difference is all that the question asks for."""
        titles = {title for title in self._evidence.titles.values() if title <= self.question.words}
        titles = {title for title in titles if not any(title < other for other in titles)}
        every = frozenset[str]().union(*titles)
        return (
            titles if self.question.compares and len(titles) > 1 and self.question.words <= every else set()
        )

    def _weighed(self) -> dict[str, float]:
        """The words of the question, with less weight if more passages have them."""
        holding = Counter(word for every in self._every for word in self._shared(self.question.words, every))
        size = len(self._every)
        # "How do I write a tag?" is not answered by what was made or built.
        plain = _PLAIN_VERBS | _VERBS if self.question.how_to else _PLAIN_VERBS
        return {
            word: math.log(1.0 + (size - holding[word] + 0.5) / (holding[word] + 0.5))
            * (_VERB_SHARE if word in plain and len(self.question.words) > 1 else 1.0)
            for word in self.question.words
        }

    def _share(self, passage: EvidencePassage, every: frozenset[str]) -> float | None:
        """The share of the question's words that the passage has, beside names and title; None if it is off topic."""
        question, title = self.question, self._evidence.titles[passage.n]
        if question.signs and question.signs == self._unknown_signs:
            return None
        named = self._shared(question.names.keys(), every | self._leads[passage.n].words)
        if not question.words or len(named) < (
            min(1, len(question.names)) if question.several else len(question.names)
        ):
            return None
        if any(self._signed(passage.n, each.text) for each in passage.statements):
            return 1.0
        sought = self._sought(passage.n)
        if title in self.compared:
            return 1.0  # the other page has the other words
        shared = self._shared(question.words & (question.names.keys() | title), every) - _PLAIN_VERBS
        # Where no page has the word that tells most, a word that is in too many says nothing: "the toaster language".
        least = 0.0 if question.words <= self._known or not question.native else _LEAST_ABOUT * self._mean
        about = title <= question.words or any(self.weights[word] >= least for word in shared)
        if not sought or (about and not question.native):
            return 1.0
        alike = question.words & title - question.names.keys()
        # Beside a title that the question has whole, what it asks for must be on some page: "the calories of rice".
        if (
            len(alike) > 1
            and len(alike) >= _LEAST_TITLE * len(question.words)
            and (not title <= question.words or sought & self._known)
        ):
            return 1.0
        if sought <= _VERBS and self.has_kind(passage.text, passage.n):
            return 1.0
        found = self._shared(sought, every)
        if len(sought - found) == 1:
            found = self._with_measured(found, sought, passage.text)
        share = len(found) / len(sought)
        # A word that no page has weighs most: "based on chess" is not answered by what another thing is based on.
        weighed = sum(map(self.weights.__getitem__, found)) / sum(map(self.weights.__getitem__, sought))
        enough = (
            weighed >= _LEAST_WEIGHED and share >= _LEAST_WITHOUT_TITLE and len(found) >= min(2, len(sought))
        )
        return share if about or enough else None

    def _shared(self, words: Set[str], every: frozenset[str]) -> frozenset[str]:
        """Those ``words`` of the question that are among ``every`` one of a text."""
        return frozenset(words & set[str]().union(*(self._asked_as.get(word, ()) for word in every)))

    def _with_measured(self, found: frozenset[str], sought: frozenset[str], text: str) -> frozenset[str]:
        return found | {word for word in sought - found if measured(word, text)}

    def counted(self, numbers: Set[str], statement: str) -> bool:
        """Whether a statement has one of the numbers before what the question counts; rows pass."""
        statement = NO_ONE.sub("", statement)
        if not numbers or not self.question.counts or CELLS in statement:
            return True
        last, at = "", 0  # the number before a word, and its place
        for place, word in enumerate(content_words(statement)):
            if word.isdigit():
                last, at = word, place
            elif (
                last in numbers
                and place - at <= _NEAR
                and self.question.counts in self._asked_as.get(word, ())
            ):
                return True
        return False

    def _around(self, passage: EvidencePassage) -> frozenset[str]:
        """The stems of a passage's whole section and of the beginning of its page."""
        key = passage.n, passage.section
        if key not in self._section_words:
            text = as_meant(self._evidence.sections[key])
            self._section_words[key] = meaning(content_words(text)) | self._leads[passage.n].words
        return self._section_words[key] | passage.context

    def _lacks_which(self, passage: EvidencePassage) -> bool:
        """Whether a page that the question names says nothing of the thing asked for: "Which font does Edlin use?"."""
        sought = self._sought(passage.n)
        named = self._evidence.titles[passage.n] <= self.question.words and not self.question.several
        return named and self.question.which in sought - self._shared(sought, self._around(passage))

    def _signed(self, n: int, line: str) -> bool:
        """Whether a line begins with a sign that is asked about, on a page that is."""
        titles = self._evidence.titles
        titled = any(title <= self.question.words for title in titles.values())
        here = titles[n] <= self.question.words or not titled
        row = row_signs(line)
        return here and bool(self.question.signs & row or (titled and self.question.ordinals & row))

    def _sought(self, n: int) -> frozenset[str]:
        return self.question.words - self.question.names.keys() - self._evidence.titles[n]

    def _defines(self, text: str) -> float:
        """1 for a sentence that begins with what the question names, "A vendor is a company", less for a word more."""
        if (begin := DEFINED.match(text)) is None:
            return 0.0
        words = meaning(content_words(begin[1]))
        asked = self._shared(self.question.words, words)
        more = len(words) - len(asked)
        return 0.0 if asked != self.question.words or more > 1 else 1.0 / (1 + more)

    def has_kind(self, text: str, n: int) -> bool:
        """Whether the text of page ``n`` has a thing of the kind that is asked for, and compares if that is asked."""
        if (self.question.utmost and not UTMOST.search(text)) or ASKS.fullmatch(text):
            return False
        about_text = self.question.kind is not None and REFERENCE.match(text) is not None
        if about_text and not self._shared(self._sought(n), meaning(content_words(text))):
            return False
        if self.question.current and PAST.search(text) and not PRESENT.search(text):
            return False
        match self.question.kind:
            case "year":
                return YEAR.search(text) is not None
            case "time":
                return self.dated(text) or CLAUSE_OF_TIME.search(text) is not None
            case "number" if self.question.price:
                return PRICE.search(text) is not None or bool(
                    NUMBER.search(text) and self._shared(self.question.price, meaning(content_words(text)))
                )
            case "number" if self.question.percent:
                return PART.search(text) is not None
            case "number":
                text = NO_ONE.sub("", DAY.sub("", text))
                if self.question.extent:
                    behind = (text[found.end() :] for found in NUMBER.finditer(text))
                    return any((unit := UNIT.match(each)) and not is_stop_word(unit[1]) for each in behind)
                if not self.question.counts:
                    return NUMBER.search(text) is not None
                digits = {word for word in content_words(text) if word.isdigit()}
                if CELLS not in text and digits and self.counted(digits, text):
                    return True  # "2000 guests" are no year
                if digits and self.question.words == {self.question.counts}:
                    return False  # "How many games are there?": another number in a game is none of games
                return NUMBER.search(YEAR.sub("", text)) is not None or NONE.search(text) is not None
            case "name":
                return self._tells_name(text, n)
            case "person":
                known = self.question.words | self._evidence.titles[n]
                named = features(text, self._evidence.ordinary).names - known
                return bool(named) and PERSON.search(text) is not None
        return True

    def _tells_name(self, text: str, n: int) -> bool:
        """Whether a name stands near what is said to bear one, and is not that of a place: "the mayor of Elm"."""
        known = self.question.words | self._evidence.titles[n]
        names = features(text, self._evidence.ordinary).names - known
        places: list[int] = []
        bearers: list[int] = []
        words = _WORD.findall(text)
        for at, word in enumerate(words):
            stems = meaning(content_words(word))
            before = {each.casefold() for each in words[max(0, at - 2) : at]}
            if stems & names and word[:1].isupper() and not before & _PREPOSITIONS:
                places.append(at)
            elif self._shared(self._sought(n), stems):
                bearers.append(at)
        return any(abs(at - bearer) <= _NEAR_NAME for at in places for bearer in bearers)

    def dated(self, text: str) -> bool:
        """Whether a text tells a time by itself, and not only by what happens then."""
        return DATE.search(text) is not None

    def takes_up(self, text: str, n: int) -> bool:
        """Whether a text about page ``n`` has a name of the question, and a word that is asked for beside it."""
        said = meaning(content_words(text))
        named = not self.question.names or self.question.names.keys() & (said | self._evidence.titles[n])
        sought = self._sought(n)
        sought = sought - {self.question.which} or sought  # "Planet Sinclair" tells no planet with moons
        return bool(named) and any(same_word(word, each) for word in said for each in sought)
