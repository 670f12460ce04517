"""Vietnamese times and requests, typed with and without marks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runs.planning.vietnamese import in_plain_words
from gateway.runs.planning.when import moment

SATURDAY = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("mười giờ hai mươi tối ngày mai", "10 giờ 20 tối ngày mai"),
        ("trong hai giờ kể từ bây giờ", "sau 2 giờ nữa"),
        ("một tiếng rưỡi nữa", "90 phút nữa"),
        ("thứ bảy bảy giờ rưỡi", "thứ bảy 7 giờ 30"),
        ("ngày ba mươi mốt tháng mười hai", "ngày 31 tháng 12"),
        ("tám giờ hai người tới", "8 giờ hai người tới"),
        ("toi thu bay nho viec tuoi cay", "tối thứ bảy nhớ việc tuoi cay"),
        ("8 gio toi di hoc", "8 giờ toi di hoc"),
        ("hen gio toi dau gio chieu", "hẹn giờ tới chiều nay"),
        ("I sang all day, and bought a hen", "I sang all day, and bought a hen"),
    ],
)
def test_times_are_in_digits_and_marked(text: str, plain: str) -> None:
    assert in_plain_words(text) == plain


@given(st.text())
def test_any_text_is_read_and_read_again_as_it_is(text: str) -> None:
    plain = in_plain_words(text)
    assert in_plain_words(plain) == plain


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("7 giờ tối nay", "2026-11-28T19:00"),
        ("7h toi nay", "2026-11-28T19:00"),
        ("chín giờ kém mười sáng mai", "2026-11-29T08:50"),
        ("trưa mai", "2026-11-29T12:00"),
        ("chiều thứ sáu lúc 3 giờ", "2026-12-04T15:00"),
        ("ngày mốt lúc 8 giờ", "2026-11-30T08:00"),
        ("the day after tomorrow at 9", "2026-11-30T09:00"),
        ("45 phut nua", "2026-11-28T10:15"),
        ("một tiếng rưỡi nữa", "2026-11-28T11:00"),
        ("ngay 4 thang 5 luc 10 gio", "2027-05-04T10:00"),
    ],
)
def test_a_vietnamese_time_is_a_moment(time: str, found: str) -> None:
    assert moment(time, SATURDAY) == datetime.fromisoformat(found).replace(tzinfo=UTC)
