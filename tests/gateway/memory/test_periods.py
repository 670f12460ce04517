"""The month or year that a message mentions."""

from __future__ import annotations

from datetime import date

import pytest

from gateway.memory.planning.periods import mentioned_period


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
