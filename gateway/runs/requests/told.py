"""Replies to a chat's requests, in English or Vietnamese. Pure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

from gateway.base.calendar import DAYS_VI

Said = Literal[
    "on_list", "on_list_already", "not_put", "off_list", "done", "not_on_list", "several", "nothing_there", "is_there",
    "list", "doing", "waiting", "reminder", "alarm", "timer", "once", "not_here",
]  # fmt: skip
_SAID: dict[Said, tuple[str, str]] = {
    "on_list": ("On your list{day}: {what}", "Đã thêm vào danh sách{day}: {what}"),
    "on_list_already": ("Already on your list{day}: {what}", "Đã có trong danh sách{day}: {what}"),
    "not_put": ("Not put on your list, which is full: {what}", "Danh sách đã đầy, chưa thêm: {what}"),
    "off_list": ("Taken off your list{day}: {what}", "Đã bỏ khỏi danh sách{day}: {what}"),
    "done": ("Done: {what}", "Đã xong: {what}"),
    "not_on_list": ("Not on your list{day}: {what}", "Không có trong danh sách{day}: {what}"),
    "several": (
        "Several on your list may be meant: {what}. Say which one.",
        "Có nhiều việc như vậy: {what}. Việc nào?",
    ),
    "nothing_there": ("There is nothing on your list{day}.", "Danh sách{day} không có gì."),
    "is_there": ("Yes, on your list: {what}", "Có trong danh sách: {what}"),
    "list": ("On your list{day}:", "Danh sách{day}:"),
    "doing": ("In progress: {what}", "Đang làm: {what}"),
    "waiting": ("Waiting: {what}", "Đang chờ: {what}"),
    "reminder": ("I will remind you {when}: {what}", "Sẽ nhắc {when}: {what}"),
    "alarm": ("The alarm will go off {when}.", "Đã đặt báo thức {when}."),
    "timer": ("The timer ends {when}.", "Hẹn giờ kết thúc {when}."),
    "once": (
        "A reminder comes once and does not repeat itself. For what day and hour?",
        "Lời nhắc chỉ báo một lần. Ngày nào, mấy giờ?",
    ),
    "not_here": (
        "I set no reminders in a channel.",
        "Trong kênh chung không đặt được lời nhắc.",
    ),
}
Question = Literal["text", "time", "clock", "alarm", "timer", "past", "add", "drop", "day"]
_ASKED: dict[Question, tuple[str, str]] = {
    "text": ("What shall I remind you of{when}?", "Nhắc việc gì{when}?"),
    "time": (
        "When shall I remind you of it? Say a day and an hour, such as tomorrow 9:00.",
        "Nhắc lúc nào? Ví dụ: 9 giờ sáng mai.",
    ),
    "clock": (
        "At what hour is “{when}”? Say it such as 9:00 or 5 pm.",
        "“{when}” là mấy giờ? Ví dụ: 9 giờ sáng.",
    ),
    "alarm": (
        "For what time is the alarm? Say it such as 6:30 or tomorrow 7 am.",
        "Báo thức lúc mấy giờ? Ví dụ: 6 giờ sáng mai.",
    ),
    "timer": ("How long does the timer run? Say it such as 10 minutes.", "Hẹn giờ bao lâu? Ví dụ: 10 phút."),
    "past": ("“{when}” is past. For what later time?", "“{when}” đã qua. Lúc nào?"),
    "add": ("What shall I put on your list?", "Thêm việc gì vào danh sách?"),
    "drop": ("Which one on your list is meant?", "Việc nào trong danh sách?"),
    "day": ("On what date is “{when}”? Say it such as 5 March.", "“{when}” là ngày nào? Ví dụ: ngày 5 tháng 3."),
}  # fmt: skip


_OPENINGS = tuple(
    opening
    for texts in (*_SAID.values(), *_ASKED.values())
    for text in texts
    if len(opening := text.partition("{")[0]) > 1  # not the quotation mark alone
)


def is_told(reply: str) -> bool:
    """Whether a reply begins like one of these."""
    return reply.startswith(_OPENINGS)


class Language(Struct, frozen=True):
    """The language of a message, in which it is answered."""

    vietnamese: bool

    def said(self, kind: Said, **values: str) -> str:
        return _SAID[kind][self.vietnamese].format(**{"day": "", "what": "", "when": "", **values})

    def asked(self, question: Question, when: str = "") -> str:
        return _ASKED[question][self.vietnamese].format(when=when)

    def of_day(self, day: str, today: date) -> str:
        """ " of Saturday 28 November" for YYYY-MM-DD; "" for today."""
        found = date.fromisoformat(day)
        return (
            "" if found == today else f" {'của' if self.vietnamese else 'of'} {self._written(found, today)}"
        )

    def at_moment(self, moment: datetime, now: datetime) -> str:
        """ "at 09:00 on Saturday 28 November", without the day if it is today."""
        clock = moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
        at = f"{'lúc' if self.vietnamese else 'at'} {clock}"
        if moment.date() == now.date():
            return at
        return f"{at} {'' if self.vietnamese else 'on '}{self._written(moment.date(), now.date())}"

    def _written(self, day: date, today: date) -> str:
        year = "" if day.year == today.year else f" {day.year}"
        if self.vietnamese:
            return f"{DAYS_VI[day.weekday()]} {day.day}/{day.month}{year.replace(' ', '/')}"
        return f"{day:%A} {day.day} {day:%B}{year}"
