"""Questions for the date and the time of day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.memory.answers.computed.answer import was_computed
from gateway.memory.answers.computed.clock import clock_answer

NOW = datetime(2026, 12, 31, 21, 5, tzinfo=UTC)
NOW_EN = "It is 21:05 on Thursday 31 December 2026."


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("what day is it today?", NOW_EN),
        ("hey, what time is it right now", NOW_EN),
        ("Can you please tell me what time it is?", NOW_EN),
        ("What's today's date", NOW_EN),
        ("what year is it", NOW_EN),
        ("current time, please", NOW_EN),
        ("what is tomorrow's date?", "That is Friday 1 January 2027."),
        ("what day was it yesterday", ""),
        ("what will the date be in 64 days", "That is Friday 5 March 2027."),
        ("in two days, what date will it be", "That is Saturday 2 January 2027."),
        ("hôm nay thứ mấy?", "Bây giờ là 21:05, thứ năm, ngày 31 tháng 12 năm 2026."),
        ("mấy giờ rồi", "Bây giờ là 21:05, thứ năm, ngày 31 tháng 12 năm 2026."),
        (
            "Cho mình hỏi hôm nay là ngày bao nhiêu vậy ạ",
            "Bây giờ là 21:05, thứ năm, ngày 31 tháng 12 năm 2026.",
        ),
        ("mai là thứ mấy nhỉ", "Ngày mai là thứ sáu, ngày 1 tháng 1 năm 2027."),
    ],
)
def test_the_clock_answers(asked: str, answer: str) -> None:
    assert clock_answer(asked, NOW) == answer
    assert was_computed(answer) == bool(answer)


@pytest.mark.parametrize(
    "asked",
    [
        "what time is it in Tokyo?",
        "what time is the meeting?",
        "what day?",
        "what time?",
        "do you have time?",
        "I need time",
        "give me a day",
        "what a day",
        "now is the time",
        "how was your day?",
        "what date is my birthday?",
        "remind me in 2 days",
        "what day does the shop close",
        "mấy giờ họp?",
        "thứ mấy họp lớp",
        "what day is it today" + " " * 100 + "?",
        "",
    ],
)
def test_any_other_question_is_left_alone(asked: str) -> None:
    assert clock_answer(asked, NOW) == ""
