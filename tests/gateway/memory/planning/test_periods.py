"""The month or year that a message mentions."""

from __future__ import annotations

from datetime import date

import pytest

from gateway.memory.planning.periods import mentioned_days, mentioned_period


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did I plan in March?", "2026-03"),
        ("And in December?", "2025-12"),
        ("the trip of May 2024", "2024-05"),
        ("Tháng 3 mình đã làm gì?", "2026-03"),
        ("tháng 12 năm 2024", "2024-12"),
        ("2025-07 was hot", "2025-07"),
        ("What did we do last month?", "2026-10"),
        ("last year", "2025"),
        ("Năm ngoái tôi ở đâu?", "2025"),
        ("What happened in 2024?", "2024"),
        ("I may march on.", None),
        ("in 4711 steps", None),
        ("the book of 9999", None),
        ("Hello", None),
    ],
)
def test_months_and_years(text: str, name: str | None) -> None:
    found = mentioned_period(text, date(2026, 11, 23))
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("text", "first", "words"),
    [
        ("What did I cook on 3 May?", date(2026, 5, 3), {"3", "may"}),
        ("on December 24th", date(2025, 12, 24), {"december", "24th"}),
        ("on Sept. 9, 2024", date(2024, 9, 9), {"sept", "9", "2024"}),
        ("on Sep. 9, 2024", date(2024, 9, 9), {"sep", "9", "2024"}),
        ("2026-02-28", date(2026, 2, 28), {"2026", "02", "28"}),
        ("ngày 5 tháng 3 tôi nói gì", date(2026, 3, 5), {"5", "tháng", "3"}),
        ("What did I plan in March?", date(2026, 3, 1), {"in", "march"}),
        ("on 31 February", None, set()),
        ("on 3 May 2031", None, set()),
        ("may 5 people come?", date(2026, 5, 5), {"may", "5"}),
        ("in 2024", None, set()),
    ],
)
def test_days(text: str, first: date | None, words: set[str]) -> None:
    found = mentioned_days(text, date(2026, 11, 20))
    assert (found.first if found else None, set(found.words) if found else set()) == (first, words)
