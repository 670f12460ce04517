"""Evidence: the wiki's pages in a form that claims can be compared with.

A page supports a claim if one statement of it, a sentence or a line, holds together what the claim says: every number,
every name, every quoted phrase, and at least four fifths of the other words (two of three, all of two). The page's
title, the headings and a table's header may supply names and words, but not everything, and nothing of a row. A claim
that is only a name or a number ("In 1993.") is read with the question's words. A claim of several clauses may have a
statement for each. This finds invented names, dates and subjects, and parts of a page that do not belong together; it
cannot tell a statement from its negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from gateway.ask.text.passages import CELLS, Passage, TextKind, names_columns, opening, text_units
from gateway.ask.text.regional import as_in_one_region
from gateway.ask.text.sentences import MARKER
from gateway.ask.text.words import (
    Features,
    content_words,
    features,
    is_stop_word,
    lower_case_stems,
    same_words,
    tokens,
)
from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.wiki.source import Page

# Of the other words, by their number; the last one for more.
_LEAST_SHARES = (1.0, 1.0, 1.0, 0.66, 0.75, 0.8)
# Of the question's words, for a claim that has only names and numbers; and to see that a claim repeats the question.
_LEAST_SHARE_ASKED = 0.75
# A claim must share more than one ordinary word with its source; names and numbers count double.
_LEAST_WEIGHT = 2
ITEM_NUMBER = re.compile(r"\A\s*(?:[0-9]{1,3}[.)]|[-*•])\s(?!\|)")
# A sentence that begins so speaks of what the one before names.
_REFERS = any_case(r"(?:he|she|it|they|his|her|its|their|this|these|that|those)\b")
_QUOTED = re.compile(r'["“]([^"“”\n]+)["”]')
_PARENTHESES = re.compile(r"\([^()]*\)")
_CLAUSES = re.compile(r"(?:;|,? \b(?:and|but|while|whereas)\b) ")
# "A language by Chris Pressey" says that he made it; "described by" says what it says.
_BY = re.compile(r"(?<!ly)(?<!ed)(?<!en)(?<!wn)(?<!de) by (?=[A-Z])")
_WRITTEN_IN = any_case(r"\bwritten(?= (?:in|as)\b(?! [0-9]))")
_DIMENSIONS = any_case(r"\b([1-9])-?d\b")
_INLINE_CODE = re.compile(r"`([^`\n]{3,})`")
_CURRENCIES = tuple(
    (re.compile(rf"{sign}\s?(?=[0-9])"), f"{name} ")
    for sign, name in (("£", "pounds"), (r"\$", "dollars"), ("€", "euros"))
)
_NOT_ALLOWED = any_case(r"\b(?:not|n['’]t) (?:be )?(?:allowed|permitted)\b")
_WHAT_MAKES = any_case(r"\bwhat (?:makes|made)\b")
_WRITE_TO = any_case(r"\bwrit(?:e|es|ing)(?= to\b)")
_RID_OF = any_case(r"\b(?:get|gets|getting|got) rid of\b")
_NAMED_AFTER = any_case(r"\bnamed (?:after|for|in hono[u]?r of)\b")
_STANDS_FOR = any_case(
    r"\b(?:(?:does|do) )?stands? for\b|\b(?:is|are) (?:short|an (?:acronym|abbreviation)) (?:for|of)\b"
)
_CAME_OUT = any_case(r"\b(?:come|came|comes) out\b")
_THOUGHT_UP = any_case(
    r"\b(?:(?:thought|dreamt|dreamed|made) up|(?:come|came) up with|whose idea (?:was|is))\b"
)
# Words about answering, not about the subject.
_ABOUT_ANSWERS = frozenset(
    map(stem, ("answer", "question", "correct", "according", "background", "wiki", "many"))
)
# Verbs that say the same of a work, by one of their stems.
SAME_AS = {
    stem(word): stem(words.split()[0])
    for words in (
        "create created creator invent invented inventor design designed designer make made maker develop developed "
        "developer write wrote written writer author authored devise devised build built conceive conceived",
        "release released publish published appear appeared introduce introduced launch launched",
        "win won winner winning",
    )
    for word in words.split()
}


class Statement(Struct, frozen=True):
    """A sentence or line of page ``n``: the stems of its own ``words``, and those of what stands above it."""

    n: int
    section: int
    words: frozenset[str]
    context: frozenset[str]
    text: str
    kind: TextKind


class EvidencePassage(Struct, frozen=True):
    """A passage of page ``n`` with the stems of title, headings and table header above it.

    ``more`` are the statements of the paragraph or list behind it, ``header`` is the first row of its table.
    """

    n: int
    section: int
    text: str
    context: frozenset[str]
    statements: list[Statement]
    heading: str
    more: list[Statement]
    header: str = ""

    @property
    def whole(self) -> list[Statement]:
        """Its statements and those of the paragraph or list behind it."""
        return [*self.statements, *self.more]

    @property
    def words(self) -> frozenset[str]:
        """The stems of its own text."""
        return frozenset[str]().union(*(each.words for each in self.statements))


class Evidence(Struct, frozen=True):
    """Passages of numbered pages; ``ordinary`` stems occur in lower case in some of them.

    ``titles`` are the stems of each page's title, without a part in parentheses; ``names`` are the titles. ``sections``
    are the whole texts that the passages are from, by page and section, ``openings`` the first sentences of the pages.
    ``files`` are the pages that are files of a project.
    """

    passages: list[EvidencePassage]
    titles: dict[int, frozenset[str]]
    names: dict[int, str]
    ordinary: frozenset[str]
    urls: dict[int, str]
    sections: dict[tuple[int, int], str]
    openings: dict[int, str]
    files: frozenset[int] = frozenset()

    @classmethod
    def of(cls, pages: Iterable[tuple[int, Page, Sequence[Passage]]]) -> Self:
        """Build evidence from numbered pages and passages of each."""
        passages: list[EvidencePassage] = []
        titles: dict[int, frozenset[str]] = {}
        names: dict[int, str] = {}
        urls: dict[int, str] = {}
        ordinary: set[str] = set()
        sections: dict[tuple[int, int], str] = {}
        openings: dict[int, str] = {}
        files = set()
        for n, page, parts in pages:
            if page.is_file:
                files.add(n)
            urls[n] = page.url
            names[n] = page.title
            openings[n] = opening(each.text for each in page.sections)
            title = page.asked_as or _PARENTHESES.sub("", page.subject)
            titles[n] = meaning(content_words(as_meant(title)))
            for part in parts:
                index, text, section = part.section, part.text, page.sections[part.section]
                ordinary |= lower_case_stems(text)
                header = part.header if part.header != text and names_columns(part.header) else ""
                above = as_meant(f"{page.names}\n{section.heading}\n{header}\n{part.term}".rstrip())
                context = meaning(features(above).words)
                own, more = (list(_statements(n, index, each, context)) for each in (text, part.more))
                sections[n, index] = section.text
                passages.append(
                    EvidencePassage(n, index, text, context, own, section.heading, more, part.header)
                )
        return cls(passages, titles, names, frozenset(ordinary), urls, sections, openings, frozenset(files))

    @property
    def initials(self) -> dict[str, str]:
        """The stem of a title's first word by the initials of its capitalised words: EU of "European Union law"."""
        capitals = [[word for word in tokens(name) if word[:1].isupper()] for name in self.names.values()]
        return {"".join(word[0] for word in each): stem(each[0]) for each in capitals if len(each) > 1}

    @property
    def statements(self) -> Iterator[Statement]:
        return (statement for passage in self.passages for statement in passage.statements)


