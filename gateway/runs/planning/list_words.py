"""Wordings in English and Vietnamese about a list of tasks."""

from __future__ import annotations

import re
from typing import Literal

from gateway.base.patterns import LatePattern, any_case
from gateway.memory.learning.wordings import SUBJECT_VI
from gateway.runs.planning.when import DAY

Op = Literal["add", "drop", "done", "clear", "show", "has"]

_OWN = r"(?:(?:my|the|our|this|today['’]s|a(?= list of)) )"
_KIND = (
    r"(?:to[- ]?dos?|to[- ]buy|tasks?|shopping|grocery|groceries|reminders?|chores?|agenda|daily|buying|work)"
)
_OF_WHAT = (
    r"(?:groceries|tasks?|things|stuff|items|reminders|chores|shopping|to[- ]?do['’]?s?|errands|housework)"
)
LIST = (
    rf"(?:{_OWN}(?:\w+ ){{0,2}}?(?:{_KIND}[ -])+lists?|{_OWN}lists?|(?:{_KIND}[ -])+lists?|"
    rf"(?:{_OWN}(?:\w+ )?)?cal[ae]nd[ae]r|"
    rf"{_OWN}(?:to[- ]?dos?|tasks|chores|reminders|agenda|schedule|planner|diary))"
    rf"(?: (?:of|for) (?:my |the |all )?(?:pending |open )?{_OF_WHAT}"
    r"(?: (?:to|i (?:have|need|want) to) (?:do|buy|get|complete|finish|remember))?| to do)?"
)
LIST_VI = (
    r"(?:danh sách|list)(?: (?:công )?việc| mua sắm| đi chợ| mua| cần làm| cần mua| nhắc| của (?:tôi|mình|em|anh|chị))*"
    r"|danh sach(?: viec| mua sam| di cho)?|lịch(?: của (?:tôi|mình|em|anh|chị))?"
)
SOME_DAY = (
    rf"\d{{1,2}}/\d{{1,2}}|next month on the \d{{1,2}}\w\w|the \d{{1,2}}\w\w of (?:next|this) month|"
    r"(?:\w+day|today),? the \d{1,2}\w\w(?: of \w+)?|next week on \w+day|"
    rf"\w+day of next week|{DAY}|(?:next|this) (?:week|month|year|weekend)|(?:black|good) friday|"
    r"(?:christmas|valentine['’]?s|mother['’]?s|father['’]?s|new year['’]?s)(?: day| eve)?|easter"
)
_DAYS = rf"(?:,? (?:(?:for|on|of|at) )?(?:the (?:date (?:of )?)?)?(?P<day>(?:{SOME_DAY})(?:,? \d{{4}})?))"
# Endings that change nothing.
_END = (
    r"(?:,? (?:as well|too|again|now|right (?:now|away)|at the moment|currently|already|out loud|please|"
    r"yet|if i haven['’]?t(?: already)?|unless i already (?:did|have)|(?:(?:be)?cause|cuz|as|since|so) .+|"
    r"(?:if|unless) .*\b(?:on|in) (?:it|there|my (?:\w+ )?list)(?: already)?|"
    r"if (?:it|they)(?:['’]?s|['’]re| is| are)(?: not|n['’]t)(?: already)?(?: there| on there)?|"
    r"i(?:['’]m| am) .*\bout\b.*|i (?:just|ran) .+))*"
)
PUT = (
    r"(?:add|put|include|write(?: down)?|enter|place|insert|stick|throw|get|note(?: down)?|jot(?: down)?|schedule|"
    r"mark|log)"
)
TAKE = (
    r"(?:remove|take|nix|nuke|delete|drop|cross|scratch|strike|erase|eliminate|get rid of|cancel|clear|pull|kick|wipe|"
    r"omit|edit)"
)
_NEED = r"(?:i (?:need|want)|i(?:['’]d| would) like) "
_THINGS = r"(?:items?|tasks?|things|entries|entry|events?|appointments?|meetings?|reminders?)"
_ALL = (
    r"(?:everything|it all|the (?:items|tasks|things|entries)|"
    rf"(?:all(?: of)?|any|every)(?: (?:my|the|it|of it))?(?: {_THINGS})?)"
)
_EVENT = (
    r"(?:event|appointment|meeting|party|birthday|anniversary|dinner|lunch|breakfast|brunch|class|lesson|trip|game|"
    r"tournament|call|visit|plans?|date|concert|barbecue|bbq)\b"
)
# Not the thing that is listed: "get everything on my shopping list" asks somebody to buy it.
_THING = rf"(?P<what>(?!{_ALL}\b).+?)"
_PUT_VI = r"(?:thêm|ghi|cho|bỏ|đưa|them|viết)"
_FROM = r"(?:from|off|off of|out of|on|in)"
_ON = r"(?:on|onto|to|in|into)(?: to)?"
_SET = r"(?:do i have|have i(?: got)?|is there|are there|did i(?: (?:ask for|request|make|create|add|have))?)"

