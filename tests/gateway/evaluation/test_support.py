"""ALCE's citation recall and precision on answers whose truth is known."""

from __future__ import annotations

import pytest

from gateway.evaluation.support import CitationScore, judge
from gateway.wiki.source import Page, Section

MILL = Page(
    "Tin mill", 1, "u",
    [
        Section("", "", 1, "The tin mill was built by Ada Voss in 1871. It crushed ore.\n\nIt stood near Holm. "
                "A weir fed it. The wheel was wooden. Repairs were rare. In 1904 the mill won the Silver Plate."),
        Section("Crew", "Crew", 2, "Name | Task\nPer Lund | smith\nIda Berg | clerk"),
        Section("Wages", "Wages", 2, "Name | Task | Wage\nA | a | 1\nB | b | 2\nC | c | 4\n"
                "Olaf Ek | miller | 3 crowns"),
    ],
)  # fmt: skip
WEIR = Page("Holm weir", 2, "u", [Section("", "", 1, "The weir was finished in 1869 by Ola Dahl.")])


@pytest.mark.parametrize(
    ("answer", "judged"),
    [
        ("The tin mill was built by Ada Voss in 1871. [1]", CitationScore(1, 1, 1, 1)),
        ("The tin mill was built by Ada Voss in 1872. [1]", CitationScore(1, 0, 1, 0)),
        ("The tin mill was built by Ola Dahl in 1871. [1]", CitationScore(1, 0, 1, 0)),
        ("The tin mill was built by Ada Voss in 1871.", CitationScore(1, 0, 0, 0)),  # nothing is cited
        ("The tin mill was built by Ada Voss in 1871. [2]", CitationScore(1, 0, 1, 0)),  # another page is
        ("The tin mill was built by Ada Voss in 1871. [7]", CitationScore(1, 0, 1, 0)),  # no page is
        ("Holm had 12 wheels. [1]", CitationScore(1, 0, 1, 0)),
        ("The answer is: 1904 [1]", CitationScore(1, 0, 1, 0)),
        # Both parts stand on the page, but not together.
        ("In 1904 the mill of Ada Voss won the Silver Plate. [1]", CitationScore(1, 0, 1, 0)),
        ("In the crew, Per Lund was the smith. [1]", CitationScore(1, 1, 1, 1)),
        ("Olaf Ek – Task: miller; Wage: 3 crowns [1]", CitationScore(1, 1, 1, 1)),  # under its columns' names
        # The second citation adds nothing; each of the two in the next answer is needed.
        ("The tin mill was built by Ada Voss in 1871. [1][2]", CitationScore(1, 1, 2, 1)),
        (
            "Built in 1871 by Ada Voss, the mill followed the weir of 1869 by Ola Dahl. [1] [2]",
            CitationScore(1, 1, 2, 2),
        ),
        ("It crushed ore. [1] The wheel was golden and enormous, say painters. [1]", CitationScore(2, 1, 2, 1)),
        ("The wiki does not say.", CitationScore()),
        ("```\nint x = 5;\n```\nIt crushed ore. [1]", CitationScore(1, 1, 1, 1)),
        ("", CitationScore()),
    ],
)  # fmt: skip
def test_statements_and_citations(answer: str, judged: CitationScore) -> None:
    assert judge(answer, {1: MILL, 2: WEIR}) == judged
