"""How well sentences of the pages answer a question, and whether they do for sure."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cached_property

from gateway.ask.checking.evidence import EvidencePassage, Statement, as_meant, meaning
from gateway.ask.checking.excerpts import Quote, are_code, are_steps, lines_behind
from gateway.ask.checking.opposites import opposes
from gateway.ask.checking.question import kind_of, side_by_side
from gateway.ask.checking.relevance import LEAST_SHARE, Relevance
from gateway.ask.checking.signals import BECAUSE, DENIES, NO_ROW, PLACE_TOLD, REFERS, REQUIRES
from gateway.ask.text.passages import ABOUT_TEXT, CELLS, REFERENCE, is_sentence
from gateway.ask.text.words import asks, content_words, features

# Weights of a question's word in a sentence, in a heading that is a question, in the sentences beside it, and above it.
_OWN, _ASKED_ABOVE, _BESIDE, _ABOVE = 1.0, 0.7, 0.4, 0.5
# In mean weights of a word: the kind of thing that is asked for, a passage that fits, a title that the question names,
# the first sentence of a page for a question that names only its title, a sentence that begins with what is to be
# defined, steps where these are asked for, a sentence, and the price of a second one.
_KIND, _FITS, _TITLED, _FIRST, _DEFINES, _STEPS, _PROSE, _SECOND = 2.0, 0.5, 0.6, 2.0, 1.3, 2.0, 0.3, 0.3
# A row under what is asked for, one that begins with a name of the question, one that begins with a sign of it, a
# number before what is counted, a reason, what must be, several names for "Which backgrounds …?", the price of a
# sentence about the text itself, and a place with a name.
_COLUMN, _ROW, _SIGNED, _COUNTED, _REASON = 1.0, 1.0, 3.0, 1.0, 1.0
_NEEDED, _NAMING, _ABOUT, _PLACED = 1.0, 0.5, 1.0, 1.0
# Of _KIND, for a time that is told by what happens then; the price of what is not, where it is asked when or how.
_BY_CLAUSE, _DENIED = 0.7, 0.4
_PLACE = 0.05  # what each place among the pages costs
# Of its score, for a sentence without the page that the question names, of another row, or that answers another one.
_OTHER = 0.75
_LEAST_CLEAR, _LEAST_CLEAR_UNKNOWN = 0.5, 0.66  # of the words that are asked for
_LEAST_CLEAR_WEIGHED = 0.35  # of their weight
_LEAST_NEAR = 0.6  # of all words
_TELLING = 30  # characters that tell one passage of a section from another
# What makes a sentence sure to answer: the share of the question's weight that it has with what stands above it, and
# its own words, up to five; a thing of another kind counts against it.
# Fitted by logistic regression over questions to encyclopedia articles and to the wikis of docs/evaluation.md.
_SURE, _SURE_WORD, _SURE_WORDS, _SURE_KIND, _SURE_WHICH = 0.84, 0.12, 5, 0.52, 0.3
_SHORT_SECTION = 1500  # characters of a section that is about its names throughout
_LONE = 0.5  # of a syllable that a text has without the ones beside it in the question
_SHORT = 4  # words of a question that needs nearly all of them


class Scored(Relevance):
    """Scores the sentences of the passages of numbered pages."""

    def _placed(self) -> Iterator[tuple[int, int, Statement]]:
        """Yield each statement behind the index of its passage and its own index there."""
        for index, passage in enumerate(self._evidence.passages):
            for at, each in enumerate(passage.statements):
                yield index, at, each

    def score(self, n: int, statement: str) -> float:
        """How well a statement of page ``n`` answers, on the scale of the quotes."""
        scores = (
            self._quote(index, at, at + 1).score
            for index, at, each in self._placed()
            if each.n == n and each.text == statement
        )
        return max(scores, default=0.0)

    def beside_the_point(self, n: int, statement: str) -> bool:
        """Whether a statement is about the opposite, or its passage and title lack a name of the question."""
        names = self.question.names.keys() if not self.question.several else frozenset[str]()
        every = self._evidence.titles[n].union(
            *(
                each.words | each.context
                for each in self._evidence.passages
                if each.n == n and statement in each.text
            )
        )
        return opposes(self._text, statement) or not names <= self._shared(names, every)

    @cached_property
    def _tables(self) -> dict[tuple[int, int, str], int]:
        """The highest :meth:`_in_first_cell` of the rows of each table."""
        most: dict[tuple[int, int, str], int] = {}
        for each in self._evidence.passages:
            key = each.n, each.section, each.header
            most[key] = max(self._in_first_cell(each), most.get(key, 0))
        return most

    def _in_first_cell(self, passage: EvidencePassage) -> int:
        """Count the words of the question, other than those of the page's title, in the first cell of a row."""
        if passage.header in ("", passage.text):
            return 0
        cell = meaning(content_words(passage.text.partition(CELLS)[0]))
        return len(self._shared(self.question.words - self._evidence.titles[passage.n], cell))

    def _heads(self, cell: str) -> bool:
        """Whether a row's first cell has a name of the question, or nothing but words of it."""
        words = set(content_words(cell))
        return bool(self.question.names.keys() & words) or (bool(words) and words <= self._asked_as.keys())

    def _asks_for_another(self, heading: str) -> bool:
        """Whether a heading is a question for another kind of thing: how fast one may drive, not with which licence."""
        kinds = "person" if self.question.by_person else self.question.kind, kind_of(heading)
        return asks(heading) and kinds[0] != kinds[1] and (None in kinds or "person" in kinds)

    def _is_other_row(self, passage: EvidencePassage) -> bool:
        """Whether another row of a passage's table is about what the question names: version 1.3, not 1.0."""
        if passage.header and NO_ROW.match(passage.text) and not self.question.denies:
            return True
        key = passage.n, passage.section, passage.header
        most = self._tables[key] if passage.header and not self.question.several else 0
        return self._in_first_cell(passage) < most

    def _names_several(self, text: str) -> bool:
        return len(features(text, self._evidence.ordinary).names - self.question.words) > 1

    def _weight(self, words: Set[str]) -> float:
        return sum(self.weights[word] for word in words)

    def _begins_section(self, passage: EvidencePassage) -> bool:
        section = self._evidence.sections[passage.n, passage.section]
        return section.lstrip().startswith(passage.text[:_TELLING])

    def _lone(self, words: frozenset[str], text: str) -> frozenset[str]:
        """Those of the question's syllables that a text has without the ones beside them, so in other words."""
        pairs = self.question.pairs
        if not pairs:
            return frozenset()
        found = pairs & side_by_side(as_meant(text))
        return words & {each for pair in pairs for each in pair} - {each for pair in found for each in pair}

    def _is_sure(
        self,
        passage: EvidencePassage,
        own: frozenset[str],
        above: frozenset[str],
        has_kind: bool,
        lone: frozenset[str],
    ) -> bool:
        """Whether the sentences' ``own`` words and those ``above`` them cover enough of the question to answer it."""
        words = self.question.words
        has = self._shared(words, own | above)
        less = _LONE * self._weight(lone - above)
        weight = (self._weight(has) - less) / (self._mean * max(1, len(words)))
        more = (
            weight + _SURE_WORD * min(_SURE_WORDS, len(self._shared(words, own)) - _LONE * len(lone)) - _SURE
        )
        more -= _SURE_KIND * (not has_kind) + _SURE_WHICH * (self.question.which in words - self._known)
        return more >= 0.0

    def _quote(self, index: int, start: int, end: int) -> Quote:
        question, passage, share = self.question, self._evidence.passages[index], self._shares[index]
        statements = passage.whole
        said_here = statements[start:end]
        own = frozenset[str]().union(*(each.words for each in said_here))
        asked_above = frozenset[str]()
        if asks(passage.heading):  # a question and its answer are one statement
            asked_above = meaning(content_words(passage.heading))
        lines = lines_behind(statements, start, end, question.code or question.how_to)
        beside = frozenset[str]().union(
            *(each.words for each in [*statements[max(0, start - 1) : end + 1], *lines])
        )
        score, left = 0.0, question.words
        title, sought = self._evidence.titles[passage.n], self._sought(passage.n)
        names = question.names.keys()
        titled = title <= question.words
        # A title's words say no more in a sentence than above it.
        told_by = self._with_measured(
            frozenset(), self._sought(passage.n), " ".join(each.text for each in said_here)
        )
        for words, weight in (
            (own | told_by, _OWN),
            (asked_above, _ASKED_ABOVE),
            (beside, _BESIDE),
            (passage.context, _ABOVE),
        ):
            found = self._shared(left, words) - (title if weight != _ABOVE else frozenset())
            score += weight * self._weight(found)
            left -= found
        text = " ".join(each.text for each in said_here)
        has_kind = self.has_kind(text, passage.n)
        fits = share is not None and share >= LEAST_SHARE
        every_word = not question.words - self._shared(question.words, own | passage.context)
        whole = not sought and every_word
        row, digits = CELLS in text, {word for word in content_words(text) if word.isdigit()}
        signed = self._signed(passage.n, text)
        about_text = any(about.match(text) for about in (ABOUT_TEXT, REFERENCE))
        begins = statements[start] is self._first.get(passage.n)
        undated = question.kind == "time" and not self.dated(text)
        # What a thing does is told where its page begins, if that has all words: "What does the red eye filter do?"
        told = titled and question.defines and every_word
        first = (whole or told) and not about_text and not question.how_to and begins
        headed = (not start and index in self._headed) or (begins and passage.n in self._asking)
        score += self._mean * (
            _KIND * (has_kind and question.kind is not None) * (_BY_CLAUSE if undated else 1.0)
            - _DENIED * ((question.kind == "time" or question.how_to) and DENIES.search(text) is not None)
            + _FITS * fits
            + _TITLED * len(title & question.words) ** 2 / max(1, len(title))
            + max(_FIRST * max(first, headed), _DEFINES * (self._defines(text) if question.defines else 0.0))
            + _COLUMN * (row and question.which in passage.context)
            + _ROW * (row and self._heads(text.partition(CELLS)[0]))
            - _ABOUT * about_text
            + _SIGNED * signed
            + _COUNTED * (bool(question.counts and digits) and not row and self.counted(digits, text))
            + _PLACED * (question.where and PLACE_TOLD.search(text) is not None)
            + _REASON * (question.why and BECAUSE.search(text) is not None)
            + _NAMING * (end - start == 1 and question.lists and self._names_several(text))
            + _NEEDED * (question.needs and REQUIRES.search(text) is not None)
            + _STEPS * ((question.how_to and are_steps(lines)) or (question.code and are_code(lines)))
            - _SECOND * max(0, end - start - 1)
            + _PROSE
            * (statements[start].kind == "prose" and is_sentence(said_here[-1].text if said_here else ""))
        )
        every = own | passage.context | frozenset[str]().union(*(each.words for each in lines))
        if row:  # it says something about its page's subject
            every |= self._leads[passage.n].words
        said = self._with_measured(self._shared(sought, every), sought, text)
        named = not self._subjects or any(subject <= meaning(every) for subject in self._subjects)
        other_row = self._is_other_row(passage)
        other = not named or other_row or self._asks_for_another(passage.heading)
        whole_text = " ".join([text, *(each.text for each in lines)])
        lone = self._lone(self._shared(question.words, own), whole_text)
        # A word that no page has may be the very thing that is asked for.
        known = titled or question.names or sought <= self._known or len(sought) > _SHORT
        # The items of a list are told apart: one without the question's words says nothing about them.
        whole_passage = not sought or bool(said) or statements[start].kind != "list" or start == end
        clear = signed or len(said) - _LONE * len(lone & said) >= (
            _LEAST_CLEAR if known else _LEAST_CLEAR_UNKNOWN
        ) * len(sought)
        # Without a page that is named, the words that it lacks must not tell more: "packages on average".
        plain = not (titled or question.names or signed)
        least = _LEAST_CLEAR_WEIGHED * self._weight(sought & self._known)
        clear = clear and not (plain and self._weight(said) < least)
        # "This turns off the feature": what does, no sentence before it tells.
        led = statements[start - 1].kind == "prose" if start else not self._begins_section(passage)
        alone = not every_word and not led and REFERS.match(text) is not None
        alone = alone or (share != 1.0 and self._lacks_which(passage))
        most = max(said_here, key=lambda each: len(self._shared(question.words, each.words)), default=None)
        opposed = any(opposes(self._text, each) for each in (text, most.text if most else text))
        above = passage.context.union(*(each.context for each in said_here))
        fitting = has_kind and not other_row
        sure = (fitting or (question.kind is not None and not other_row)) and not alone
        # "When was the bell of Elmstead stolen?": names and a year do not tell that it was stolen.
        sure = sure and (question.kind is None or not sought or bool(said))
        about = own | beside | passage.context | title
        if len(self._evidence.sections[passage.n, passage.section]) <= _SHORT_SECTION:
            about |= self._around(passage)
        sure = sure and names <= self._shared(names, about)
        sure = sure and self._is_sure(
            passage, own.union(*(each.words for each in lines)), above, has_kind, lone
        )
        return Quote(
            passage.n,
            passage.section,
            index,
            start,
            tuple(each.text for each in said_here),
            lines,
            score * (_OTHER if other else 1.0) / (1.0 + _PLACE * list(self._leads).index(passage.n)),
            not opposed
            and (sure or (fitting and ((share == 1.0 and whole_passage) or (fits and clear and not alone)))),
            signed or (has_kind and fits and not question.words - self._shared(question.words, every)),
            has_kind
            and not other
            and not opposed
            and (question.several or question.names.keys() <= self._shared(question.words, every | title))
            and bool(self._shared(question.words - title, own | beside))
            and len(self._shared(question.words, every)) >= _LEAST_NEAR * len(question.words),
            sure and not opposed,
        )