FORMS: dict[Op, tuple[str, ...]] = {
    "clear": (
        r"(?:clear|empty|wipe|erase|delete|remove|cancel|reset|blank|flush|clean|trash)(?: out| off)? "
        rf"{LIST}{_DAYS}?",
        rf"(?:{TAKE}|empty)(?: out| off)? {_ALL} {_FROM} {LIST}{_DAYS}?",
        rf"{TAKE}(?: out| off)? (?:all|any|every)(?: (?:of|my|the))* (?:calendar )?"
        rf"{_THINGS}{_DAYS}(?: {_FROM} {LIST})?",
        rf"make {LIST} (?:blank|empty|clear)",
        rf"(?:xóa|xoá|xoa) (?:hết|sạch|tất cả|toàn bộ)(?: (?:việc|mọi thứ))?(?: (?:trong|khỏi))? (?:{LIST_VI})",
    ),
    "has": (
        r"(?:(?:check|see|look|tell me|let me know|confirm|make sure|i need to know|i want to know)"
        r"(?: (?:on )?(?:my|the) .*?list)? ?(?:if|whether|that|to see (?:if|whether)) |is |are |will |does |"
        r"do i (?:already )?have |have i(?: got)? |did i (?:remember to |forget to )?"
        r"(?:put|add|write|have|include|jot down|list|create|mark|note|set) )"
        rf"(?:there )?(?P<what>.+?)(?: is| are| be)?(?: already)?(?: listed| included| noted)? {_ON} {LIST}{_DAYS}?"
        r"(?P<add>(?:,| and)? .*\badd\b.*)?",
        rf"(?:check|look at|look on|search) {LIST} (?:to see (?:if|whether)|and see if|and tell me if|for|if) "
        r"(?P<what>.+?)(?: (?:is|are) (?:on|in) (?:it|there))?",
        rf"(?:on|in) {LIST}{_DAYS}?,? {_SET} (?:(?:have|put|add|got|any) )*(?P<what>.+)",
        rf"(?:(?:check|see|tell me) (?:if|whether) |does |do ){LIST} (?:already )?"
        r"(?:has|have|includes?|contains?|consists? of|lists?|shows?|says?) "
        rf"(?P<what>.+?)(?: (?:noted )?(?:on|in) it)?{_DAYS}?",
        rf"{_SET} (?:set(?: up)? )?(?:an?|any|the) (?:reminder|alarm|task|item|entry)s?(?: set)?(?: {_ON} {LIST})? "
        r"(?:for|about|to|of|related to) (?P<what>.+)",
    ),
    "done": (
        rf"(?:cross|check|tick|mark) off (?P<what>.+?)(?: {_FROM} {LIST})?",
        rf"(?:check|tick) (?P<what>(?!to |if |whether |how ).+?) off(?: (?:(?:of|on|from) )?{LIST})?",
        rf"mark (?P<what>.+?) (?:as )?(?:done|complete|completed|finished)(?: {_FROM} {LIST})?",
        r"i(?:['’]ve| have)? (?:just )?(?:finished|did|done|completed) (?P<what>.+?),? (?:(?:so|and|please|you can) )*"
        rf"(?:cross|check|take|tick|mark) (?:it|that|this) off(?: (?:(?:of|from) )?{LIST})?",
    ),
    "drop": (
        r"(?:cancel|delete|remove|stop|turn off|disable|kill|end|clear|drop) (?:my |the |that )?"
        r"(?P<what>(?:[\w:]+ ){0,3}?(?:alarm|timer)|reminder (?:for|to|about|of) .+)",
        rf"{TAKE}(?: out| off)? (?P<what>.+?)(?: out| off)? {_FROM} {LIST}{_DAYS}?(?: for .+)?",
        rf"{TAKE}(?: out| off)? {_FROM} {LIST} (?P<what>.+?){_DAYS}?",
        rf"(?:(?:on|from|in) |update ){LIST}{_DAYS}?,? {TAKE}(?: off| out)? (?P<what>.+?)",
        rf"(?:get|have) (?P<what>.+?) (?:removed|deleted|taken|crossed)(?: off| out)? (?:from|off|of) {LIST}",
        rf"{TAKE}(?: out| off)? (?P<what>.+?) (?:i (?:have|had|['’]ve) )?(?:scheduled|planned|set)(?: for)?{_DAYS}",
        rf"(?:cancel|remove|delete) (?P<what>.*{_EVENT}.*?)(?: from)?{_DAYS}",
        r"(?:hủy|huỷ|xóa|xoá|tắt|bỏ) (?:cái )?(?P<what>báo thức|hẹn giờ)(?: của (?:mình|tôi|em))?(?: đi)?",
        rf"(?:xóa|xoá|xoa|bỏ|gạch) (?P<what>.+?) (?:khỏi|khoi|ra khỏi|trong) (?:{LIST_VI})",
    ),
    "add": (
        rf"{PUT}(?: down| in)? {_ON} {LIST}{_DAYS}?:? {_THING}",
        rf"(?:on|to|for|in) {LIST}{_DAYS}?,? (?:please )?{PUT} {_THING}",
        rf"{PUT}(?: down| in)? an? (?:item|entry|event) {_ON} {LIST} (?:that|for|to) (?:i (?:need|have) to )?{_THING}",
        rf"{PUT}(?: down| in)? {_THING}(?: down)? {_ON} {LIST}{_DAYS}?",
        r"(?:i|we)(?: (?:need(?: to)?(?: (?:do|get|buy))?|ran out of|(?:have|want) to(?: (?:get|buy|do))?)|"
        r" have no| do(?: not|n['’]t) have any(?: more)?|['’]d like(?: to(?: (?:get|buy|do))?)?|"
        r"['’](?:m|re) (?:all )?out of| (?:am|are) out of) "
        rf"{_THING}(?: while .+)?(?:,? (?:so|and)|[;,]) (?:(?:will|can|could) you )?(?:please )?(?:add|put) "
        rf"(?:it|that|them|those|some) {_ON} {LIST}",
        rf"{_THING}(?: (?:needs? to be|to be|should be|must be|has to be))? (?:put|added|placed|written|included) "
        rf"{_ON} {LIST}{_DAYS}?",
        rf"{_THING} (?:needs? to|should|must|has to) be {_ON} {LIST}{_DAYS}?",
        rf"make sure (?:that )?{_THING} (?:is|are) {_ON} {LIST}{_DAYS}?",
        rf"{LIST} (?:should|must|needs to) have {_THING} on it",
        rf"{_NEED}(?!to |you ){_THING} {_ON} {LIST}{_DAYS}?",
        # "Add that I will be back on Monday" is about a text.
        r"add (?!that\b|an? (?:line|sentence|paragraph|word|greeting|joke|verse)\b)"
        rf"{_THING} (?:(?:at|for) [\w:]+(?: ?[ap]m)? )?(?:for|on)(?P<whole>{_DAYS}(?: at .+)?)",
        rf"{_PUT_VI} (?P<what>.+?) (?:vào|vô|lên|vao|vo|trong) (?:{LIST_VI})(?: (?:cho |ngày )?(?P<day>{DAY}))?",
        rf"{_PUT_VI} (?:vào|vô|vao|vo) (?:{LIST_VI})\s*:? (?P<what>.+)",
    ),
}  # fmt: skip
PATTERNS = tuple((op, LatePattern(words + _END, re.S)) for op, forms in FORMS.items() for words in forms)
LISTED = any_case(LIST)
# Everything that a question for the list may have beside the list and a day.
SHOWN = any_case(
    r"(?:what|what['’]?s|whats|which|is|are|was|were|am|on|in|do|did|does|have|has|had|got|i|i['’]ve|you|me|my|of|all|"
    r"the|thee|a|an|any|anything|everything|something|things?|items?|tasks?|chores?|points?|stuff|events?|entries|each|"
    r"appointments?|meetings?|reminders?|alarms?|timers?|show|showing|list|read|tell|give|repeat|say|speak|name|recite|"
    r"iterate|describe|check|display|state|inform|hear|see|view|know|find|play|retrieve|confirm|refresh|recall|memory|mind|keep|not|forget|pull|bring|go|walk|run|look|looking|open|let|"
    r"get|through|over|up|off|out|loud|aloud|back|again|to|for|at|from|with|and|that|those|these|they|them|it|there|"
    r"currently|now|right|moment|far|so|still|left|yet|else|pending|remaining|waiting|due|planned|scheduled|going|"
    r"happening|coming|want|wanted|wants|need|needed|like|will|would|be|can|could|looks?|says?|said|included?|put|added|"
    r"add|wr[io]te|written|down|contents?|today|this|time|remind(?:ed)?|remember|later|include|contains?|consists?|kind|"
    r"products|according|some|try|trying|tried|note|overview|whole|entire|full|complete|please|about|should|must|"
    r"supposed|doing|buy|finish|done|been|much|many|long|take|i['’]d|rundown|summary|our|we|schedule|calendar|agenda|day|"
    r"how|shopping|shop|store|when|free|busy|just|dictated|exactly|listed|set|ask(?:ed)?|told|help)(?:['’]s)?"
)
ASKS = any_case(
    r"\b(?:what|what['’]?s|whats|which|show|list|read|tell|give|repeat|say|speak|recite|iterate|describe|check|play|retrieve|confirm|refresh|recall|"
    r"display|state|inform|hear|see|view|go (?:back )?(?:through|over)|walk|run|do i have|have i|is there|are there|"
    r"did i|remind|pull up|bring up|look|anything|how (?:much|long|many|is)|know|want my|is my)\b"
)
# A question for what there is to do, though it names no list.
OPEN = any_case(
    r"\bwhat(?: all| else)?(?:['’]s| is| are| am| do| did| have| was| were)?\b.*\b"
    r"(?:(?:have|need|supposed|got|left|still) to (?:do|be doing|be done)|planned|scheduled|i have going on|"
    r"to remember|due)\b|"
    r"\bwhat (?:must|should) i do\b|\bwhat .*\bremind me of\b|\bitems i want to remember\b|"
    r"\bwhat['’]?s happening on\b|\bwhat\b.*\blooks? like\b|"
    r"\b(?:what|which) (?:tasks|to-?dos|reminders) (?:do|have|am|are)\b|\bthings (?:that )?i have for\b|"
    r"\b(?:do|have) i (?:have |got )?(?:any|anything|an?)\b.*(?:appointments?|meetings?|events?|scheduled|"
    r"planned|to do)\b|"
    r"\b(?:show|read|list|tell|give|what|which|go through|hear|how (?:much|long))\b.*\b"
    r"(?:reminders|alarms|timers?)\b|\bwhat\b.*\bask(?:ed)? to be reminded\b|"
    r"\b(?:wanted|trying|tried|needed) to (?:remember|recall|keep in mind)\b|"
    r"\bthings did i not want to forget\b|\bwhat do i need to buy\b|\bwhat do i need\b.*\bshop(?:ping)?\b|"
    r"\b(?:tasks?|things) (?:that )?(?:i|we)(?: have|['’]ve)? (?:yet|left|still)\b"
)
# A whole question for a day, except for the day.
OF_A_DAY = any_case(
    r"(?:what (?:else )?(?:do (?:i|we) have|have (?:i|we) got)|"
    r"(?:(?:(?:do (?:i|we) have|have (?:i|we) got|got|is there|are there) )?(?:anything|something|any plans)|"
    r"(?:do (?:i|we) have|have (?:i|we) got) plans)(?: else)?|(?:am i|are we) (?:free|busy|doing anything)|"
    r"what (?:am i|are we) (?:doing|up to)|"
    r"what(?:['’]?s| is| are)(?: on| up| left| still open| happening| going on| (?:my|our|the) plans?))"
    r"(?: planned| scheduled| going on| happening| to do| on| for| of| at)*|"
    rf"(?:{SUBJECT_VI} )?(?:có )?(?:rảnh|bận) (?:không|ko)|"
    rf"(?:{SUBJECT_VI} )?(?:(?:còn|có|phải|cần|làm|bận) )+(?:những )?(?:(?:việc|lịch|hẹn|kế hoạch) )*(?:gì|nào)"
    r"(?: (?:phải|cần) làm)?(?: (?:không|ko|vậy|thế|nhỉ))*"
)
SHOWN_VI = any_case(
    rf"(?:(?:cho (?:tôi|mình|em) )?(?:xem|đọc|coi|liệt kê|nhắc lại)(?: (?:giúp|cho) (?:tôi|mình|em))? )?"
    rf"(?:{LIST_VI}|việc của {SUBJECT_VI}|việc hôm nay)"
    r"(?: (?:có|còn|gồm|hôm nay|những|gì|việc|của|mình|tôi|anh|chị|em))*|"
    # "Có việc gì không?" asks whether something is the matter.
    rf"(?=.*\b(?:còn|phải|cần)\b)(?:{SUBJECT_VI} )?(?:(?:còn|có|phải|cần|làm|những) )*việc (?:gì|nào)"
    r"(?: (?:nữa|phải|cần|làm|chưa|xong|không|ko|hả|vậy|thế|nhỉ))*|"
    r"(?:những )?việc (?:cần|phải) làm(?: (?:của (?:tôi|mình|em)|hôm nay))?"
    r"(?: (?:còn|là|có|những|gì|nào|nữa|không|ko|vậy|thế|nhỉ))+"
)
