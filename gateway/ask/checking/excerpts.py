"""Quotations, and which statements can be quoted together: lines behind a colon, steps, code, one or two sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from gateway.ask.checking.evidence import Statement, meaning
from gateway.ask.checking.relevance import DEFINED
from gateway.ask.text.passages import CELLS, introduces
from gateway.ask.text.words import content_words

LONGEST = 400  # characters of a quotation
_LONGEST_LIST = 1000  # the same of a list
_LEAST_WORDS = 4  # of a sentence
_BEGINNING = 4  # words of a statement, one of which is what it is about
_ITEM_NUMBER = re.compile(r"\s*([0-9]+)[.)]")
_TERM = re.compile(r"\s*[-*•] [^:.]{2,60}: \S")


class Quote(Struct, frozen=True):
    """Sentences of page ``n``, word for word, from the evidence's passage of that index.

    ``lines`` are a list, or lines of code or a table after a colon. ``clear`` if the sentences answer the question,
    ``complete`` if they have all of its words, and ``near`` if they have most: then they are better than others.
    ``sure`` if they cover the question without the names in their passage.
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
    near: bool = False
    sure: bool = False


def certain(quotes: Sequence[Quote]) -> bool:
    """Whether each quote covers enough of the question to answer it."""
    return bool(quotes) and all(quote.clear and (quote.sure or quote.complete) for quote in quotes)


def is_about(side: frozenset[str], statement: Statement) -> bool:
    """Whether a line begins with one of the things that are compared, or a sentence says what that is."""
    begin = DEFINED.match(statement.text)
    words = meaning(content_words(begin[1] if begin else statement.text)[:_BEGINNING])
    short = begin is not None and len(words) <= len(side) + 1
    long = len(statement.text.split()) >= _LEAST_WORDS and len(statement.text) <= LONGEST
    return long and side <= words and (short or statement.kind == "list")


def begins_list(statements: list[Statement], at: int) -> bool:
    """Whether a list begins here that no sentence introduces."""
    kinds = [each.kind for each in statements[at : at + 2]]
    before = statements[at - 1] if at else None
    number = _ITEM_NUMBER.match(statements[at].text)
    if number is not None and number[1] != "1":
        return False
    return kinds == ["list", "list"] and (
        before is None or (before.kind != "list" and not introduces(before.text, "list"))
    )


def lines_behind(statements: list[Statement], start: int, end: int, code: bool) -> list[Statement]:
    """The lines behind a sentence with a colon, or a list, if these are not too many to take in.

    Where ``code`` may be the answer, it needs no colon before it.
    """
    lines = list(takewhile(lambda each: each.kind != "prose", statements[end:]))
    if end - start == 1 and statements[start].kind == "list":
        own = _indent(statements[start])
        return list(takewhile(lambda each: _indent(each) > own, lines))
    if start < end and lines and not introduces(statements[end - 1].text, lines[0].kind):
        lines = lines if code and are_code(lines) else []
    listed = all(each.kind == "list" for each in lines)
    return lines if sum(len(each.text) for each in lines) <= (_LONGEST_LIST if listed else LONGEST) else []


def _indent(line: Statement) -> int:
    return len(line.text) - len(line.text.lstrip())


def are_steps(lines: Sequence[Statement]) -> bool:
    """Whether lines are a list of things to do, and not one of terms with what each means."""
    return len(lines) > 1 and not all(_TERM.match(each.text) for each in lines)


def are_code(lines: Sequence[Statement]) -> bool:
    return bool(lines) and all(each.kind == "code" for each in lines)


def _is_bare_row(text: str) -> bool:
    """Whether only one cell of a table's row has a text: it groups the rows below."""
    cells = text.split(CELLS.rstrip())
    return len(cells) > 2 and sum(bool(cell.strip()) for cell in cells) == 1


def quotable(statements: list[Statement], start: int, end: int) -> bool:
    """Whether a line, or one or two whole sentences, can stand alone, and is not more than a reader takes in."""
    chosen = statements[start:end]
    if end > len(statements) or sum(len(each.text) for each in chosen) > LONGEST:
        return False
    if not all(each.kind == "prose" for each in chosen):
        return len(chosen) == 1 and not _is_bare_row(chosen[0].text)
    begins = start == 0 or not chosen[0].text[:1].islower()  # else it is the rest of a sentence: "Ook! is …"
    # "No. You need no permission", "A language for lists. Written in 1965.": a short sentence is no answer without
    # another one, and begins none amid a text.
    long = [len(each.text.split()) >= _LEAST_WORDS for each in chosen]
    return begins and any(long) and (start == 0 or long[0])
