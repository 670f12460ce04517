"""Clauses in which a message states something plainly. Pure, for English and Vietnamese.

Code takes facts and tasks from them without a model, so they are judged more strictly than a model's quotes: text that
somebody works on, role play, verse and whatever follows a colon state nothing. When in doubt, there is no clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.memory.learning import statements
from gateway.memory.learning.wordings import SUBJECT_VI

# Openings of any message.
FILLERS = (
    r"hi|hey|hello|ok|okay|so|well|and|also|oh|btw|now|great|cool|thanks|please|pls|plz|actually|"
    r"à|ừ|dạ|vâng|ê|này|thế|vậy"
)
_EDGES = " ,;:–—.!?…"
# A longer message was pasted, and is about something else.
_MOST_CHARACTERS = 4_000
# Longer clauses and sentences state nothing plainly.
_MOST_CLAUSE = 240
_MOST_CLAUSES = 30
# Text that somebody works on or plays with. A letter may be a task, but facts in it are not the writer's.
_OTHERS_TEXT = any_case(
    r"\b(?:translat(?:e|ed|es|ing|ions?)|proofread\w*|rephrase|paraphrase|rewrite|role-?play\w*|pretend\w*|imagine|"
    r"suppose|act as|let['’]?s (?:say|play|pretend)|just kidding|jk|"
    r"(?:correct|fix|check|edit) (?:my|this|the|these) (?:grammar|spelling|sentences?|text|english|email)|"
    r"dịch|viết lại|sửa (?:câu|lỗi chính tả)|đóng vai|tưởng tượng|giả sử|giả vờ|đùa)\b|"
    rf"\byou(?:['’]re| are| play) (?:an? |the )?(?-i:[{statements.UPPER}])|"
    r"(?<![\w*])\*(?!\*)[^*\n]+\s[^*\n]+\*(?![\w*])"
)
_FICTION = any_case(
    r"\b(?:grammar|lyrics|songs?|poem|verse|chorus|character|story|novel|letter|essay|"
    r"dialogue|monologue|scene|scenario|persona|fictional|avatar|example|e\.g|"
    r"bài hát|lời bài|câu chuyện|truyện|ví dụ|đoạn văn|bài văn)\b"
)
# "My name is Otto. Write a poem": a new text is asked for behind what the writer says.
_NEW_WORK = any_case(
    r"(?<=[.!?;,…\n])\s*(?:(?:and|so|now|then|please|pls|can you|could you|would you|hãy|giờ)\s+)*"
    r"(?:write|compose|draft|create|make|tell|give|sing|viết|sáng tác|kể|làm)\b"
    r"(?: (?:me|us|cho \w+|giúp \w+))? (?:an?|some|another|one|\d+|một|bài|câu)\b.*",
    re.S,
)
# Tasks name several things, and stand behind a colon.
_TASK_CUT = any_case(
    r"[;–—]\s|,\s(?!(?:[\w-]+ ){0,2}[\w-]+(?:,| and\b| và\b))|\s(?:but|while|because|so|nhưng|vì|nên)\s|"
    r"\s(?:and|và)\s(?=(?:i|we|my|then|mình|tôi|\w+ed|sent|paid|bought|made)\b)"
)
_QUOTED = re.compile(r"(?<!\w)['‘](?=\S)[^\n]*?\s[^\n]*?(?<=\S)['’](?!\w)")
_OPENING = any_case(r"^(\W*(?:hi|hello|hey|hallo|xin chào|chào)(?: \w+)?)\s*[.!]+\s+")
_TITLE = any_case(r"\b(add|put) ['‘\"“]([^'’\"”\n]+)['’\"”]")
# "Which one" begins the question behind a statement.
_ASKS = any_case(
    r"^\W*(?:(?:so|and|but|then|vậy|thì)\s+)*(?:what|which|who|whose|where|when|why|how|can|could|do|does|did|is|are|"
    r"should|would|will|any|có|nên|làm sao|tại sao|sao|bạn|gợi ý|nấu|ăn)\b"
)
# A question without its mark, but not "did the dishes".
_ASKS_UNMARKED = any_case(
    r"\W*(?:(?:so|and|but|ok|hey|um+|hm+)\W+)*(?:(?:how|why|who|what|where|when|which)(?:['’]?s)? "
    r"(?:do|does|did|is|are|can|should|would|will|come)\b|"
    r"(?:do|does|did|can|could|should) (?:i|we|he|she|they|it)\b|(?:does|can|could|should) (?:my|the)\b)"
)
_ASKS_ANYWHERE = any_case(
    r"\b(?:gì|nào|sao|mấy(?! (?:năm|tháng|tuần|ngày|hôm) (?:nay|rồi|trước|liền))|bao nhiêu|bao giờ|"
    r"(?:ở|đi) đâu|là ai|nhỉ|hả|hở|"
    r"(?:phải|đúng) (?:không|ko|hông))\b|\s(?:à|không|ko|hông|right|no)\W*$"
)
REQUESTS = any_case(r"^\W*(?:(?:hi|hey|hello|ok|so|and|also)\W+)*(?:can|could|would|will) (?:you|u)\b")
_JOKE = any_case(r"^\W*(?:(?:sure|yes|yeah)\W+)?(?:(?:ha){2,}\w*|lo+l|lmao|rofl|hehe|hihi)\b")
# "Oh I like loud" answers what was said before, which is not in the clause.
_REACTION = any_case(
    rf"^\W*(?:o+h*|a+h+|wow|aw+|ồ|ôi|à|ơ)[,! ]+(?:(?:i|we)(?: do| really)? (?:like|love|enjoy|hate)|"
    rf"{SUBJECT_VI}(?: rất)? (?:thích|yêu|mê|ghét))\b"
)
# Reports of others' words: "My therapist is Dr. Lund and she said …".
_REPORTS_NEXT = any_case(
    r"\s(?:and|but) (?:he|she|they|(?:my|our|the) \w+) (?:(?:just|also|always|never|still) )?"
    r"(?:said|says|told|tells|asked|asks|wrote|writes|thinks?|thought|believes?)\b(?!.*\b(?:so|it|that|this)\W*$)"
)
# Verbs of the writer's own acts, in contrast to reports of words.
_OWN_MESSAGE = any_case(
    r"(?:(?:^|(?<=[,;.!] )|(?<=\band ))\W*(?:ok(?:ay)? )?(?:i|we)(?:['’]?ve| have)? |^\W*)(?:just |already |finally )?"
    r"(?:wrote|written|texted|emailed|posted)"
    rf"(?: (?:it|them|him|her|(?:(?:dr|mrs?|ms)\.? )?(?-i:[{statements.UPPER}])\w+|"
    r"(?:the|my|an?) (?:\w+ ){0,2}(?:letter|e-?mail|message|note|report|post|essay|review|card|application|speech)))?"
    r"(?=[,.!]|$| (?:about|last|this|yesterday|today|already)\b| to\b(?! \w+ (?:that|he|she|they|i)\b))"
)
_INTRODUCING = any_case(
    r"^\W*(?:(?:hi|ok|so|well|sorry)\W+)*(?:fyi|ps|note|typo|correction|update|info|"
    r"intro|context|btw|for context|quick intro|(?:before|when) you \w+(?: \w+){0,4})\W*$"
)


class PlainClause(Struct, frozen=True):
    """``polite`` is set in a request that is put as a question; ``follows`` when it goes on with its sentence."""

    text: str
    polite: bool
    follows: bool


def plain_clauses(text: str, *, tasks: bool = False) -> Iterator[PlainClause]:
    """The clauses of a user's message that state something, with ``tasks`` those that may ask for it, in order."""
    if len(text) > _MOST_CHARACTERS or _OTHERS_TEXT.search(text):
        return
    if not tasks and _FICTION.search(text):
        text = _NEW_WORK.sub("", text, count=1)
        if _FICTION.search(text):
            return
    text = _TITLE.sub(r"\1 \2", text) if tasks else text
    shown = _QUOTED.sub(" … ", statements.PASSAGE.sub(" … ", statements.CODE.sub("\n", text)))
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    if len(lines) > 2 and all(len(line) < 70 and line[-1] not in ".!?;" for line in lines):  # verse
        return
    for found in statements.SENTENCE.findall(_OPENING.sub(r"\1, ", shown)):
        sentence = " ".join(found.split())
        if not sentence:
            continue
        yield from _clauses(sentence, _TASK_CUT if tasks else statements.CLAUSE)
        if sentence.endswith(":") and not _introduces(sentence):
            return


