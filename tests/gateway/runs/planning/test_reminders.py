"""Reminders, alarms and timers, whole or in part."""

from __future__ import annotations

import pytest

from gateway.runs.planning.reminders import reminder_in, reminders_in


@pytest.mark.parametrize(
    ("text", "kind", "time", "about"),
    [
        ("remind me to water the basil at 18:30", "reminder", "at 18:30", "water the basil"),
        ("tomorrow at 8 please remind me of it", "reminder", "tomorrow at 8", ""),
        ("Oh and remind me tomorrow at 9 to feed the fish", "reminder", "tomorrow at 9", "feed the fish"),
        ("I have to call the bank, remind me on Friday at 9", "reminder", "on Friday at 9", "call the bank"),
        ("set a reminder for the ferry", "reminder", "", "the ferry"),
        ("i need a reminder", "reminder", "", ""),
        ("remind me later", "reminder", "", ""),
        ("nhắc mình 9 giờ sáng mai gọi cho mẹ", "reminder", "9 giờ sáng mai", "gọi cho mẹ"),
        ("nhac minh 7h toi nay do rac", "reminder", "7h tối hôm nay", "do rac"),
        ("nhắc mình mua sữa lúc 6 giờ chiều nay", "reminder", "lúc 6 giờ chiều hôm nay", "mua sữa"),
        (
            "vui lòng nhắc nhở tôi về cuộc họp lúc mười giờ hai mươi tối ngày mai",
            "reminder",
            "lúc 10 giờ 20 tối ngày mai",
            "cuộc họp",
        ),
        (
            "tôi cần đặt lời nhắc cho buổi khám răng vào ngày hai mươi tháng tư",
            "reminder",
            "vào ngày 20 tháng 4",
            "buổi khám răng",
        ),
        ("chieu thu sau nho viec rua xe gium tui", "reminder", "chiều thứ sáu", "rua xe"),
        ("đến 45 phút nữa nhớ báo tui tắt bếp nghen", "reminder", "45 phút nữa", "tắt bếp"),
        (
            "mình có hẹn với thợ điện lúc chín giờ kém mười sáng mai nhớ nhắc mình",
            "reminder",
            "lúc 8 giờ 50 sáng mai",
            "hẹn với thợ điện",
        ),
        ("bạn có thể tạo cho tôi một báo thức lúc bảy rưỡi sáng không", "alarm", "lúc 7 giờ 30 sáng", ""),
        (
            "cai bao thuc thu hai tuan sau luc 8 gio sang cho tui voi",
            "alarm",
            "thứ hai tuần sau lúc 8 giờ sáng",
            "",
        ),
        ("gọi tôi dậy sau nửa tiếng nữa", "alarm", "sau 30 phút nữa", ""),
        ("hẹn giờ tới 7 giờ tối mai nhé", "alarm", "7 giờ tối mai", ""),
        ("hẹn giờ mười lăm phút", "timer", "in 15 phút", ""),
        ("đặt chuông trưa mai", "alarm", "12 giờ trưa mai", ""),
        ("can you set an alarm for 6:15 am?", "alarm", "6:15 am", ""),
        ("tomorrow I need the alarm to go off at 9", "alarm", "tomorrow at 9", ""),
        ("wake me at 7 tomorrow", "alarm", "at 7 tomorrow", ""),
        ("wake me up at 6", "alarm", "at 6 am", ""),
        ("đặt báo thức 6 giờ sáng mai", "alarm", "6 giờ sáng mai", ""),
        ("set my alarm for seven tomorrow morning", "alarm", "tomorrow morning at seven", ""),
        ("set an alarm for 9 tomorrow", "alarm", "tomorrow at 9", ""),
        ("an alarm for half past six tomorrow please", "alarm", "6:30 tomorrow", ""),
        ("set an alarm for twelve minutes from now", "alarm", "twelve minutes from now", ""),
        ("set an alarm to wake me up at 5:20am", "alarm", "at 5:20am", ""),
        ("set a reminder alarm for me to stretch", "reminder", "", "stretch"),
        ("i need a timer to be set", "timer", "", ""),
        ("remind me to let the cat in tomorrow at 9", "reminder", "tomorrow at 9", "let the cat in"),
        ("make me a reminder to alert me to vote", "reminder", "", "vote"),
        ("remind me to pay rent before friday", "reminder", "", "pay rent before friday"),
        ("set a reminder for myself", "reminder", "", ""),
        ("set a 25-minute timer", "timer", "in 25-minute", ""),
        ("start counting down from ninety seconds", "timer", "in ninety seconds", ""),
        ("tell me when two hours have passed", "timer", "in two hours", ""),
        ("start a timer for the eggs, 7 minutes", "timer", "in 7 minutes", "the eggs"),
    ],
)
def test_a_reminder_is_read(text: str, kind: str, time: str, about: str) -> None:
    found = reminder_in(text)
    assert found is not None
    assert (found.kind, found.time, found.text) == (kind, time, about)


@pytest.mark.parametrize(
    "text",
    [
        "remind me why we moved",
        "gọi tôi là Nam",
        "bạn còn nhớ việc hôm đó không?",
        "báo thức của tôi đã được đặt chưa",
        "hôm nay anh nhắc em đi ngủ",
        "remind me of the name of that ferry",
        "my alarm went off at 6",
        "the timer on the oven is broken",
        "how do I set an alarm on my phone?",
        "I don't want an alarm",
        "don't remind me",
        "you should remind me to smile more, haha",
        "ping me at jo@example.com tomorrow",
        "That is a fine view! I am glad to have you to remind me.",
        "she told me to get up at 6",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert reminder_in(text) is None


def test_two_are_two() -> None:
    for text in (
        "set an alarm for 5:40 am and an alarm for 6:10 am",
        "set alarms for 5:40 am and 6:10 am",
        "two alarms, one for 5:40 am and another for 6:10 am",
    ):
        assert [each.time for each in reminders_in(text)] == ["5:40 am", "6:10 am"]
