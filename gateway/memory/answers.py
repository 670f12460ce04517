"""Questions of users about themselves that need no model: what they have said is quoted, their tasks are listed. Pure.

Small models seldom use a fact of their prompt, and the built-in one never does. English and Vietnamese.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.base.stems import stem
from gateway.memory.learning.entailment import content
from gateway.memory.learning.wordings import SUBJECT_VI
from gateway.store.memory.facts import Fact

_LONGEST = 120  # characters of a question: a longer one says more than that
_MOST = 3  # facts that one question means; of more, it means none in particular
_LEAD = (
    r"\W*(?:(?:hi|hey|hello|so|and|ok|okay|well|now|please|btw|also|à|ừ|ê|này|thế|vậy)\W+)*"
    r"(?:(?:do|can|could) (?:you|u) (?:still )?(?:remember|recall|know|tell me|remind me)(?: of)?|tell me|remind me|"
    r"(?:bạn )?(?:còn )?(?:có )?(?:nhớ|biết))?\W*"
)
_ABOUT_ME = re.compile(
    _LEAD + r"(?:(?:what|which things|anything|everything)?(?: else)? ?(?:do|did|have|can)? ?(?:you|u)? ?"
    r"(?:know|remember|learn(?:ed|t)?|noted|stored) (?:so far )?about me|"
    r"(?:what|everything)(?: (?:have|did))? i(?:['’]ve)? (?:told|tell) you(?: so far)?(?: about (?:me|myself))?|"
    rf"bạn (?:đã |đang )?(?:biết|nhớ)(?: được)?(?: những)? ?gì về {SUBJECT_VI}|"
    rf"{SUBJECT_VI} (?:đã )?(?:nói|kể)(?: với| cho)?(?: bạn)?(?: những)? gì)(?: so far| yet| now|rồi)?\W*",
    re.I,
)
_OWN = re.compile(
    _LEAD + r"(?:(?:who|what|when|where|which|how (?:old|many|much|long|tall))\b(?=.*\b(?:i|my|me|our|we)\b)|"
    rf"(?=.*(?<!\w){SUBJECT_VI}(?!\w)).*(?<!\w)(?:gì|đâu|ai|nào|mấy|bao nhiêu|bao giờ)(?!\w))",
    re.I,
)
_REMEMBERED = re.compile(
    r"\W*(?:(?:do|can) (?:you|u) (?:still )?|(?:you|u) )?(?:remember|know|recall) (?:my|our)\b", re.I
)
# Advice, plans and knowledge of the world.
_OTHERWISE = re.compile(
    r"\b(?:should|shall|could|can|would|will|might|may|must|if|because|recommend|suggest|think|mean|tomorrow|"
    r"doing|going|happen\w*|wrong|you|your|nên|"
    r"nếu|bạn|khi)\b",
    re.I,
)
_ASKED = re.compile(
    r"['’]s\b|\b(?:who|what|when|where|which|how|again|exactly|called|name|names|remember|recall|know|tell|remind|still|gì|đâu|"
    r"ai|nào|mấy|bao|nhiêu|giờ|nhớ|biết|còn|bạn|thế|vậy)\b",
    re.I,
)
_NAME = re.compile(r"\b(?:name|tên|who am i|tôi là ai|mình là ai)\b", re.I)
# What a question of a place or a time asks for is a fact that has one.
_KINDS = (
    (
        re.compile(r"\bwhere\b|(?<!\w)đâu(?!\w)", re.I),
        re.compile(r"\b(?:in|at|near|from|to|on|ở|tại|từ)\b", re.I),
    ),
    (
        re.compile(r"\bwhen\b|(?<!\w)(?:khi nào|bao giờ|ngày nào|mấy giờ)(?!\w)", re.I),
        re.compile(
            r"[0-9]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:thứ|chủ nhật|morning|evening)\b",
            re.I,
        ),
    ),
)
_TASKS = re.compile(
    _LEAD
    + r"(?:(?:what|which)(?:['’]?s| is| are| do| have)? (?:(?:left |still |open )*(?:on|in) )?(?:(?:my|our) |i have )"
    r"(?:open |next |other )?(?:(?:to-?dos?|tasks?|reminders?)(?: list)?|list)|"
    r"(?:what|which) (?:tasks|to-?dos|reminders) (?:do i have|are (?:there|open|left))|"
    r"what (?:do|did) i (?:still )?(?:have|need) to do|what(?:['’]?s| is) (?:on|left|open|planned)(?: for)? today|"
    r"(?:show|list|give|read)(?: me)? (?:all )?(?:my|the) (?:open )?(?:to-?do list|to-?dos?|tasks?|list|reminders)|"
    rf"(?:hôm nay )?{SUBJECT_VI} (?:còn )?(?:phải|cần) làm (?:những )?(?:việc )?gì|"
    rf"(?:những )?(?:việc|danh sách việc)(?: hôm nay)? của {SUBJECT_VI}(?: (?:là|có|gồm)(?: những)? gì)?|"
    rf"{SUBJECT_VI} (?:có|còn)(?: những)? việc gì)(?: (?:today|now|please|left|hôm nay|vậy|thế|nữa))*\W*",
    re.I,
)
_JOINED = re.compile(r"^(?:and|but|so|because|và|nhưng|vì)\s+", re.I)
_VIETNAMESE = re.compile("[ăâđêôơưạ-ỹ]", re.I)


def recalled_answer(asked: str, facts: Sequence[Fact]) -> str:
    """What a question about oneself is answered with: the user's words that say it; "" if no fact surely does."""
    said = asked.strip()
    if len(said) > _LONGEST or "\n" in said or not facts:
        return ""
    if _ABOUT_ME.fullmatch(said):
        return _quoted(said, facts)
    if not _OWN.match(said) and not _REMEMBERED.match(said):
        return ""
    rest = re.sub(_LEAD, "", said, count=1, flags=re.I)
    if _OTHERWISE.search(rest):
        return ""
    words = content(_ASKED.sub(" ", rest))
    if _NAME.search(said) and not words - {"tên"}:
        return _quoted(said, [fact for fact in facts if fact.key == "name"])
    found = [fact for fact in facts if words and words <= content(fact.text) | _key_words(fact.key)]
    for asks, says in _KINDS:
        if asks.search(said):
            found = [fact for fact in found if says.search(fact.text)]
    by_key = [fact for fact in found if _key_words(fact.key) <= words]
    found = by_key or found
    return _quoted(said, found) if len(found) <= _MOST else ""


def asks_for_tasks(asked: str) -> bool:
    """Whether a message asks for the list of tasks, and for nothing else."""
    return len(asked) <= _LONGEST and bool(_TASKS.fullmatch(asked.strip()))


def task_answer(asked: str, lines: Sequence[str]) -> str:
    """The list of today's tasks, or that there are none, in the language of the question."""
    vietnamese = bool(_VIETNAMESE.search(asked))
    if not lines:
        return "Hôm nay không có việc nào." if vietnamese else "There are no tasks for today."
    return "\n".join(["Việc hôm nay:" if vietnamese else "Tasks of today:", *lines])


def _key_words(key: str) -> frozenset[str]:
    return frozenset(map(stem, key.split("_")))


def _quoted(asked: str, facts: Sequence[Fact]) -> str:
    """The facts in the user's own words, or as they were entered."""
    told = "Bạn đã nói:" if _VIETNAMESE.search(asked) else "You told me:"
    texts = [f"“{_JOINED.sub('', fact.quote)}”" if fact.quote else fact.text for fact in facts]
    if len(texts) < 2:
        return f"{told} {texts[0]}" if texts else ""
    return "\n".join([told, *(f"- {text}" for text in texts)])
