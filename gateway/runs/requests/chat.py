"""Do what a chat's message asks of the list and of reminders, and tell what was done.

The answer is read from what is stored, so that it is the same after a crash between a message and its reply.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.memory.answers.questions import in_vietnamese
from gateway.memory.answers.requests import Requests
from gateway.memory.learning.plain import plain_clauses
from gateway.memory.planning.budget import time_zone
from gateway.runs.planning.lists import ListRequest, things_in
from gateway.runs.planning.reminders import Reminder
from gateway.runs.planning.when import day_meant, moment
from gateway.runs.requests.listed import (
    ENDED,
    has_reminder,
    is_of,
    is_same,
    reminder_time,
    tasks_meant,
    title_of,
    withdraw_reminder,
)
from gateway.runs.requests.told import Language, Question, Said, is_told
from gateway.runs.requests.understood import (
    DAY_WITHIN,
    ParsedRequest,
    following,
    lacks_of_list,
    lacks_of_reminder,
    reminder_within,
    shows,
    understood,
)
from gateway.runs.starting import Starter
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage, page_of_messages
from gateway.store.memory.runs import end_runs
from gateway.store.memory.tasks import (
    NewTask,
    Task,
    add_task,
    open_tasks_besides,
    save_task,
    tasks_of_day,
    tasks_of_message,
)

_RECENT = 8  # messages that are looked at for what the last one completes
_MOST_SHOWN = 30
_SOON = timedelta(seconds=2)
_NOTED: dict[str, Said] = {
    "open": "on_list",
    "doing": "doing",
    "waiting": "waiting",
    "done": "done",
    "cancelled": "off_list",
}


class ChatRequests(Requests):
    """Requests of the list and for reminders."""

    def __init__(self, database: Database, starter: Starter, zone: str, wake: Callable[[], None]) -> None:
        self._database = database
        self._starter = starter
        self._zone = zone
        self._wake = wake

    def reads(self, text: str) -> bool:
        return understood([text], datetime.now(time_zone(self._zone))) is not None

    def told(self, reply: str) -> bool:
        return is_told(reply)

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str] | None:
        given = self._given(connection, conversation, message)
        if given is None:
            return None
        for request in given.found.lists:
            if not lacks_of_list(request, given.now):
                given.change_list(request)
        for reminder in given.found.reminders:
            if not given.found.repeats:
                given.remind(reminder, self._starter)
        return [task.id for task in given.changed(message.seq)]

    def note_within(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str]:
        given = self._given_within(connection, conversation, message)
        if given is None:
            return []
        given.remind(given.found.reminders[0], self._starter)
        return [task.id for task in given.changed(message.seq)]

    async def answer(self, conversation: Conversation, asked: str, *, noted: bool) -> tuple[str, bool]:
        def read(connection: apsw.Connection) -> tuple[str, bool]:
            last = next(iter(page_of_messages(connection, conversation.id, limit=1)), None)
            if last is None or (last.role, last.text) != ("user", asked):
                return "", False
            if conversation.kind == "channel":
                found = understood([asked], self._now(conversation, last))
                language = Language(in_vietnamese(asked))
                return language.said("not_here") if found is not None and found.reminders else "", False
            given = self._given(connection, conversation, last)
            if given is None:
                given = self._given_within(connection, conversation, last)
                if given is not None:
                    return given.told_of_reminder(given.found.reminders[0]), True
                return _noted(connection, conversation, last) if noted else ("", False)
            told = [given.told_of_list(each) for each in given.found.lists]
            told += [given.told_of_reminder(each) for each in given.found.reminders]
            return "\n".join(dict.fromkeys(told)), False

        return await self._database.read(read)

    def wake(self) -> None:
        self._wake()

    def _given(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> _Given | None:
        before = page_of_messages(connection, conversation.id, limit=_RECENT, before=message.seq)
        spoken = [e for e in before if e.role == "user" and not e.failed and e.speaker == message.speaker]
        now = self._now(conversation, message)
        found = understood([*(each.text for each in spoken), message.text], now)
        if found is None and spoken:
            # What was only shown in between changed nothing.
            said = [each for each in spoken if not shows(each.text)] or spoken
            seqs = (said[-1].seq, message.seq)  # its own, once it has changed them
            tasks = [task for seq in seqs for task in tasks_of_message(connection, conversation.owner, seq)]
            found = following(message.text, [task.title for task in tasks if task.level == "task"])
        if found is None:
            return None
        asked_by = spoken[found.completes].seq if found.completes >= 0 else 0
        language = Language(in_vietnamese(message.text))
        return _Given(connection, conversation, message, asked_by, found, now, language)

    def _given_within(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> _Given | None:
        now = self._now(conversation, message)
        reminder = reminder_within(message.text, now)
        if reminder is None:
            return None
        found, language = ParsedRequest(reminders=[reminder]), Language(reminder.vietnamese)
        return _Given(connection, conversation, message, message.seq, found, now, language)

    def _now(self, conversation: Conversation, message: StoredMessage) -> datetime:
        zone = time_zone(conversation.time_zone or self._zone)
        return datetime.fromtimestamp(message.created_at, zone)


class _Given(Struct, frozen=True):
    """A message with what it asks for, in one transaction."""

    connection: apsw.Connection
    conversation: Conversation
    message: StoredMessage
    asked_by: int  # the message (``seq``) that it completes, or 0
    found: ParsedRequest
    now: datetime
    language: Language

    @property
    def owner(self) -> str:
        return self.conversation.owner

    @property
    def today(self) -> date:
        return self.now.date()

    def changed(self, message: int) -> list[Task]:
        """The tasks whose last change the message (``seq``) made."""
        return tasks_of_message(self.connection, self.owner, message)

    def change_list(self, request: ListRequest) -> None:
        match request.op:
            case "add":
                for title in _titles(request):
                    self._add(title, self._day(request))
            case "has" if request.adds and not tasks_meant(self._open(request), request.what):
                self._add(title_of(request.what), self._day(request))
            case "clear":
                for task in self._open(request, of_day=True):
                    self._end(task, "cancelled")
            case "drop" | "done":
                for thing in things_in(request.what, short=True):
                    matching = tasks_meant(self._open(request), thing)
                    if len(matching) == 1:
                        self._end(matching[0], "done" if request.op == "done" else "cancelled")

    def remind(self, reminder: Reminder, starter: Starter) -> None:
        """Set a reminder that lacks nothing; one that lacks its time is put on the list until then."""
        lacks = lacks_of_reminder(reminder, self.now)
        title = title_of(reminder.says)
        asked = self.changed(self.asked_by) if self.asked_by else []
        listed = [task for task in asked if is_of(task, title) or has_reminder(self.connection, task)]
        if lacks:
            day = day_meant(reminder.time, self.now) if lacks == "clock" else None
            if reminder.kind == "reminder" and reminder.text and not listed:
                self._add(title, day or self.today)
            return
        # A time due at once would be past when its run checks it.
        at = max(moment(reminder.time, self.now), datetime.now(self.now.tzinfo) + _SOON)
        task = listed[0] if listed else self._new(title, at.date(), archetype="model")
        if task is None:
            return
        if listed:
            withdraw_reminder(self.connection, task)
        new_day = at.date().isoformat()
        moved = {"title": title, "day": new_day, "message": self.message.seq, "updated_at": time.time()}
        save_task(self.connection, msgspec.structs.replace(task, **moved))
        plain = reminder.says.replace("{{", "{ {")  # not the result of a step
        line = msgspec.json.encode({"time": at.isoformat(timespec="seconds"), "text": plain}).decode()
        starter.start(self.connection, task.id, self.owner, [f"remind_at: {line}"], "model")

    def told_of_list(self, request: ListRequest) -> str:
        seq = self.message.seq
        lacks = lacks_of_list(request, self.now)
        if lacks == "day":
            return self.language.asked("day", when=request.day)
        if lacks:
            return self.language.asked("add" if request.op == "add" else "drop")
        day = self.language.of_day(self._day(request).isoformat(), self.today)

        def tell(what: Said, titles: Sequence[str] = ()) -> str:
            return self.language.said(what, day=day, what="; ".join(titles))

        match request.op:
            case "add":
                there = tasks_of_day(self.connection, self.owner, self._day(request).isoformat())
                kept = [
                    (title, next((t for t in there if is_same(t, title)), None)) for title in _titles(request)
                ]
                new = [title for title, task in kept if task is not None and task.message == seq]
                old = [title for title, task in kept if task is not None and task.message != seq]
                lost = [title for title, task in kept if task is None]
                told = [(new, "on_list"), (old, "on_list_already"), (lost, "not_put")]
                return "\n".join(tell(what, titles) for titles, what in told if titles)  # type: ignore[arg-type]
            case "has":
                matching = tasks_meant(self._open(request), request.what)
                if request.adds and any(task.message == seq for task in matching):
                    return tell("on_list", [task.title for task in matching])
                if not matching:
                    return tell("not_on_list", [request.what])
                return tell("is_there", [self._shown(task) for task in matching])
            case "show":
                return self._shown_list(request, day)
        ended = [task for task in self.changed(seq) if task.level == "task"]
        if request.op == "clear":
            return tell("off_list", [task.title for task in ended]) if ended else tell("nothing_there")
        told_parts = []
        for thing in things_in(request.what, short=True):
            if mine := tasks_meant(ended, thing):
                told_parts.append(
                    tell("done" if request.op == "done" else "off_list", [t.title for t in mine])
                )
            elif several := tasks_meant(self._open(request), thing):
                told_parts.append(tell("several", [task.title for task in several]))
            else:
                told_parts.append(tell("not_on_list", [thing]))
        return "\n".join(told_parts)

    def told_of_reminder(self, reminder: Reminder) -> str:
        now, language = self.now, self.language
        if self.found.repeats:
            return language.said("once")
        lacks = lacks_of_reminder(reminder, now)
        if not lacks:
            when = language.at_moment(moment(reminder.time, now), now)
            return language.said(reminder.kind, when=when, what=reminder.text)
        if lacks == "text":
            with contextlib.suppress(InvalidRequestError):
                at = language.at_moment(moment(reminder.time, now), now) if reminder.time else ""
                return language.asked("text", when=f" {at}" if at else ", and when")
            return language.asked("text", when=f" {reminder.time}")
        of_kind: Question = "time" if reminder.kind == "reminder" else reminder.kind
        question = language.asked(of_kind if lacks == "time" else lacks, when=reminder.time)
        if not reminder.text:
            return question
        listed = next(iter(self.changed(self.message.seq)), None)
        if listed is None:
            return question
        day = language.of_day(listed.day, self.today)
        return f"{language.said('on_list', day=day, what=title_of(reminder.text))}. {question}"

    def _shown_list(self, request: ListRequest, day: str) -> str:
        tasks = self._open(request)
        if request.reminders:
            timed = [
                task for task in tasks if reminder_time(self.connection, task, self.now.tzinfo) is not None
            ]
            tasks = timed or tasks
        if not tasks:
            return self.language.said("nothing_there", day=day) if request.named else ""
        lines = [f"- {self._shown(task, dated=not day)}" for task in tasks[:_MOST_SHOWN]]
        return "\n".join([self.language.said("list", day=day), *lines])

    def _shown(self, task: Task, *, dated: bool = True) -> str:
        """A task with the time of its reminder, or else (``dated``) its day, unless that is today."""
        at = reminder_time(self.connection, task, self.now.tzinfo)
        if at is not None:
            return f"{task.title} ({self.language.at_moment(at, self.now)})"
        is_day = len(task.day) == len("2026-11-20") and self.today.isoformat() not in task.days
        when = self.language.of_day(task.day, self.today).strip() if dated and is_day else ""
        return f"{task.title} ({when.partition(' ')[2]})" if when else task.title

    def _new(self, title: str, day: date, **fields: Any) -> Task | None:
        """A new task; None if the day is full."""
        new = NewTask(
            owner=self.owner,
            level="task",
            title=title,
            day=day.isoformat(),
            created_at=time.time(),
            conversation=self.conversation.id,
            message=self.message.seq,
            **fields,
        )
        with contextlib.suppress(InvalidRequestError):
            return add_task(self.connection, new)
        return None

    def _add(self, title: str, day: date) -> None:
        """Put a task on a day's list, unless an unfinished one of the same words is there."""
        there = tasks_of_day(self.connection, self.owner, day.isoformat())
        if not any(is_same(task, title) for task in there):
            self._new(title, day)

    def _end(self, task: Task, state: str) -> None:
        end_runs(self.connection, task.id, self.owner, time.time())
        changes: dict[str, Any] = {"state": state, "message": self.message.seq, "updated_at": time.time()}
        save_task(self.connection, msgspec.structs.replace(task, **changes))

    def _day(self, request: ListRequest) -> date:
        return (day_meant(request.day, self.now) if request.day else None) or self.today

    def _day_in(self, task: Task) -> str:
        """The day that a task's title names, as YYYY-MM-DD, or ""."""
        written = DAY_WITHIN.search(task.title)
        then = datetime.fromtimestamp(task.created_at, self.now.tzinfo)
        meant = day_meant(written[0], then) if written else None
        return meant.isoformat() if meant else ""

    def _open(self, request: ListRequest, *, of_day: bool = False) -> list[Task]:
        """The unfinished tasks that a request is about: those of its day, or else all, or today's (``of_day``)."""
        day = self._day(request).isoformat()
        tasks = tasks_of_day(self.connection, self.owner, day)
        if not request.day and not of_day:
            tasks += open_tasks_besides(self.connection, self.owner, day)
        elif request.op == "show":  # "I need to call the dentist tomorrow" was put on the list of its own day
            others = open_tasks_besides(self.connection, self.owner, day)
            tasks += [task for task in others if self._day_in(task) == day]
        return [task for task in tasks if task.level == "task" and task.state not in ENDED]


def _noted(
    connection: apsw.Connection, conversation: Conversation, message: StoredMessage
) -> tuple[str, bool]:
    """What a message, no request, has changed on the list."""
    changed = tasks_of_message(connection, conversation.owner, message.seq)
    titles = {
        state: [task.title for task in changed if task.state == state and task.level != "checklist"]
        for state in _NOTED
    }
    language = Language(in_vietnamese(message.text))
    told = [language.said(_NOTED[state], what="; ".join(each)) for state, each in titles.items() if each]
    clauses = len(list(plain_clauses(message.text, tasks=True)))
    return "\n".join(told), clauses > sum(map(len, titles.values()))


def _titles(request: ListRequest) -> list[str]:
    return [title_of(thing) for thing in request.titles]