def is_plain(clause: str, text: str) -> bool:
    """Whether a clause of the text is among its plain ones."""
    wanted = clause.strip(_EDGES)
    return any(wanted in each.text or each.text in wanted for each in plain_clauses(text))


def _clauses(sentence: str, cut: re.Pattern[str]) -> Iterator[PlainClause]:
    asks = sentence.rstrip("\"'”)").endswith("?") or bool(_ASKS_UNMARKED.match(sentence))
    polite = bool(REQUESTS.search(sentence))
    cuts = [0, *(match.start() for match in cut.finditer(sentence)), len(sentence)]
    clauses = [sentence[begin:end] for begin, end in pairwise(cuts)]
    if asks and not polite:
        first = next((at for at, clause in enumerate(clauses) if at and _ASKS.search(clause)), 0)
        clauses = clauses[:first]
    if cut is statements.CLAUSE:
        clauses = clauses[
            : next((at for at, clause in enumerate(clauses) if _REPORTS_NEXT.match(clause)), None)
        ]
    judged = _OWN_MESSAGE.sub(" … ", "".join(clauses)) if cut is _TASK_CUT else "".join(clauses)
    if len(clauses) > _MOST_CLAUSES or statements.REPORTED.search(judged):
        return
    for at, clause in enumerate(clauses):
        before = "".join(clauses[:at])
        judged = REQUESTS.sub(" ", clause) if polite else clause
        introduced = clause.lstrip().startswith(":") and not _introduces(before)
        if statements.HYPOTHETICAL.search(judged) or introduced or _JOKE.search(clause):
            return
        said = clause.strip(_EDGES)
        if 0 < len(said) <= _MOST_CLAUSE and not (_ASKS_ANYWHERE.search(clause) or _REACTION.search(clause)):
            yield PlainClause(said, polite, at > 0)


def _introduces(head: str) -> bool:
    """Whether what follows the colon behind ``head`` is the writer's own."""
    own = statements.WRITER.search(head) and not statements.REPORTED.search(head)
    return bool(own or _INTRODUCING.search(head))
