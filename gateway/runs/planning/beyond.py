"""Detect requests that no step can do, such as a condition: the user is told, and no model is asked. Pure."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.base.redact import MARK
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.lists import list_requests
from gateway.runs.planning.reminders import reminders_in
from gateway.runs.planning.wordings import BEFORE, KEEP, URL
from gateway.runs.tool import Toolbox

# At the beginning of a clause: "…, and if it does, …". "Find out if …" has none.
CONDITION = any_case(
    r"(?:^|[,;.:!?]\s*|\b(?:and|but|then|or|và|rồi|nhưng)\s+)(?:(?:only|chỉ)\s+)?"
    r"(?:if|unless|in case|provided that|as long as|otherwise|or else|nếu|trừ khi|không thì)\b"
)
RECURRING = any_case(
    r"\b(?:(?:every|each)\s+(?:(?:other|\d+|single|second|third|two|three|four|five|six|few|couple\s+of)\s+)?"
    r"(?:second|minute|hour|day|night|morning|afternoon|evening|week|weekday|weekend|month|year|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)days|"
    r"hourly|daily|weekly|monthly|yearly|"
    r"(?:mỗi|hằng|hàng)\s+(?:(?:\d+|hai|ba|bốn|vài)\s+)?(?:giây|phút|giờ|tiếng|ngày|sáng|trưa|chiều|tối|đêm|tuần|tháng|năm))\b"
)
# A task is listed only where the words ask for that: a task of these words is there already.
LISTED = any_case(
    r"\b(?:(?:to-?do|task|list|shopping)s?|(?:remember|need|have|forget) to|i must|danh sách|việc|nhiệm vụ|cần|phải)\b"
)
# The same for facts, which may also be what the user says of themselves: "transfer 50 euros to Anna" is none.
KEPT = any_case(
    rf"\b(?:{KEEP}|notes?|noted|facts?|forget|fyi|know|lưu|ghi|quên|biết)\b|"
    r"^(?:my|our|i|we|i['’]\w+|tôi|mình|nhà|con)\b"
)
_UNDOING = any_case(
    r"(?:delete|remove|erase|cancel|clear|stop|undo|don['’]?t|do not|never|xoá|xóa|huỷ|hủy|đừng|ngừng|dừng)\b"
)
_REMINDED = any_case(r"(?:remind|ping|alert|wake|wait|nhắc|chờ|đợi)\b")
_TIMED = any_case(r"\b(?:remind|ping|nudge|alert|wake|notify|tell|wait|nhắc|báo|gọi|chờ|đợi)\b")
_PAST = any_case(r"\b(?:yesterday|last (?:night|week|month|year)|\d+ \w+ ago|hôm qua|tuần trước)\b")
_FILE = any_case(r"(?<![\w/@:.])[\w-]{2,}(?:[./][\w-]+)*\.[a-z]{1,4}\d?(?![\w@/-])")


def beyond_steps(text: str, tools: Toolbox, known: NamedThings) -> str:
    """Why no step can do a part of a title; "" if one may."""
    bare = BEFORE.sub("", text.strip(), count=1)
    if CONDITION.search(text):
        return "No step depends on a condition. Write the steps up to it, and decide by their results"
    if RECURRING.search(text) and _TIMED.search(text):
        return "A step is done once, and none repeats itself"
    if _REMINDED.match(bare) and _PAST.search(text):
        return "The time is past"
    if MARK in text and re.match(KEEP, bare, re.I):
        return "A secret was taken out of it, and the rest is not worth remembering"
    if any(request.op in ("drop", "done", "clear") for request in list_requests(text)):
        return "No step takes anything off the list: say it in a chat, or use `hearth tasks state`"
    if any(not each.time or not each.says for each in reminders_in(text)):
        return "A reminder needs what it is for, and a time such as tomorrow 9:00"
    if _UNDOING.match(bare):
        return "No step deletes, cancels or prevents anything"
    addresses = URL.findall(text)
    if addresses and tools.find("http_get") is None:
        return f"{addresses[0][:100]!r} cannot be fetched, as `tasks.http_hosts` lists no host"
    if missing := [word for word in _FILE.findall(URL.sub("", text)) if word not in known.files]:
        return f"No single indexed file of a registered project is named {missing[0][:100]!r}"
    return ""
