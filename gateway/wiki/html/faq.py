"""The questions of a DocBook FAQ as headings: DocBook writes them into a table, behind a list of them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.wiki.html.tables import PARTS
from gateway.wiki.html.tokens import Tag

_SET, _QUESTION, _HEADING, _BLOCK = "qandaset", "question", Tag("h4", False, ""), Tag("div", False, "")
_PARTS = PARTS | {"tbody", "colgroup", "col"}

Event = str | tuple[Tag, bool]


def questions_as_headings(events: Iterable[Event]) -> Iterator[Event]:
    """Pass on texts and balanced elements; of a set of questions, each one as a heading, and no table around them."""
    depth = tables = 0  # open elements from the set on, and open tables among them
    until = 0  # the depth at which the open question, or the list of all questions, ends
    is_list = False
    for event in events:
        if isinstance(event, str):
            if not is_list:
                yield event
            continue
        element, opens = event
        name = element.name
        if not depth and not (opens and name == "div" and _SET in element.classes):
            yield event
            continue
        depth += 1 if opens else -1
        tables += opens and name == "table"
        if until:
            if name in PARTS:
                yield " "  # between the number and the question
            if depth < until:
                if not is_list:
                    yield _HEADING, False
                until, is_list = 0, False
        elif opens and name == "dl" and not tables:
            until, is_list = depth, True
        elif opens and name == "tr" and _QUESTION in element.classes and tables == 1:
            until = depth
            yield _HEADING, True
        elif name in _PARTS and tables == 1:
            yield _BLOCK, opens
        else:
            yield event
        tables -= not opens and name == "table"
