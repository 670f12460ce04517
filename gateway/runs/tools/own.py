"""Tools on the owner's own facts, tasks and time."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Annotated, Any

import apsw
from msgspec import Meta, Struct

from gateway.base.errors import InvalidRequestError
from gateway.base.patterns import any_case
from gateway.base.redact import redact
from gateway.memory.planning.budget import time_zone
from gateway.memory.worker import JobPostponedError
from gateway.runs.planning.when import day_meant, moment
from gateway.runs.tool import Calling, Risk, RunTool, ToolOutput
from gateway.store.db import Database
from gateway.store.memory.facts import NewFact, put_fact
from gateway.store.memory.notices import add_notice
from gateway.store.memory.tasks import NewTask, Task, open_tasks_besides, tasks_of_day
from gateway.store.memory.tasks import add_task as store_task
from gateway.store.stop_words import plain

Said = Annotated[str, Meta(min_length=1, max_length=1000)]
# A run looks at the clock again after this long, in case the clock is set.
_LONGEST_WAIT = 600.0
_OF_KEY = any_case(r"(?:my |the |our )*(?P<what>.+?)\s+(?:is|are|was|were|=|là)\b.*|(?P<words>.+)", re.S)
_QUESTION = any_case(r"(?:who|whom|whose|what|when|where|which|why|how|ai|gì)\b")
# Words before "is" that name nothing: facts about different things would have one key.
_NAMES_NOTHING = any_case(r"(?:it|this|that|there|here|he|she|they|we|you|i|today|nó|đây|đó|hôm nay)")
_NOTHING_LISTED = "Nothing is on the list."
_EFFECT: frozenset[Risk] = frozenset({"effect"})


class RememberArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """``key`` "" is made from the text."""

    text: Said
    key: Annotated[str, Meta(pattern=r"^([a-z][a-z0-9_]{1,40})?$")] = ""


class AddTaskArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """``day`` is YYYY-MM-DD; "" is today."""

    title: Annotated[str, Meta(min_length=1, max_length=300)]
    day: Annotated[str, Meta(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")] = ""


class ListTasksArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """``day`` is YYYY-MM-DD; "" is today and everything unfinished."""

    day: Annotated[str, Meta(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")] = ""


class NotifyArgs(Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1)]  # as long as a result


class ReminderArgs(Struct, frozen=True, forbid_unknown_fields=True):
    time: Annotated[str, Meta(max_length=40)]
    text: Said


class WaitArgs(Struct, frozen=True, forbid_unknown_fields=True):
    time: Annotated[str, Meta(max_length=40)]


def own_tools(database: Database, zone: str) -> list[RunTool]:
    def now() -> datetime:
        return datetime.now(time_zone(zone)).astimezone(time_zone(zone))

    def dated(given: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the moment in place of a time of day, the date in place of a day of the week.

        Raises InvalidRequestError.
        """
        found = dict(given)
        if isinstance(time_of_day := given.get("time"), str):
            found["time"] = moment(time_of_day, now()).isoformat(timespec="seconds")
        if isinstance(written := given.get("day"), str) and written:
            day = day_meant(written, now())
            if day is None:
                raise InvalidRequestError(
                    f"`day` is {written!r}; write a date such as 2026-11-20", param="day"
                )
            found["day"] = day.isoformat()
        return found

    def wait(until: str) -> None:
        left = datetime.fromisoformat(until).timestamp() - time.time()
        if left > 0:
            raise JobPostponedError(min(left, _LONGEST_WAIT))

    async def tell(calling: Calling, text: str) -> None:
        clean, _ = redact(text)
        await database.write(
            lambda c: add_notice(c, calling.owner, calling.task, clean, calling.source, time.time())
        )

    async def remember(calling: Calling, fact: RememberArgs) -> ToolOutput:
        """Keep a fact about the user."""
        text, redactions = redact(fact.text.strip())
        key = fact.key or _key(text)
        new = NewFact(
            owner=calling.owner,
            key=key,
            text=text,
            reason=f"remembered by the task {calling.task}",
            valid_from=time.time(),
            redactions=redactions,
        )
        kept = await database.write(lambda c: put_fact(c, new))
        return ToolOutput(f"remembered as {key}: {text}" if kept else f"{key} has this text already")

    async def add_task(calling: Calling, wanted: AddTaskArgs) -> ToolOutput:
        """Add a task to the user's list of today, or of a day."""
        title, redactions = redact(wanted.title.strip())

        def store(connection: apsw.Connection) -> str:
            new = NewTask(
                owner=calling.owner,
                level="task",
                title=title,
                day=wanted.day or now().date().isoformat(),
                created_at=time.time(),
                redactions=redactions,
            )
            return store_task(connection, new).id

        return ToolOutput(f"added {await database.write(store)}: {title}")

    async def list_tasks(calling: Calling, wanted: ListTasksArgs) -> ToolOutput:
        """Show the user's unfinished tasks, or those of a day."""
        today = now().date().isoformat()

        def read(connection: apsw.Connection) -> list[Task]:
            found = tasks_of_day(connection, calling.owner, wanted.day or today)
            return found if wanted.day else found + open_tasks_besides(connection, calling.owner, today)

        tasks = [
            task
            for task in await database.read(read)
            if task.level == "task" and task.state not in ("done", "cancelled") and task.id != calling.task
        ]
        lines = [f"{task.title} ({task.day})" if task.day != today else task.title for task in tasks]
        return ToolOutput("\n".join(lines) or _NOTHING_LISTED)

    async def remind_at(calling: Calling, reminder: ReminderArgs) -> ToolOutput:
        """Wait until a time, then remind the user of something."""
        wait(reminder.time)
        await tell(calling, f"Reminder: {reminder.text}")
        return ToolOutput(f"reminded: {reminder.text}")

    async def wait_until(calling: Calling, until: WaitArgs) -> ToolOutput:
        """Wait until a time before the next step."""
        wait(until.time)
        return ToolOutput(f"it is {until.time}")

    async def notify(calling: Calling, message: NotifyArgs) -> ToolOutput:
        """Tell the user something at once."""
        await tell(calling, message.text)
        return ToolOutput(f"told: {message.text}")

    return [
        RunTool(RememberArgs, remember, _EFFECT),
        RunTool(AddTaskArgs, add_task, _EFFECT, repeatable=False, prepared=dated),
        RunTool(ListTasksArgs, list_tasks, frozenset({"private"}), prepared=dated, nothing=_NOTHING_LISTED),
        RunTool(ReminderArgs, remind_at, prepared=dated),
        RunTool(WaitArgs, wait_until, prepared=dated),
        RunTool(NotifyArgs, notify),
    ]


def _key(text: str) -> str:
    """A key of a fact's first words: "my home city is Turku" has home_city, a question all that it asks."""
    match = _OF_KEY.fullmatch(text.strip())
    what, most = (match["what"] or match["words"] if match else text), 4
    if _QUESTION.match(text) or _NAMES_NOTHING.fullmatch(what):
        what, most = text.partition(": ")[0], 12
    words = re.findall(r"[a-z0-9]+", plain(what))[:most]
    key = "_".join(words)[:40].lstrip("0123456789_").rstrip("_")
    return key if len(key) > 1 else "note"
