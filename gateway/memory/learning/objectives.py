"""Objectives and the tasks that a text lists for them. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.memory.learning.entailment import words_follow
from gateway.memory.learning.statements import quoted_statement, statement
from gateway.store.memory.messages import StoredMessage

MAX_TASKS = 20
_MAX_TITLE = 300
# "- pack", "2. pack", "b) pack"; and "1. pack 2. call" within a line.
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)]|[a-z]\))[ \t]+(?=\S)", re.M)
_INLINE = re.compile(r"(?:^|(?<=\s))\(?\d{1,2}[.)]\s+(?=\S)")
_SEPARATOR = any_case(r"\s*[;,]\s*(?:(?:and|then|và|rồi)\s+)*|\s+(?:and|then|và|rồi|sau đó)\s+(?:then\s+)?")
# No task of its own: "find out who made Befunge and save it".
_OF_THE_ONE_BEFORE = any_case(
    r"(?:[\w'’]+\s+){1,3}(?:it|this|that|them|nó)(?:\s+down)?|(?:tell|notify) me|let me know|(?:ghi|lưu) lại"
)
# A longer part is prose with commas, not a list of tasks.
_MOST_WORDS = 8
_STATED = any_case(
    r"(?:\b(?:my|our|tôi|mình)\b[^\n.!?:]{0,30}?|^\W*(?:new\s+|next\s+)?)"
    r"\b(?:objective|goal|mục tiêu)\b"
    r"(?:[^\n.!?:]{0,40}?\b(?:is(?: to)?|are|là)\b\s*:?|[^\n.!?:]{0,40}:)\s*(?P<what>.+)",
    re.S | re.M,
)
# "Move house. Tasks: …": no part of the title.
_LABEL = any_case(r"(?<=\S)[\s.,;–-]+(?:(?:my|the|các) )?(?:tasks?|steps?|plan|việc|bước)\s*:?\s*$")
_PERIODS = (
    (any_case(r"\b(?:this|the) year\b|\bnăm nay\b"), 4),
    (any_case(r"\b(?:this|the) month\b|\btháng này\b"), 7),
)


class Objective(Struct, frozen=True):
    """``period`` is the length of a date's part: 4 for a year, 7 for a month, 10 for a day."""

    title: str
    tasks: list[str]
    period: int = 10


def split_listed(text: str) -> Objective:
    """The title and the listed tasks: lines with bullets, numbers in a line, or short parts behind a colon."""
    for mark in (_BULLET, _INLINE):
        head, *items = mark.split(text)
        if len(items) > 1 and head.strip():
            # The last item ends with its line.
            return _objective(head, [item.strip().split("\n")[0] for item in items])
    head, colon, rest = text.partition(":")
    parts = [part for part in _SEPARATOR.split(rest.strip().split("\n")[0].rstrip(".!")) if part.strip()]
    if colon and len(parts) > 1 and all(len(part.split()) <= _MOST_WORDS for part in parts):
        return _objective(head, _joined(parts))
    return Objective(_clean(text), [])


def _joined(parts: list[str]) -> list[str]:
    """The parts, those that only say what is to be done with the one before behind it."""
    items: list[str] = []
    for part in parts:
        if items and _OF_THE_ONE_BEFORE.fullmatch(part.strip()):
            items[-1] += f", and {part.strip()}"
        else:
            items.append(part)
    return items


def stated_objective(text: str) -> Objective | None:
    """The objective that a user's message states, such as "My goal this year is to learn Japanese: 1. …"."""
    found = _STATED.search(text)
    if found is None or statement(text, text[found.start() : found.start("what")]) is None:
        return None
    split = split_listed(found["what"])
    title = split.title if split.tasks else _clean(re.split(r"[.!?\n]", found["what"], maxsplit=1)[0])
    if not title:
        return None
    period = next((length for named, length in _PERIODS if named.search(text)), 10)
    return Objective(title, split.tasks, period)


class NamedTask(Struct, frozen=True):
    """A proposal of the model; ``prompts/objective.md`` constrains it to this shape."""

    title: str
    quote: str


def named_tasks(proposed: Sequence[NamedTask], message: StoredMessage) -> list[str]:
    """The titles of proposed tasks that the message names in these words."""
    titles = []
    for each in proposed:
        found = quoted_statement(each.quote, [message], users_only=True, requests=True)
        if found is not None and each.title.strip() and words_follow(each.title, found[1]):
            titles.append(_clean(each.title))
    return list(dict.fromkeys(titles))[:MAX_TASKS]


def _objective(head: str, items: list[str]) -> Objective:
    cleaned = list(dict.fromkeys(filter(None, map(_clean, items))))
    return Objective(_clean(_LABEL.sub("", head)), cleaned[:MAX_TASKS])


def _clean(text: str) -> str:
    title = " ".join(text.split()).strip(" \t:;,.-–")
    return (title[:1].upper() + title[1:])[:_MAX_TITLE]
