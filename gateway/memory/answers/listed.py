"""Questions for the list of today. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.memory.answers.questions import in_vietnamese
from gateway.memory.learning.plain import FILLERS
from gateway.memory.learning.wordings import SUBJECT_VI

_LONGEST = 120
_LISTS = r"(?:(?:to-?do|task)s?(?: list)?|tasks?|reminders?|list)"
_REST = r"(?:left|still|open|else|planned|due|on|pending)"
_WHEN = r"(?:for |on )?(?:today|this (?:morning|afternoon|evening)|tonight)"
_HAVE = r"(?:(?:do|did) (?:i|we) (?:still |also )?(?:have|need)|have (?:i|we) (?:still |also )?got)"
_NOW_VI = r"(?:hôm nay|bây giờ|giờ|sáng nay|chiều nay|tối nay)"
_TASKS_VI = r"(?:(?:những |các )?(?:việc|công việc)(?: cần làm)?|danh sách(?: (?:công )?việc)?(?: cần làm)?)"
_ASKS = re.compile(
    rf"\W*(?:(?:{FILLERS})\W+)*"
    r"(?:(?:can|could|would) (?:you|u) (?:please )?|(?:please )?(?=tell|remind)|do (?:you|u) (?:know|remember) )?"
    r"(?:(?:tell|remind) me (?:again )?)?"
    rf"(?:(?:what|which)(?:['’]?s| is| are| do| have)? (?:{_REST} )*(?:(?:on|in) )?(?:(?:my|our) |i have )"
    rf"(?:open |next |other )?{_LISTS}|"
    rf"(?:what|which) (?:tasks|to-?dos|reminders) (?:do i have|have i got|are (?:there|open|left|due))|"
    rf"what (?:else )?{_HAVE} (?:to do|on|left|planned)|what i (?:still )?(?:have|need) to do|"
    rf"what(?:['’]?s| is|s)? (?:still )?{_REST}(?: (?:to do|to be done))? {_WHEN}|"
    rf"(?:(?:is there |are there |do i have |have i got )?(?:anything|any tasks|any to-?dos)(?: else)? )"
    rf"(?:{_REST} )*(?:to do|(?:on|in) (?:my|the) {_LISTS}|{_WHEN})|"
    rf"(?:show|list|give|read)(?: me)? (?:all )?(?:of )?(?:my|the) (?:open )?{_LISTS}|"
    rf"(?:{_NOW_VI} )?{SUBJECT_VI} (?:còn )?(?:phải|cần) làm (?:những )?(?:việc )?gì|"
    rf"{_NOW_VI} (?:{SUBJECT_VI} )?(?:còn |có )*(?:những )?(?:việc )(?:gì|nào)(?: (?:phải|cần) làm)?|"
    rf"(?:cho {SUBJECT_VI} xem |xem |nhắc lại (?:(?:giúp|cho) )?(?:{SUBJECT_VI} )?)?{_TASKS_VI}"
    rf"(?: {_NOW_VI}| của {SUBJECT_VI}| (?:có|gồm|là)(?: những)? gì)+|"
    rf"{SUBJECT_VI} (?:(?:có|còn) )+(?:những )?việc (?:gì|nào))"
    rf"(?:,? (?:{_WHEN}|now|please|pls|left|again|{_NOW_VI}|vậy|thế|nữa|nhỉ|ấy|không|ko|chưa))*\W*",
    re.I,
)

OPENINGS = ("Tasks of today:", "Việc hôm nay:")
_NO_TASKS = ("There are no tasks for today.", "Hôm nay không có việc nào.")


def asks_for_tasks(asked: str) -> bool:
    """Whether a message asks for the list of tasks, and for nothing else."""
    return len(asked) <= _LONGEST and bool(_ASKS.fullmatch(asked.strip()))


def task_answer(asked: str, lines: Sequence[str]) -> str:
    """The list of today's tasks, or that there are none, in the language of the question."""
    vietnamese = in_vietnamese(asked)
    if not lines:
        return _NO_TASKS[vietnamese]
    return "\n".join([OPENINGS[vietnamese], *lines])
