"""Times that people write, and steps that wait for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.when import day_meant, moment
from gateway.runs.planning.words import items_of_words
from gateway.runs.tool import Toolbox
from tests.gateway.runs.planning.conftest import KNOWN

NOW = datetime(2026, 11, 23, 14, 30, tzinfo=ZoneInfo("Europe/Helsinki"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15:00", NOW.replace(hour=15, minute=0)),
        ("at 3 pm", NOW.replace(hour=15, minute=0)),
        ("14:00", NOW.replace(day=24, hour=14, minute=0)),
        ("tomorrow at 9:15", NOW.replace(day=24, hour=9, minute=15)),
        ("9am tomorrow", NOW.replace(day=24, hour=9, minute=0)),
        ("2026-12-01 8:00", NOW.replace(month=12, day=1, hour=8, minute=0)),
        ("2026-12-01T08:00:00+02:00", NOW.replace(month=12, day=1, hour=8, minute=0)),
        ("in 10 minutes", NOW + timedelta(minutes=10)),
        ("in an hour", NOW + timedelta(hours=1)),
        ("12 am", NOW.replace(day=24, hour=0, minute=0)),
        ("in two minutes", NOW + timedelta(minutes=2)),
        ("half an hour", NOW + timedelta(minutes=30)),
        ("on Friday at 9", NOW.replace(day=27, hour=9, minute=0)),
        ("18 giờ", NOW.replace(hour=18, minute=0)),
        ("18h", NOW.replace(hour=18, minute=0)),
        ("in 2h", NOW + timedelta(hours=2)),
        ("2 giờ nữa", NOW + timedelta(hours=2)),
        ("twenty five minutes from now", NOW + timedelta(minutes=25)),
        ("eight thirty in the morning tomorrow", NOW.replace(day=24, hour=8, minute=30)),
        ("tomorrow morning at 5", NOW.replace(day=24, hour=5, minute=0)),
        ("5:30pm", NOW.replace(hour=17, minute=30)),
        ("tmrw 8am", NOW.replace(day=24, hour=8, minute=0)),
        ("tuesday 930", NOW.replace(day=24, hour=9, minute=30)),
        ("noon on Friday", NOW.replace(day=27, hour=12, minute=0)),
        ("7h toi nay", NOW.replace(hour=19, minute=0)),
        ("11 giờ trưa mai", NOW.replace(day=24, hour=11, minute=0)),
        ("the 3rd at 9", NOW.replace(month=12, day=3, hour=9, minute=0)),
        ("tonight at 8", NOW.replace(hour=20, minute=0)),
        ("noon", NOW.replace(day=24, hour=12, minute=0)),
        ("10 phút nữa", NOW + timedelta(minutes=10)),
        ("lúc 9 giờ 30 sáng mai", NOW.replace(day=24, hour=9, minute=30)),
        ("on the 3rd of December at 10", NOW.replace(month=12, day=3, hour=10, minute=0)),
        ("3 Dec 10:15", NOW.replace(month=12, day=3, hour=10, minute=15)),
        ("January 2 at 9", NOW.replace(year=2027, month=1, day=2, hour=9, minute=0)),
        ("9:00 on May 5", NOW.replace(year=2027, month=5, day=5, hour=9, minute=0)),
        ("8 giờ ngày 3 tháng 12", NOW.replace(month=12, day=3, hour=8, minute=0)),
        ("thứ sáu lúc 9 giờ", NOW.replace(day=27, hour=9, minute=0)),
        ("thứ hai tuần sau lúc 8 giờ", NOW.replace(day=30, hour=8, minute=0)),
        ("8 giờ sáng chủ nhật", NOW.replace(day=29, hour=8, minute=0)),
    ],
)
def test_a_time_is_a_moment(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow", "2026-11-24"),
        ("the 3rd", "2026-12-03"),
        ("5/13", "2027-05-13"),
        ("13/5", "2027-05-13"),
        ("next month on the 5th", "2026-12-05"),
        ("wednesday of next week", "2026-12-02"),
        ("friday the 4th", "2026-12-04"),
        ("saturday morning", "2026-11-28"),
        ("thứ hai tuần sau", "2026-11-30"),
        ("12 May 2027", "2027-05-12"),
        ("12 May 2031", "2031-05-12"),
        ("12 May 2020", None),
        ("4/5", None),
        ("30 february", None),
        ("one day", None),
    ],
)
def test_a_day_is_a_date(text: str, expected: str | None) -> None:
    found = day_meant(text, NOW)
    assert (found.isoformat() if found else None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "15",
        "25:00",
        "2026-11-20 15:00",
        "12:99",
        "",
        "2026-11-25",
        "yesterday",
        "tomorrow",
        "tomorrow at 3",
        "31 February at 10",
        "ngày 40 tháng 1 lúc 8 giờ",
    ],
)
def test_what_is_no_time_or_past_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="time"):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("title", "steps"),
    [
        ("2030-01-02 9:00 look up Befunge and tell me", [("wait_until", ""), ("search_wiki", "Befunge")]),
        ("At 15:00, tell me who made Befunge", [("wait_until", ""), ("ask_wiki", "who made Befunge")]),
        (
            "who made Befunge? let me know at 15:00",
            [("ask_wiki", "who made Befunge"), ("remind_at", "{{1}}")],
        ),
        ("set a reminder for tomorrow 8am: dentist", [("remind_at", "dentist")]),
        ("set me a reminder to call mum at 15:00", [("remind_at", "call mum")]),
        ("remind me on the 3rd of December at 10 to vote", [("remind_at", "vote")]),
        ("đặt báo thức 6 giờ sáng mai", [("remind_at", "báo thức")]),
        ("nhắc tôi thứ hai tuần sau lúc 8 giờ nộp báo cáo", [("remind_at", "nộp báo cáo")]),
    ],
)
def test_what_is_asked_for_at_a_time_waits_for_it(
    tools: Toolbox, title: str, steps: list[tuple[str, str]]
) -> None:
    items = [item.tool for item in items_of_words(title, tools, KNOWN) if item.tool]
    texts = [{name: text for name, text in each["arguments"].items() if name != "time"} for each in items]
    found = [(each["name"], "".join(given.values())) for each, given in zip(items, texts, strict=True)]
    assert found == steps
