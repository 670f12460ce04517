"""Notices in place of what a small model would invent. Pure, for English and Vietnamese.

Small models were trained on one language and answer in another with syllables that mean nothing. What code reads in
Vietnamese (facts, tasks, reminders, questions about what was said) it answers before. They do not know what this
program does either, and take the place of a secret for whatever comes to mind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gateway.base.patterns import any_case
from gateway.base.redact import MARK
from gateway.memory.answers.questions import OPENINGS, in_vietnamese
from gateway.memory.learning.plain import FILLERS, plain_clauses
from gateway.memory.learning.statements import UPPER
from gateway.memory.learning.values import NO_NAME
from gateway.memory.learning.wordings import SUBJECT_VI
from gateway.store.stop_words import speaks

UNSPOKEN = (
    "Mô hình nhỏ này chỉ trò chuyện được bằng tiếng Anh. Bằng tiếng Việt tôi vẫn ghi nhớ điều bạn kể, nhắc việc và tìm "
    "trong wiki. `hearth pull gemma-4-e2b` lấy một mô hình nói tiếng Việt."
)
UNTRANSLATED = (
    "I speak English alone and do not translate. `hearth pull qwen2.5-coder-1.5b` gets a model that does."
)
SECRETS_UNSTORED = (
    "Passwords and other secrets are not stored.",
    "Mật khẩu và các bí mật khác không được lưu.",
)
NO_NEWS = "I have no news: I see what you tell me, the wiki and your projects, and not the internet."
NAMELESS = "I have no name: I am the language model of this server."
_ASKS_NAME = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*(?:(?:what(?:['’]?s| is)|(?:do|can) (?:you|u) (?:have|tell me)) (?:your|ur|a) name|"
    r"(?:and )?how (?:do|should|can|may) i call you|what (?:are you|should i|can i|do i|may i) call(?:ed)?(?: you)?)"
    r"(?: please| again| by the way| btw)*\W*"
)
_ASKS_TO_CALL = any_case(
    rf"\W*(?:(?:{FILLERS}|(?:can|could|would|will) (?:you|u)|you can|just|from now on)\W+)*call me "
    rf"(?P<name>(?-i:[{UPPER}])[\w'’-]*)(?: instead| from now on| then| please)*\W*"
)
_ASKS_NEWS = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*(?:(?:what(?:['’]?s| is| are) |any |give me |tell me |show me )+"
    r"(?:(?:the|latest|today['’]?s|new|in) )*(?:news|headlines)|what(?:['’]?s| is) (?:happening|going on) in the world)"
    r"(?: (?:today|now|right now|this (?:morning|week)|please|like|about|in the world))*\W*"
)
ABILITIES = (
    "I remember what you tell me and find it again when you ask, set reminders, keep your list of tasks, and answer "
    "questions about the wiki and your projects on this machine. For the rest I am a small model: I chat, and I am "
    "often wrong."
)
_ASKS_ABILITIES = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*(?:what (?:(?:all|else) )?(?:can|do) (?:you|u)(?: (?:actually|really|even))? "
    r"(?:do|help(?: me)?(?: with)?|offer)|what are (?:you|your) (?:for|good (?:at|for)|able to do|capable of|abilities|"
    r"skills|features)|how (?:can|do) (?:you|u) help(?: me)?|what (?:things )?(?:are you|you are|you['’]re) able to do|"
    r"(?:do|can|will) (?:you|u) (?:actually |really )?(?:remember|keep) (?:things|stuff|"
    r"what i (?:say|tell you|told you)|our chats?|anything)|do (?:you|u) have (?:an? )?memory)"
    r"(?: for me| here| exactly| anyway)?\W*"
)
KEPT = (
    "What I have learned stays until you delete it: `hearth facts` shows it, and `hearth facts forget` deletes it.",
    "Điều tôi đã ghi nhớ còn đó cho đến khi bạn xóa: `hearth facts` cho xem, `hearth facts forget` xóa.",
)
# "Forget it" means "never mind".
_ASKS_TO_FORGET = any_case(
    rf"\W*(?:(?:{FILLERS}|(?:can|could|would|will) (?:you|u)|i want you to)\W+)*(?:forget|delete|erase|unlearn) "
    r"(?:that|this|everything|all(?: of)?(?: that| this)?|what (?:i|we)(?:['’]ve)?|"
    r"(?:all )?my (?:data|facts|messages?)|(?:about )?me)"
    r"(?: (?:(?:i|we)(?:['’]ve)?|just|have|said|told you|you know|know|wrote|about (?:me|that)|again|now|please))*"
    r"\W*|"
    rf"\W*(?:(?:bạn )?(?:hãy |có thể |làm ơn )?)(?:quên|xóa|xoá)(?: hết)? (?:điều|những gì|cái) "
    rf"(?:đó|{SUBJECT_VI} (?:đã |vừa )?(?:nói|kể))(?: đi| nhé)?\W*"
)
_LONGEST_QUOTE = 400  # characters
_ASKS_LAST = any_case(
    rf"\W*(?:(?:{FILLERS}|hm+)\W+)*(?:what (?:did|have) i (?:just|last) "
    r"(?P<what>sa(?:y|id)|ask(?:ed)?|wr[io]te|tell|told)|"
    r"(?:what|which)(?:['’]?s| is| was) my (?:last|previous) (?P<kind>question|message))"
    r"(?: you| to you)?(?: again)?\W*|"
    rf"\W*{SUBJECT_VI} (?:vừa|mới) (?P<vi>nói|hỏi|viết)(?: cái)? gì\W*"
)
_LANGUAGE = (
    r"(?:arabic|bengali|bulgarian|cantonese|catalan|chinese|croatian|czech|danish|dutch|english|finnish|french|german|"
    r"greek|hebrew|hindi|hungarian|icelandic|indonesian|irish|italian|japanese|korean|latin|malay|mandarin|norwegian|"
    r"persian|polish|portuguese|romanian|russian|serbian|slovak|spanish|swahili|swedish|tagalog|tamil|thai|turkish|"
    r"ukrainian|urdu|vietnamese|welsh)"
)
_TRANSLATES = any_case(
    rf"\W*(?:(?:{FILLERS}|(?:can|could|would) you)\W+)*(?:translate\b.*\b(?:in)?to {_LANGUAGE}\b.*|"
    rf"how (?:do|would|can|to|is|are) .*\bin {_LANGUAGE}|what(?:['’]?s| is| are| does) .*\bin {_LANGUAGE}|"
    rf"(?:say|write|reply|answer|speak|talk) .*\bin {_LANGUAGE}|(?:do you )?speak {_LANGUAGE})"
    r"(?: (?:please|now|too|again|instead|from now on))*\W*",
    re.S,
)
_ANOTHER = any_case(
    rf"\W*(?:(?:{FILLERS}|or|what about|how about)\W+)*(?:(?:in|into|to) )?{_LANGUAGE}(?: (?:please|too|then))*\W*"
)


def abilities(asked: str) -> str:
    """The answer to the question of what one can do here, for a name, or for the news; "" for another message."""
    if _ASKS_NAME.fullmatch(asked):
        return NAMELESS
    if _ASKS_NEWS.fullmatch(asked):
        return NO_NEWS
    return ABILITIES if _ASKS_ABILITIES.fullmatch(asked) else ""


def called(asked: str) -> str:
    """Agree to a name that a message asks to be called; "" for another message."""
    name = _ASKS_TO_CALL.fullmatch(asked)
    return f"All right, {name['name']}." if name and not NO_NAME.search(name["name"]) else ""


def forgetting(asked: str) -> str:
    """The sentence that facts stay until they are deleted, if a message asks to forget; "" for another message."""
    return KEPT[in_vietnamese(asked)] if _ASKS_TO_FORGET.fullmatch(asked) else ""


def just_said(asked: str, before: Sequence[str]) -> str:
    """Quote the last of a user's messages ``before`` this one, or their last question, if it asks for that; else ""."""
    found = _ASKS_LAST.fullmatch(asked)
    if found is None:
        return ""
    asks = (found["what"] or found["kind"] or found["vi"]).casefold() in ("question", "ask", "asked", "hỏi")
    said = next((each for each in reversed(before) if each and ("?" in each or not asks)), "")
    return f"{OPENINGS[in_vietnamese(asked)]}: “{said}”" if 0 < len(said) <= _LONGEST_QUOTE else ""


def unstored(asked: str) -> tuple[str, bool]:
    """The sentence that a secret of the message is not stored, "" without one; True: the message says more."""
    if MARK not in asked:
        return "", False
    return SECRETS_UNSTORED[in_vietnamese(asked)], len(list(plain_clauses(asked))) > 1 or "?" in asked


def unspoken(languages: Collection[str], text: str) -> str:
    """The sentence that a Vietnamese ``text`` is in no language of the model; "" for any other text or model."""
    return "" if speaks(languages, text) else UNSPOKEN


def untranslated(languages: Collection[str], asked: str, before: Sequence[str]) -> str:
    """The sentence that a model of few ``languages`` does not translate; "" if a message does not ask for it.

    "And into German?" does, right after one of the user's messages ``before`` it that did.
    """
    asks = False
    for said in (*before, asked):
        asks = bool(_TRANSLATES.fullmatch(said) or (asks and _ANOTHER.fullmatch(said)))
    return UNTRANSLATED if languages and asks else ""