class Support(Struct, frozen=True):
    """How well a page supports a claim (0 to 1), and the statement, with its section, that supports it best."""

    share: float
    section: int
    statement: str = ""


class Backing(Struct, frozen=True):
    """The pages that support a claim; ``together`` if only all of them do, ``bare`` if the question gave its words."""

    pages: dict[int, Support] = {}
    together: bool = False
    bare: bool = False


def bare_claim(text: str) -> str:
    """A sentence without its markers and the sign of a list item."""
    return ITEM_NUMBER.sub("", MARKER.sub(" ", text), count=1)


def says_nothing(text: str) -> bool:
    """Whether a text is only about an answer, such as "The answer is:"."""
    said = meaning(content_words(text))
    return bool(said) and said <= _ABOUT_ANSWERS


def supporting(text: str, evidence: Evidence, question: str = "") -> Backing:
    """Find the pages of which a statement supports the sentence, or else those that support its clauses."""
    evidence = _under_its_heading(text, evidence)
    asked = _claim(question, evidence)
    claimed = _claim(bare_claim(text), evidence)
    found = _literally(text, _backed(claimed, asked, evidence), evidence)
    if found:
        return Backing(found, bare=not _relation(claimed))
    if CELLS in text:
        return Backing()
    clauses = _CLAUSES.split(bare_claim(text))
    parts = [_claim(clause, evidence) for clause in clauses]
    if len(parts) < 2 or not all(_relation(part) for part in parts):
        return Backing()
    subject = _subject(clauses[0], parts[0])
    pages: dict[int, Support] = {}
    for clause, part in zip(clauses, parts, strict=True):
        if not part.names:  # "… and has 80 columns" is about the same subject
            part = Features(part.words | subject, subject, part.numbers)
        backed = _literally(clause, _backed(part, asked, evidence), evidence)
        if not backed:
            return Backing()
        n = max(backed, key=lambda page: (page in pages, backed[page].share, -page))
        pages.setdefault(n, backed[n])
    return Backing(dict(sorted(pages.items())), together=True)


def _under_its_heading(text: str, evidence: Evidence) -> Evidence:
    """The evidence for an answer behind a heading that is a question: only what stands under that heading."""
    heading, behind, _ = bare_claim(text).partition("?: ")
    said = same_words(heading)
    passages = [each for each in evidence.passages if behind and same_words(each.heading) == said]
    return replace(evidence, passages=passages) if passages else evidence


