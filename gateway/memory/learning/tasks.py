"""Tasks in conversations: today's list is in every prompt, changes are read after each exchange."""

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw
import msgspec
import structlog

from gateway.base.errors import InvalidRequestError
from gateway.base.patterns import any_case
from gateway.base.redact import redact
from gateway.memory.context import MemoryParts
from gateway.memory.history import asks_for_told
from gateway.memory.hub import Hub
from gateway.memory.learning.asked import Change, is_asked, stated_changes
from gateway.memory.learning.changes import accept, as_lines, is_named, mentions
from gateway.memory.learning.entailment import content
from gateway.memory.learning.objectives import NamedTask, Objective, named_tasks, stated_objective
from gateway.memory.learning.reading import conclude, propose, unread
from gateway.memory.learning.retracted import is_joke
from gateway.memory.learning.statements import stems
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.jobs import Job
from gateway.store.memory.messages import StoredMessage, said_before
from gateway.store.memory.notices import add_notice
from gateway.store.memory.runs import end_runs, unanswered
from gateway.store.memory.tasks import (
    Level,
    NewTask,
    State,
    Task,
    add_task,
    get_task,
    open_tasks_besides,
    save_task,
    tasks_named,
    tasks_of_day,
    tasks_of_message,
)

log = structlog.get_logger(__name__)

# Of the heading, and of the line that counts what is left out.
_FRAME_TOKENS = 16
# Characters of a message that are compared with titles. What is longer was pasted, and is about something else.
_MOST_NOTED = 8_000

_ON_TASKS = any_case(
    r"\b(?:tasks?|to-?dos?|lists?|remind\w*|plans?|planned|today|việc|nhắc|hôm nay|kế hoạch)\b"
)


