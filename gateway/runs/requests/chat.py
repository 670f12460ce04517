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
from gateway.base.redact import redact
from gateway.config.settings import TaskSettings
from gateway.memory.answers.questions import in_vietnamese
from gateway.memory.learning.entailment import content
from gateway.memory.planning.budget import time_zone
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.lists import ListRequest, things_in
from gateway.runs.planning.reminders import Reminder
from gateway.runs.planning.requested import named, titles_of
from gateway.runs.planning.when import day_meant, moment
from gateway.runs.requests.told import Question, Said, asked, at_moment, is_told, joined, of_day, said
from gateway.runs.requests.understood import Understood, lacks_of_list, lacks_of_reminder, understood
from gateway.runs.starting import start_run
from gateway.runs.tool import Toolbox
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage, page_of_messages
from gateway.store.memory.runs import end_runs, items_of
from gateway.store.memory.tasks import (
    NewTask,
    Task,
    add_task,
    open_tasks_besides,
    save_task,
    tasks_of_day,
    tasks_of_message,
)

# Messages that are looked at for what the last one completes.
_RECENT = 8
_MOST_SHOWN = 30
_ENDED = ("done", "cancelled")
_SOON = timedelta(seconds=2)


class _Given(Struct, frozen=True, kw_only=True):
    """A message with what it asks for."""

    owner: str
    conversation: str
    message: StoredMessage
    asked_by: int  # the message (``seq``) that it completes, or 0
    found: Understood
    now: datetime
    vietnamese: bool

    @property
    def today(self) -> date:
        return self.now.date()


