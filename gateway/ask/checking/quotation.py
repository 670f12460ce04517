"""The sentences that answer a question, word for word: they stand in for an answer that does not."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cached_property

import msgspec

from gateway.ask.checking.excerpts import Quote, begins_list, certain, is_about, lines_behind, quotable
from gateway.ask.checking.scoring import Scored
from gateway.ask.checking.signals import REFERS
from gateway.ask.text.passages import introduces

# Of the best score, for a sentence that answers about as well, and for a clear quotation beside one that is not.
LEAST_POINT, _LEAST_CHOSEN = 0.9, 0.8
_AS_GOOD = 0.97  # of the score of the sentence before it, for one that is quoted with it
_MOST_LISTED = 5  # pages that answer a question for several


class Quotations(Scored):
    """Finds the best sentences for a question among the passages of numbered pages."""

    @property
    def hopeless(self) -> str:
        return "" if self._best_is_sure else super().hopeless

    @property
    def doubtful(self) -> bool:
        return not self._best_is_sure and super().doubtful

    @cached_property
    def _best_is_sure(self) -> bool:
        """Whether the best sentences answer whatever their passage lacks, unless a sign is asked about."""
        if self._vague or (self.question.signs and self.question.signs == self._unknown_signs):
            return False
        best = max(self._every_candidate, key=lambda quote: quote.score, default=None)
        return best is not None and best.sure

    @cached_property
    def _every_candidate(self) -> list[Quote]:
        return list(self._candidates())

    @property
    def certain(self) -> bool:
        """Whether quotes alone cover enough of the question to answer it."""
        return not self.hopeless and not self.doubtful and certain(self.quotes())

    def quotes(self) -> list[Quote]:
        """The sentences that answer best: of one page, or of each page that a question about several names."""
        every = self._every_candidate
        if self.compared and len(leads := list(self._named_leads())) == len(self.compared):
            return leads
        if sides := self._of_sides():
            return sides
        least = _LEAST_CHOSEN * max((quote.score for quote in every), default=0.0)
        best: dict[int, Quote] = {}
        for quote in sorted(every, key=self._order, reverse=True):
            if quote.score >= least:
                best.setdefault(quote.n, quote)
        several = [quote for quote in best.values() if quote.complete]
        if self.question.lists and len(several) > 1 and several[0] is next(iter(best.values())):
            return several[:_MOST_LISTED]
        named = [quote for quote in best.values() if self._evidence.titles[quote.n] <= self.question.words]
        chosen = named if self.question.several and len(named) > 1 else list(best.values())[:1]
        return [self._with_context(quote) for quote in chosen]

    def _order(self, quote: Quote) -> tuple[bool, bool, float]:
        """Clear quotations first, of these such as answer for sure from a page that is named, then by score."""
        named = self._evidence.titles[quote.n] <= self.question.words and not self.question.why
        return quote.clear, named and quote.sure and quote.complete, quote.score

    def _named_leads(self) -> Iterator[Quote]:
        """The beginning of each page that is compared."""
        for index, at, each in self._placed():
            if each is self._first.get(each.n) and self._evidence.titles[each.n] in self.compared:
                quote = self._with_context(self._quote(index, at, at + 1))
                yield msgspec.structs.replace(quote, lines=[], clear=True, complete=True)

    def _of_sides(self) -> list[Quote]:
        """A statement about each of the two things that are compared, of the first page that has such."""
        sides = self.question.sides
        for n in self._leads if sides and all(sides) and not self.compared else ():
            told: list[Quote] = []
            for side, other in (sides, sides[::-1]):
                found = [
                    self._quote(index, at, at + 1)
                    for index, at, each in self._placed()
                    if each.n == n and not other <= each.words and is_about(side, each)
                ]
                if found:
                    told.append(max(found, key=lambda quote: quote.score))
            if len(told) == len(sides):
                return [msgspec.structs.replace(each, clear=True, complete=True) for each in told]
        return []

    def behind(self, given: Set[str]) -> Quote | None:
        """One of the ``given`` statements, with the lines that it introduces."""
        for index, at, each in self._placed():
            if each.text in given and introduces(each.text, "list"):
                quote = self._quote(index, at, at + 1)
                if quote.lines:
                    return quote
        return None

    def _with_context(self, quote: Quote) -> Quote:
        """The sentences with the rest of their paragraph, unless the question asks for a single thing."""
        passage = self._evidence.passages[quote.passage]
        statements = passage.whole
        kinds = [each.kind for each in statements[:2]]
        if kinds == ["code", "prose"] and not quote.lines and quote.start < 2:
            term = f"{statements[0].text.strip()}: {statements[1].text}"
            quote = msgspec.structs.replace(quote, start=1, statements=(term, *quote.statements[1:]))
        led = bool(quote.lines) and (not quote.statements or introduces(quote.statements[-1], "list"))
        if led or statements[quote.start].kind != "prose":
            return quote
        start, end = quote.start, quote.start + len(quote.statements)
        if self.question.kind is not None:
            if quote.lines or not quotable(statements, start, end + 1):
                return quote
            # "Probation has one week of notice. After that the notice is four weeks."
            following = self._quote(quote.passage, end, end + 1)
            as_good = following.clear and following.score >= _AS_GOOD * quote.score
            more = following.statements if as_good else ()
            return msgspec.structs.replace(quote, statements=(*quote.statements, *more))
        if REFERS.match(statements[start].text) and start and quotable(statements, start - 1, end):
            start -= 1
        while not quote.lines and quotable(statements, start, end + 1):
            end += 1
        while start and quotable(statements, start - 1, end):
            start -= 1
        lines = quote.lines
        if not lines and introduces(statements[end - 1].text, "list"):
            lines = lines_behind(statements, end - 1, end, self.question.code or self.question.how_to)
            end -= not lines and end > quote.start + len(quote.statements)
        before = tuple(each.text for each in statements[start : quote.start])
        after = tuple(each.text for each in statements[quote.start + len(quote.statements) : end])
        words = passage.context.union(*(each.words for each in statements[start:end]))
        complete = quote.clear and not self.question.words - self._shared(self.question.words, words)
        return msgspec.structs.replace(
            quote,
            start=start,
            statements=(*before, *quote.statements, *after),
            lines=lines,
            complete=quote.complete or complete,
        )

    def _candidates(self) -> Iterator[Quote]:
        for index, start, each in self._placed():
            passage = self._evidence.passages[index]
            if self.question.code and each.kind == "code" and start:
                continue  # it belongs to what stands before it
            if self.question.kind is None and begins_list(passage.whole, start):
                listed = self._quote(index, start, start)
                if listed.lines:
                    yield listed
            for end in (start + 1, start + 2):
                if quotable(passage.statements, start, end):
                    yield self._quote(index, start, end)