class TaskKeeper:
    """The handler of jobs of the kind ``tasks``, and a source of prompt blocks."""

    def __init__(self, parts: MemoryParts, hub: Hub) -> None:
        self._parts = parts
        self._hub = hub

    def _today(self, conversation: Conversation) -> str:
        """YYYY-MM-DD in the zone of the conversation, as its requests count days."""
        return self._parts.now(conversation).date().isoformat()

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        """Today's list, and the reply to a message that is a request, or what follows the reply if it has one in it."""
        offer = await self._todays_offer(conversation, asked)
        if not self._parts.settings.tasks:
            return offer
        small = self._parts.served.current.small  # it would speak of a task as of anything else
        done, in_part = await self._parts.requests.answer(conversation, asked, noted=small)
        return msgspec.structs.replace(offer, **{"after" if in_part else "answer": done})

    async def _todays_offer(self, conversation: Conversation, asked: str) -> Offer:
        """Today's list, finished tasks included, and once more for a message that asks for it.

        Small models see it only there.
        """
        room = self._parts.settings.task_tokens
        if not room or conversation.kind == "channel":  # the owner's list is private
            return Offer()
        today = self._today(conversation)
        tasks = await self._parts.database.read(lambda c: tasks_of_day(c, conversation.owner, today))
        if not tasks:
            return Offer()
        about, stands = _is_about(asked, tasks), self._parts.served.current.standing_memory
        if not about and not stands:
            return Offer([], [LeftOut("tasks", "for a small model, and not asked for by the message")])
        lines, left = await self._lines(conversation, tasks, room)
        said = {
            line: task.message if task.conversation == conversation.id else None
            for line, task in zip(as_lines(tasks), tasks, strict=True)
            if line in lines
        }
        headings = ("Tasks of today:", "Tasks of today, as they are now:") if stands else ("Tasks of today:",)
        texts = ["\n".join([heading, *lines]) for heading in headings]
        counts = await self._parts.inference.count(texts)
        names = ("tasks", "tasks_now") if stands else ("tasks_now",)
        blocks = [
            Block(name, tokens, text, said) for name, tokens, text in zip(names, counts, texts, strict=True)
        ]
        why = f"no room: memory.task_tokens is {room}"
        left_out = [LeftOut(f"{left} lines of tasks", why)] if left else []
        return Offer(blocks if about else blocks[:1], left_out)

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str]:
        """Take from a user's message what needs no model, so that its own prompt shows it; return changed ids.

        Tasks of other days that it mentions are put on today's list, where they stay; an objective is added with the
        tasks that it lists; tasks that it plainly asks for are added, and others get the state that it states.
        """
        if conversation.kind == "channel" or message.role != "user" or message.failed:
            return []
        if self._parts.settings.tasks:
            requested = self._parts.requests.note(connection, conversation, message)
            if requested is not None:
                return requested
        text, owner, today = message.text[:_MOST_NOTED], conversation.owner, self._today(conversation)
        named, spoken = tasks_named(connection, owner, mentions(text)), frozenset(stems(text))
        named = [task for task in named if task.id in mentions(text)]
        others = open_tasks_besides(connection, owner, today)
        for task in [*named, *(each for each in others if is_named(each.title, spoken))]:
            if today not in (task.day, *task.days):
                save_task(connection, msgspec.structs.replace(task, days=[*task.days, today]))
        if not self._parts.settings.tasks:
            return []
        changed = self._unsaid(connection, conversation, message)
        objective = stated_objective(text)
        # The steps of a run have the words of its task.
        known = {
            each.id: each for each in [*others, *tasks_of_day(connection, owner, today)] if not each.tool
        }
        stated = stated_changes(text, list(known.values())) if objective is None else []
        try:
            if objective is not None and objective.tasks:
                changed.append(self._add_objective(connection, conversation, objective, message.seq))
            applied = [self._apply(connection, conversation, each, message.seq) for each in stated]
            changed += filter(None, applied)
        except InvalidRequestError as error:  # the day is full
            log.warning("a task was not added", problem=error.message)
        changed += self._parts.requests.note_within(connection, conversation, message)
        return list(dict.fromkeys(changed))

    async def run(self, job: Job) -> None:
        """Read the unread messages; the changes, the watermark and the end of the job are one transaction."""
        reading = await unread(self._parts, job, "tasks")
        conversation = reading.conversation
        names = mentions("\n".join(reading.texts))
        today, named = await self._parts.database.read(
            lambda c: (
                tasks_of_day(c, conversation.owner, self._today(conversation)),
                tasks_named(c, conversation.owner, names),
            )
        )
        known = list({task.id: task for task in [*today, *named]}.values())
        shown, _ = await self._lines(conversation, known, self._parts.settings.task_tokens)
        accepted: list[tuple[Change, int]] = []
        private = conversation.kind != "channel"
        objectives = await self._objectives(conversation, reading.messages) if private else []
        users = [message.text for message in reading.messages if message.role == "user"]
        done = [text for text in users if self._parts.requests.reads(text)]
        for text in reading.texts if private else []:
            proposed = await propose(
                self._parts, conversation, "tasks", Change, text=text, known="\n".join(shown)
            )
            unread_yet = [
                each
                for each in proposed
                if not (is_asked(each.quote, users) or any(each.quote in said for said in done))
            ]
            accepted += accept(unread_yet, reading.messages, known)

        def apply(connection: apsw.Connection) -> list[str]:
            stated = [
                self._add_objective(connection, conversation, each, message) for each, message in objectives
            ]
            applied = [self._apply(connection, conversation, each, message) for each, message in accepted]
            return [*stated, *filter(None, applied)]

        await conclude(self._parts.database, self._hub, job, reading, apply)

    async def _objectives(
        self, conversation: Conversation, messages: Sequence[StoredMessage]
    ) -> list[tuple[Objective, int]]:
        """The objectives that users state without a list of tasks, each with the ``seq`` of its message.

        The model finds the tasks that the message names. :meth:`note` has added the other objectives.
        """
        found: list[tuple[Objective, int]] = []
        for message in messages:
            objective = stated_objective(message.text) if message.role == "user" else None
            if objective is None or objective.tasks:
                continue
            proposed = await propose(
                self._parts, conversation, "objective", NamedTask, text=message.text, known=objective.title
            )
            tasks = named_tasks(proposed, message)
            found.append((msgspec.structs.replace(objective, tasks=tasks), message.seq))
        return found

    def _add_objective(
        self, connection: apsw.Connection, conversation: Conversation, objective: Objective, message: int
    ) -> str:
        """Add an objective with its tasks, or the tasks that an open one of the same words lacks."""
        owner, today = conversation.owner, self._today(conversation)
        same = [
            task
            for task in open_tasks_besides(connection, owner, "")
            if task.level == "objective" and content(task.title) == content(objective.title)
        ]
        new = self._new(conversation, message, objective.title, "objective", None)
        new = msgspec.structs.replace(new, day=today[: objective.period], days=[today])
        above = same[0] if same else add_task(connection, new)
        for title in objective.tasks:
            task = self._new(conversation, message, title, "task", above.id)
            self._add(connection, msgspec.structs.replace(task, day=above.day), today)
        return above.id

    def _new(
        self, conversation: Conversation, message: int, title: str, level: Level, parent: str | None
    ) -> NewTask:
        title, redactions = redact(title.strip())
        return NewTask(
            owner=conversation.owner,
            level=level,
            parent=parent,
            title=title,
            day=self._today(conversation),
            created_at=time.time(),
            conversation=conversation.id,
            message=message,
            redactions=redactions,
        )

    def _add(self, connection: apsw.Connection, new: NewTask, today: str) -> str:
        """Add a task, unless an unfinished one of the same words is on the same list or on today's."""
        others = tasks_named(connection, new.owner, [new.parent]) if new.parent else []
        others += tasks_of_day(connection, new.owner, today)
        for task in others:
            unfinished = task.level == new.level and task.state not in ("done", "cancelled")
            if unfinished and content(task.title) == content(new.title):
                return task.id
        return add_task(connection, new).id

    def _apply(
        self, connection: apsw.Connection, conversation: Conversation, change: Change, message: int
    ) -> str:
        """Store a change; returns the task's id, or "" if a BREAKPOINT keeps it from being done."""
        if change.op in ("add", "add_item"):
            parent = change.id if change.op == "add_item" else None
            level: Level = "checklist" if parent else "task"
            new = self._new(conversation, message, change.title, level, parent)
            return self._add(connection, new, new.day)
        task = get_task(connection, change.id, conversation.owner)
        question = unanswered(connection, task) if change.op == "done" else None
        if question is not None:
            text = f"{task.title} is not marked as done, because it waits at a BREAKPOINT: {question}"
            add_notice(connection, task.owner, task.id, text, f"done {message} {task.id}", time.time())
            return ""
        if change.op in ("done", "cancelled"):
            end_runs(connection, task.id, task.owner, time.time())
        save_task(
            connection,
            msgspec.structs.replace(task, state=change.op, message=message, updated_at=time.time()),
        )
        return task.id

    def _unsaid(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str]:
        """Take back what the writer's message before changed if this one calls it a joke; return the tasks' ids."""
        before = said_before(connection, message) if is_joke(message.text) else None
        if before is None:
            return []
        unsaid = tasks_of_message(connection, conversation.owner, before.seq)
        for task in unsaid:
            added = task.state in ("open", "doing")
            if added:
                end_runs(connection, task.id, task.owner, time.time())
            state: State = "cancelled" if added else "open"
            changed = msgspec.structs.replace(task, state=state, message=message.seq, updated_at=time.time())
            save_task(connection, changed)
        return [task.id for task in unsaid]

    async def _lines(
        self, conversation: Conversation, tasks: Sequence[Task], room: int
    ) -> tuple[list[str], int]:
        """The lines that fit ``room`` tokens in their order, and the number of the others, which the last line says.

        Mentioned tasks and the newest ones come first, checklists last. The first one is there whatever its length.
        """
        lines, today = as_lines(tasks), self._today(conversation)
        counts = await self._parts.inference.count(lines)
        place = {task.id: index for index, task in enumerate(tasks)}

        def urgency(index: int) -> tuple[bool, bool, int, int]:
            task = tasks[index]
            above = place.get(task.parent or "", index) if task.level == "checklist" else index
            return task.level == "checklist", today not in tasks[above].days, -above, index

        used, kept = _FRAME_TOKENS, set[int]()
        for index in sorted(range(len(tasks)), key=urgency):
            used += counts[index] + 1
            if used > room and kept:
                break
            kept.add(index)
        left = len(lines) - len(kept)
        shown = [line for index, line in enumerate(lines) if index in kept]
        return [*shown, *([f"({left} more are left out here)"] if left else [])], left


def _is_about(message: str, tasks: Sequence[Task]) -> bool:
    words = content(message)
    about = bool(_ON_TASKS.search(message)) or any(words & content(task.title) for task in tasks)
    return about and asks_for_told(message)