class ChatRequests:
    """Requests that a message as a whole is."""

    def __init__(
        self, database: Database, limits: TaskSettings, tools: Toolbox, zone: str, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._limits = limits
        self._tools = tools
        self._zone = zone
        self.wake = wake

    def reads(self, text: str) -> bool:
        """Whether a message asks for something of the kind, whatever was said before."""
        return understood([text], datetime.now(time_zone(self._zone))) is not None

    def told(self, reply: str) -> bool:
        """Whether a reply is like those to such messages."""
        return is_told(reply)

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str] | None:
        """Do what a user's message asks for; the ids of changed tasks, or None if it asks for nothing of the kind."""
        given = self._given(connection, conversation, message)
        if given is None:
            return None
        for request in given.found.lists:
            if not lacks_of_list(request, given.now):
                _change_list(connection, given, request)
        for reminder in given.found.reminders:
            if not given.found.repeats:
                self._remind(connection, given, reminder)
        return [task.id for task in tasks_of_message(connection, given.owner, message.seq)]

    async def answer(self, conversation: Conversation, asked: str) -> str:
        """What was done for the last message, or what it lacks; "" if it asks for nothing of the kind."""

        def read(connection: apsw.Connection) -> str:
            last = next(iter(page_of_messages(connection, conversation.id, limit=1)), None)
            if last is None or last.role != "user" or last.text != asked:
                return ""
            given = self._given(connection, conversation, last)
            if given is None:
                return ""
            told = [_told_of_list(connection, given, each) for each in given.found.lists]
            told += [_told_of_reminder(connection, given, each) for each in given.found.reminders]
            return "\n".join(told)

        return await self._database.read(read)

    def _given(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> _Given | None:
        before = page_of_messages(connection, conversation.id, limit=_RECENT, before=message.seq)
        spoken = [
            each
            for each in before
            if each.role == "user" and not each.failed and each.speaker == message.speaker
        ]
        zone = time_zone(conversation.time_zone or self._zone)
        now = datetime.fromtimestamp(message.created_at, zone)
        found = understood([*(each.text for each in spoken), message.text], now)
        if found is None:
            return None
        return _Given(
            owner=conversation.owner,
            conversation=conversation.id,
            message=message,
            asked_by=spoken[found.completes].seq if found.completes >= 0 else 0,
            found=found,
            now=now,
            vietnamese=in_vietnamese(message.text),
        )

    def _remind(self, connection: apsw.Connection, given: _Given, reminder: Reminder) -> None:
        """Set a reminder that lacks nothing; one that lacks its time is put on the list until then."""
        lacks = lacks_of_reminder(reminder, given.now)
        text = named(reminder)
        title = _title(text)
        listed = [
            task
            for task in (tasks_of_message(connection, given.owner, given.asked_by) if given.asked_by else [])
            if task.level == "task" and task.state not in _ENDED and content(task.title) == content(title)
        ]
        if lacks:
            day = day_meant(reminder.time, given.now) if lacks == "clock" else None
            if reminder.kind == "reminder" and reminder.text and not listed:
                _add(connection, given, title, day or given.today)
            return
        # What is due at once would be past by the time that its run checks it.
        at = max(moment(reminder.time, given.now), datetime.now(given.now.tzinfo) + _SOON)
        task = listed[0] if listed else _new(connection, given, title, at.date(), archetype="model")
        if task is None:
            return
        moved = {"day": at.date().isoformat(), "message": given.message.seq, "updated_at": time.time()}
        save_task(connection, msgspec.structs.replace(task, **moved))
        plain = text.replace("{{", "{ {")  # not the result of a step
        line = msgspec.json.encode({"time": at.isoformat(timespec="seconds"), "text": plain}).decode()
        start_run(
            connection,
            self._limits,
            self._tools,
            lambda _: NamedThings(),
            task.id,
            given.owner,
            [f"remind_at: {line}"],
            "model",
        )


def _title(text: str) -> str:
    clean, _ = redact(text.strip())
    return (clean[:1].upper() + clean[1:])[:300]


def _new(connection: apsw.Connection, given: _Given, title: str, day: date, **fields: Any) -> Task | None:
    """A new task; None if the day is full."""
    new = NewTask(
        owner=given.owner,
        level="task",
        parent=None,
        **{"archetype": "user"} | fields,
        title=title,
        day=day.isoformat(),
        created_at=time.time(),
        conversation=given.conversation,
        message=given.message.seq,
    )
    with contextlib.suppress(InvalidRequestError):
        return add_task(connection, new)
    return None


def _add(connection: apsw.Connection, given: _Given, title: str, day: date) -> None:
    """Put a task on a day's list, unless an unfinished one of the same words is there."""
    there = tasks_of_day(connection, given.owner, day.isoformat())
    if not any(_is_same(task, title) for task in there):
        _new(connection, given, title, day)


def _is_same(task: Task, title: str) -> bool:
    unfinished = task.level == "task" and task.state not in _ENDED
    return unfinished and (content(task.title) or task.title) == (content(title) or title)


def _change_list(connection: apsw.Connection, given: _Given, request: ListRequest) -> None:
    match request.op:
        case "add":
            for title in _titles(request):
                _add(connection, given, title, _day(given, request))
        case "has" if request.adds and not _matching(_open(connection, given, request), request.what):
            _add(connection, given, _title(request.what), _day(given, request))
        case "clear":
            for task in _open(connection, given, request, of_day=True):
                _end(connection, given, task, "cancelled")
        case "drop" | "done":
            for thing in things_in(request.what, short=True):
                matching = _matching(_open(connection, given, request), thing)
                if len(matching) == 1:
                    _end(connection, given, matching[0], "done" if request.op == "done" else "cancelled")


def _end(connection: apsw.Connection, given: _Given, task: Task, state: str) -> None:
    end_runs(connection, task.id, given.owner, time.time())
    changes: dict[str, Any] = {"state": state, "message": given.message.seq, "updated_at": time.time()}
    save_task(connection, msgspec.structs.replace(task, **changes))


def _titles(request: ListRequest) -> list[str]:
    return [_title(thing) for thing in titles_of(request)]


def _day(given: _Given, request: ListRequest) -> date:
    return (day_meant(request.day, given.now) if request.day else None) or given.today


def _open(
    connection: apsw.Connection, given: _Given, request: ListRequest, *, of_day: bool = False
) -> list[Task]:
    """The unfinished tasks that a request is about: those of its day, or else all, or today's (``of_day``)."""
    day = _day(given, request).isoformat()
    tasks = tasks_of_day(connection, given.owner, day)
    if not request.day and not of_day:
        tasks += open_tasks_besides(connection, given.owner, day)
    return [task for task in tasks if task.level == "task" and task.state not in _ENDED]


def _matching(tasks: Sequence[Task], what: str) -> list[Task]:
    """The tasks that words name: those with the most of them; several if they have as many."""
    words = content(what)
    shares = []
    for task in tasks:
        own = content(task.title)
        both = len(own & words)
        if both and (both == len(words) or both == len(own) or 2 * both > max(len(own), len(words))):
            shares.append((2 * both / (len(own) + len(words)), task))
    best = max((share for share, _ in shares), default=0.0)
    return [task for share, task in shares if share == best]


def _reminder_time(connection: apsw.Connection, task: Task, zone: Any) -> datetime | None:
    """When the user is reminded of a task, if that is still to come."""
    for item in items_of(connection, task.id, task.owner):
        if item.tool and item.tool["name"] == "remind_at" and item.state not in _ENDED:
            return datetime.fromisoformat(item.tool["arguments"]["time"]).astimezone(zone)
    return None


def _told_of_list(connection: apsw.Connection, given: _Given, request: ListRequest) -> str:
    vietnamese, seq = given.vietnamese, given.message.seq
    lacks = lacks_of_list(request, given.now)
    if lacks == "day":
        return asked("day", vietnamese=vietnamese, when=request.day)
    if lacks:
        return asked("add" if request.op == "add" else "drop", vietnamese=vietnamese)
    day = of_day(_day(given, request).isoformat(), given.today, vietnamese=vietnamese)

    def tell(what: Said, titles: Sequence[str] = ()) -> str:
        return said(what, vietnamese=vietnamese, day=day, what=joined(titles))

    match request.op:
        case "add":
            there = tasks_of_day(connection, given.owner, _day(given, request).isoformat())
            kept = [
                (title, next((t for t in there if _is_same(t, title)), None)) for title in _titles(request)
            ]
            new = [title for title, task in kept if task is not None and task.message == seq]
            old = [title for title, task in kept if task is not None and task.message != seq]
            lost = [title for title, task in kept if task is None]
            told = [(new, "on_list"), (old, "on_list_already"), (lost, "not_put")]
            return "\n".join(tell(what, titles) for titles, what in told if titles)  # type: ignore[arg-type]
        case "has":
            matching = _matching(_open(connection, given, request), request.what)
            if request.adds and any(task.message == seq for task in matching):
                return tell("on_list", [task.title for task in matching])
            if not matching:
                return tell("not_on_list", [request.what])
            return tell("is_there", [_shown(connection, given, task) for task in matching])
        case "show":
            return _shown_list(connection, given, request, day)
    ended = [task for task in tasks_of_message(connection, given.owner, seq) if task.level == "task"]
    if request.op == "clear":
        return tell("off_list", [task.title for task in ended]) if ended else tell("nothing_there")
    told_parts = []
    for thing in things_in(request.what, short=True):
        if mine := _matching(ended, thing):
            told_parts.append(tell("done" if request.op == "done" else "off_list", [t.title for t in mine]))
        elif several := _matching(_open(connection, given, request), thing):
            told_parts.append(tell("several", [task.title for task in several]))
        else:
            told_parts.append(tell("not_on_list", [thing]))
    return "\n".join(told_parts)


def _shown(connection: apsw.Connection, given: _Given, task: Task, *, dated: bool = True) -> str:
    """A task with the time of its reminder, or else (``dated``) its day, unless that is today."""
    at = _reminder_time(connection, task, given.now.tzinfo)
    if at is not None:
        return f"{task.title} ({at_moment(at, given.now, vietnamese=given.vietnamese)})"
    is_day = len(task.day) == len("2026-11-20") and given.today.isoformat() not in task.days
    when = of_day(task.day, given.today, vietnamese=given.vietnamese).strip() if dated and is_day else ""
    return f"{task.title} ({when.partition(' ')[2]})" if when else task.title


def _shown_list(connection: apsw.Connection, given: _Given, request: ListRequest, day: str) -> str:
    tasks = _open(connection, given, request)
    vietnamese = given.vietnamese
    if request.reminders:
        timed = [task for task in tasks if _reminder_time(connection, task, given.now.tzinfo) is not None]
        tasks = timed or tasks
    if not tasks:
        return said("nothing_there", vietnamese=vietnamese, day=day)
    lines = [f"- {_shown(connection, given, task, dated=not day)}" for task in tasks[:_MOST_SHOWN]]
    return "\n".join([said("list", vietnamese=vietnamese, day=day), *lines])


def _told_of_reminder(connection: apsw.Connection, given: _Given, reminder: Reminder) -> str:
    vietnamese, now = given.vietnamese, given.now
    if given.found.repeats:
        return said("once", vietnamese=vietnamese)
    lacks = lacks_of_reminder(reminder, now)
    if not lacks:
        when = at_moment(moment(reminder.time, now), now, vietnamese=vietnamese)
        return said(reminder.kind, vietnamese=vietnamese, when=when, what=reminder.text)
    if lacks == "text":
        with contextlib.suppress(InvalidRequestError):
            at = at_moment(moment(reminder.time, now), now, vietnamese=vietnamese) if reminder.time else ""
            return asked("text", vietnamese=vietnamese, when=f" {at}" if at else ", and when")
        return asked("text", vietnamese=vietnamese, when=f" {reminder.time}")
    of_kind: Question = "time" if reminder.kind == "reminder" else reminder.kind
    question = asked(of_kind if lacks == "time" else lacks, vietnamese=vietnamese, when=reminder.time)
    if not reminder.text:
        return question
    listed = next((t for t in tasks_of_message(connection, given.owner, given.message.seq)), None)
    title = _title(reminder.text)
    if listed is None:
        return question
    day = of_day(listed.day, given.today, vietnamese=vietnamese)
    return f"{said('on_list', vietnamese=vietnamese, day=day, what=title)}. {question}"
