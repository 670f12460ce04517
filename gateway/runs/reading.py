"""Check a small model's words about a file: kept where the file has them, otherwise the file's own words."""

from __future__ import annotations

import re

from gateway.ask.checking.citations import REFUSAL, AnswerChecker
from gateway.ask.checking.evidence import Evidence
from gateway.ask.text.passages import cut_section
from gateway.base.patterns import any_case
from gateway.runs.planning.wordings import SUM_UP
from gateway.wiki.source import Page, Section

NO_ANSWER = "No sentence of "  # begins a result that answers nothing: it can be told, but is not kept
_PASSAGE_TOKENS = 200
_BEGINNING = 1000  # characters of the file, where none of its sentences answers
# The task itself is no sentence of the file.
_MAKES = any_case(
    r"(?:write|rewrite|translate|draft|compose|make|suggest|list|count|convert|turn|rank|rate|guess|imagine|"
    r"viết|dịch|liệt kê|đếm|gợi ý)\b"
)
_MARKER = re.compile(r"\s*\[1\]")
_SAYS = re.compile(r'The page ("[^"]*" says)')


def checked_reading(path: str, text: str, question: str, written: str) -> str:
    """The sentences of an answer that the file supports, or those of the file that answer, or its beginning.

    What is not asked but to be made, such as a translation, stays as it is ``written``.
    """
    if _MAKES.match(question):
        return written
    is_summary = SUM_UP.match(question) is not None
    page = Page(path, 0, "", [Section("", "", 1, text)])
    evidence = Evidence.of([(1, page, cut_section(0, text, _PASSAGE_TOKENS))])
    checker = AnswerChecker(evidence, "" if is_summary else question)
    checker.feed(written)
    checker.end()
    if checker.answer.strip() != REFUSAL and checker.cited:
        return _SAYS.sub(r"\1", _MARKER.sub("", checker.answer), count=1).strip()
    beginning = text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}…"
    return f"{'' if is_summary else f'{NO_ANSWER}{path} plainly answers that. '}The file begins:\n{beginning}"