def _literally(text: str, found: dict[int, Support], evidence: Evidence) -> dict[int, Support]:
    """Those pages whose statement has the phrases that the claim quotes, or the claim, if that is a table's row.

    Code in the claim must be on the page as it is.
    """
    code = [each.strip().casefold() for each in _INLINE_CODE.findall(text)]
    phrases = [bare_claim(text)] if CELLS in text else _QUOTED.findall(text)

    def has_all(n: int, statement: str) -> bool:
        said = f"{same_words(statement)}\n{same_words(evidence.names[n])}"
        shown = [evidence.names[n], *(each.text for each in evidence.passages if each.n == n)]
        return all(same_words(each) in said for each in phrases) and all(
            any(each in text.casefold() for text in shown) for each in code
        )

    return {n: support for n, support in found.items() if has_all(n, support.statement)}


def _claim(text: str, evidence: Evidence) -> Features:
    found = features(as_meant(text), evidence.ordinary)
    return Features(found.words | _authorship(text), found.names, found.numbers)


def _subject(clause: str, claimed: Features) -> frozenset[str]:
    """The names before the first other word."""
    stems = (stem(token) for token in tokens(clause) if not is_stop_word(token))
    return frozenset(takewhile(lambda word: word in claimed.names | claimed.numbers, stems)) & claimed.names


def _backed(claimed: Features, asked: Features, evidence: Evidence) -> dict[int, Support]:
    said, wanted = (meaning(each.words) - _ABOUT_ANSWERS for each in (claimed, asked))
    if said <= wanted and len(said) >= _LEAST_SHARE_ASKED * len(wanted):
        return {}  # it repeats the question
    # A page's title is a name, even in lower case.
    relation = frozenset() if said in evidence.titles.values() else _relation(claimed)
    least = _LEAST_SHARES[min(len(relation), len(_LEAST_SHARES) - 1)]
    required = claimed.names | claimed.numbers
    words = meaning(claimed.words)
    if not relation:
        required |= said
        if not required or not (claimed.names or asked.words) or (asked.words and required <= wanted):
            return {}
        relation, least = _relation(asked) - words, _LEAST_SHARE_ASKED
        if asked.words and not relation:
            return {}  # a name is no answer to "What is …?"
        required |= asked.names | asked.numbers
        words |= meaning(asked.words)
    # A claim that names a page is about that page.
    required = required.union(*(title for title in evidence.titles.values() if title <= words))
    found: dict[int, Support] = {}
    for statement in evidence.statements:
        every = statement.words | statement.context
        if not required <= every:
            continue
        if not meaning(claimed.words) & (statement.words - statement.context):
            continue  # a title, a heading or a table's header says nothing by itself
        matched = len(relation & every)
        if matched < least * len(relation) or matched + 2 * len(required) < _LEAST_WEIGHT:
            continue
        share = len((relation | required) & every) / len(relation | required)
        if statement.n not in found or share > found[statement.n].share:
            found[statement.n] = Support(share, statement.section, statement.text)
    return found


def _relation(claimed: Features) -> frozenset[str]:
    """Content words of a claim beside its names and numbers."""
    return meaning(claimed.words - claimed.names - claimed.numbers) - _ABOUT_ANSWERS


def _statements(n: int, section: int, text: str, context: frozenset[str]) -> Iterator[Statement]:
    """The statements of a passage; one that begins with a pronoun takes the names of the one before."""
    before: frozenset[str] = frozenset()
    for unit in text_units(text):
        found = features(as_meant(unit.text))
        words = meaning(found.words | _authorship(unit.text))
        above = context | before if _REFERS.match(unit.text) else context
        yield Statement(n, section, words, above, unit.text, unit.kind)
        before = found.names


def _authorship(text: str) -> frozenset[str]:
    return frozenset({stem("created")} if _BY.search(text) else ())


def as_meant(text: str) -> str:
    """Tell apart what sounds alike: a book is written by its author, and in a language.

    A 2d grid has 2 dimensions, £5 are pounds, and pages give the long form of a name without saying so.
    """
    text = as_in_one_region(text)
    for sign, name in _CURRENCIES:
        text = sign.sub(name, text)
    text = _NAMED_AFTER.sub("namesake", _RID_OF.sub("remove", _NOT_ALLOWED.sub("forbidden", text)))
    text = _THOUGHT_UP.sub("invented", _DIMENSIONS.sub(r"\1 dimensional", _WHAT_MAKES.sub("why is", text)))
    text = _STANDS_FOR.sub(" ", _WRITE_TO.sub("contact", text))
    return _CAME_OUT.sub("appeared", _WRITTEN_IN.sub("worded", text))


def meaning(words: Iterable[str]) -> frozenset[str]:
    """The words, with one for all that say the same."""
    return frozenset(SAME_AS.get(word, word) for word in words)
