"""How words of the pages are shown: quotations with their source, and the rows of tables as sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from gateway.ask.checking.clean import without_links, without_markup
from gateway.ask.checking.evidence import ITEM_NUMBER, Evidence
from gateway.ask.checking.excerpts import Quote
from gateway.ask.text.passages import CELLS, is_sentence
from gateway.ask.text.sentences import MARKER
from gateway.ask.text.words import asks, content_words
from gateway.base.visible import visible

_LEAST_NAMED_CELLS = 2  # of a row, for their columns to be named
_ANSWERED = re.compile(r"(?<=\w)\?:(?=\s)")  # behind a heading that is a question


def quotations(quotes: Sequence[Quote], evidence: Evidence) -> str:
    return "\n".join(_quotation(quote, evidence) for quote in quotes)


def _quotation(quote: Quote, evidence: Evidence) -> str:
    """Words of a page, marked as such. Each line of a list has its marker, code has none."""
    mark = f" [{quote.n}]"
    passage = evidence.passages[quote.passage]
    said = "".join(f" {_plain(without_cells(each, passage.header))}{mark}" for each in quote.statements)
    heading = _plain(passage.heading)
    known = content_words(f"{evidence.names[quote.n]} {said}")
    under = "" if set(content_words(heading)) <= {*known} else f' under "{heading}"'
    text = f'The page "{_plain(evidence.names[quote.n])}" says{under}:{said}'
    return "\n".join([text, *lines_of(quote)])


def lines_of(quote: Quote) -> list[str]:
    """The lines of a quotation: code in a fence, each line of a list with its marker."""
    lines = [without_links(without_markup(visible(each.text), True), (), True) for each in quote.lines]
    if lines and quote.lines[0].kind == "code":
        return ["```", *lines, "```"]
    return [f"{line} [{quote.n}]" for line in lines]


def without_cells(line: str, header: str = "") -> str:
    """A line without the signs of a list or a table. The cells of a row have their columns' names."""
    first, *others = ITEM_NUMBER.sub("", line).split(CELLS)
    if not others:
        return first
    first = first.rstrip(".") or first
    columns = header.split(CELLS)[1:]
    if len(others) < _LEAST_NAMED_CELLS or len(columns) != len(others) or line == header:
        return f"{first}: {', '.join(cell.strip() for cell in others if cell.strip(' |…'))}"
    named = zip(columns, others, strict=True)
    return f"{first} – {'; '.join(f'{column}: {cell}' for column, cell in named if cell.strip())}"


def header_of(sources: Mapping[int, str], evidence: Evidence) -> str:
    """The header of the table that has a page's statement as a row, or ""."""
    return next(
        (
            passage.header
            for passage in evidence.passages
            if any(each.text == sources.get(passage.n) for each in passage.statements)
        ),
        "",
    )


def without_heading(text: str, sections: Set[tuple[int, int]], evidence: Evidence) -> str:
    """A sentence without the heading of its section in front: "The 4.x Releases: Version 4 …".

    One that is a question stays, as its answer may be short.
    """
    for passage in evidence.passages:
        rest = text.removeprefix(f"{passage.heading}: ")
        here = (passage.n, passage.section) in sections and not asks(passage.heading)
        if here and rest != text and is_sentence(MARKER.sub("", rest)):
            return rest
    return text


def without_colon(text: str) -> str:
    """A sentence in which no colon follows the question above its answer."""
    return _ANSWERED.sub("?", text)


def _plain(text: str) -> str:
    return without_links(without_markup(" ".join(visible(text).split())), ())
