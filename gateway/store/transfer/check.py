"""Check imported rows against the invariants of the log and its summaries, and take secrets out of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.base.redact import redact_value, without_secrets
from gateway.store.memory.assistants import Assistant
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import Fact
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary
from gateway.store.memory.tasks import TASK_ID, Task
from gateway.store.transfer.rows import (
    LATEST,
    UNCOUNTED,
    Archive,
    AssistantRow,
    FactRow,
    TaskRow,
)

Row = TypeVar("Row", Conversation, Assistant, StoredMessage, Fact, Task)
Content = Archive | AssistantRow | FactRow | TaskRow

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_DAY = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")
_TASK = re.compile(rf"{TASK_ID}(\.c[0-9]{{1,3}})?")
_MOST = 2**53  # what JSON numbers hold exactly
# Fields with text of people or the model.
_TEXTS = {
    "title", "name", "biography", "participants", "instructions", "speaker", "key", "text", "quote",
    "reason", "tool", "question",
}  # fmt: skip
_TIMES = ("created_at", "updated_at", "archived_at", "valid_from", "ended_at")


def check(line: Content) -> None:
    """Raises InvalidRequestError that names the invalid field."""
    if isinstance(line, Archive):
        for message in line.messages:
            _row("messages", message)
        _row("conversation", line.conversation)
        _messages(line.messages)
        _summaries(line.messages, line.summaries)
    elif isinstance(line, AssistantRow):
        _assistant(line)
    elif isinstance(line, FactRow):
        _row("fact", line.fact)
    else:
        _task(line.task)


def clean(line: Content) -> Content:
    """The line with its secrets redacted, and counted in its rows. Most of an import's time passes here."""
    if isinstance(line, Archive):
        return msgspec.structs.replace(
            line,
            conversation=_clean_row(line.conversation),
            messages=[_clean_row(message) for message in line.messages],
            summaries=[without_secrets(summary)[0] for summary in line.summaries],
        )
    if isinstance(line, AssistantRow):
        (biographies, reflections), _ = redact_value([line.biographies, line.reflections])
        return AssistantRow(
            assistant=_clean_row(line.assistant), biographies=biographies, reflections=reflections
        )
    return FactRow(_clean_row(line.fact)) if isinstance(line, FactRow) else TaskRow(_clean_row(line.task))


def _task(task: Task) -> None:
    if not _TASK.fullmatch(task.id):
        raise _wrong("task.id", "has the form T-20261120-03 or T-20261120-03.c2")
    if not _DAY.fullmatch(task.day):
        raise _wrong("task.day", "is a date such as 2026-11-20, a month or a year")
    item = task.level == "checklist"
    if item != (".c" in task.id) or (item and task.parent is None):
        raise _wrong("task.parent", "names the task of a checklist's item")
    _row("task", task)


def _assistant(row: AssistantRow) -> None:
    for field, versions in (("biographies", row.biographies), ("reflections", row.reflections)):
        _rising(f"{field}.version", [each.version for each in versions])
        _times(field, [each.created_at for each in versions])
    if not row.biographies or row.biographies[-1].version != row.assistant.version:
        raise _wrong("assistant.version", "is that of the last of its biographies")
    if [each.version for each in row.reflections] != list(range(1, len(row.reflections) + 1)):
        raise _wrong("reflections.version", "counts from 1")
    _row("assistant", row.assistant)


def _row(what: str, row: Row) -> None:
    """Check the fields that all rows have."""
    if not _NAME.fullmatch(row.id):
        raise _wrong(f"{what}.id", "has 1 to 128 letters, digits, `.`, `_`, `:` and `-`")
    if not 0 <= row.redactions <= _MOST:
        raise _wrong(f"{what}.redactions", "counts from 0")
    _times(what, [value for name in _TIMES if (value := getattr(row, name, None)) is not None])


def _clean_row(row: Row) -> Row:
    """The row with its texts redacted. Names and ids stay, because other rows refer to them."""
    texts = {name: getattr(row, name) for name in row.__struct_fields__ if name in _TEXTS}
    redacted, count = redact_value(texts)
    return msgspec.structs.replace(row, **redacted, redactions=row.redactions + count)


def _messages(messages: Sequence[StoredMessage]) -> None:
    _rising("messages.seq", [message.seq for message in messages])
    rounds = [message.round for message in messages]
    if any(number < 1 or number > _MOST for number in rounds) or rounds != sorted(rounds):
        raise _wrong("messages.round", "counts from 1 and never goes back")
    if len({message.id for message in messages}) < len(messages):
        raise _wrong("messages.id", "is another one for each message")
    if not all(UNCOUNTED <= message.tokens <= _MOST for message in messages):
        raise _wrong("messages.tokens", "is a number of tokens")
    known = {message.seq for message in messages}
    if any(
        message.answers is not None and not (message.seq > message.answers in known) for message in messages
    ):
        raise _wrong("messages.answers", "is an earlier message")


def _summaries(messages: Sequence[StoredMessage], summaries: Sequence[Summary]) -> None:
    """Live summaries cover the log from the first message on, without overlap, and mark the messages that they cover.

    Spans may begin, and end, in the conversation that this one continues: before its first message.
    """
    _rising("summaries.seq", [summary.seq for summary in summaries])
    seqs = {message.seq for message in messages}
    begin = min(seqs, default=_MOST)
    known = {summary.seq for summary in summaries}
    for summary in summaries:
        begins = summary.first in seqs or 0 <= summary.first < begin
        ends = summary.last in seqs or 0 <= summary.last < begin
        if summary.first > summary.last or not (begins and ends):
            raise _wrong("summaries.first, .last", "are the first and the last message of a span")
        if summary.superseded_by is not None and not (summary.seq < summary.superseded_by in known):
            raise _wrong("summaries.superseded_by", "is a later summary")
        if not UNCOUNTED <= summary.tokens <= _MOST or not 0 <= summary.prompt_version <= _MOST:
            raise _wrong("summaries.tokens, .prompt_version", "are numbers")
        _times("summaries", [summary.from_time, summary.to_time, summary.created_at])
    live = [each for each in summaries if each.superseded_by is None and each.level != "message"]
    spans = sorted((each.first, each.last) for each in live)
    if any(before[1] >= after[0] for before, after in pairwise(spans)):
        raise _wrong("summaries.first, .last", "do not overlap while they count")
    covered = [seq for seq in sorted(seqs) if any(first <= seq <= last for first, last in spans)]
    marked = [message.seq for message in messages if message.summarized_by is not None]
    if covered != marked or covered != sorted(seqs)[: len(covered)]:
        raise _wrong(
            "messages.summarized_by", "is set for the messages that summaries cover, from the first on"
        )
    if any(message.summarized_by not in known | {None} for message in messages):
        raise _wrong("messages.summarized_by", "is one of the summaries")


def _rising(field: str, numbers: Sequence[int]) -> None:
    if any(not 0 <= number <= _MOST for number in numbers) or any(a >= b for a, b in pairwise(numbers)):
        raise _wrong(field, "rises from one to the next")


def _times(what: str, times: Iterable[float]) -> None:
    if not all(0 <= time <= LATEST for time in times):
        raise _wrong(f"{what}: a time", "is in seconds since 1970, before the year 9999")


def _wrong(field: str, rule: str) -> InvalidRequestError:
    return InvalidRequestError(f"{field} {rule}", param=field)
