"""Tasks in conversations: today's in every prompt, others when mentioned, changes read after each exchange."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import apsw
import msgspec

from gateway.base.redact import redact
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.learning.changes import Change, accept, as_lines, mentions
from gateway.memory.learning.reading import conclude, propose, unread
from gateway.memory.planning.budget import time_zone
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.jobs import Job
from gateway.store.memory.tasks import NewTask, Task, add_task, get_task, save_task, tasks_named, tasks_of_day


class TaskKeeper:
    """The handler of jobs of the kind ``tasks``, and a source of prompt blocks."""

    def __init__(self, parts: MemoryParts, hub: Hub) -> None:
        self._parts = parts
        self._hub = hub

    def today(self) -> str:
        """Today as YYYY-MM-DD, in the configured zone."""
        return datetime.now(time_zone(self._parts.settings.time_zone)).date().isoformat()

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        """Blocks of today's tasks, finished ones included, and of those that the last message mentions."""
        room = self._parts.settings.task_tokens
        if not room or conversation.kind == "channel":  # the owner's list is private
            return Offer()
        names = mentions(asked)
        today, named = await self._parts.database.read(
            lambda c: (
                tasks_of_day(c, conversation.owner, self.today()),
                tasks_named(c, conversation.owner, names) if names else [],
            )
        )
        shown = {task.id for task in today}
        offers = [
            await self._offer("tasks", "Tasks of today:", today, room),
            await self._offer("recalled", "Tasks mentioned:", [t for t in named if t.id not in shown], room),
        ]
        return Offer(
            [block for offer in offers for block in offer.blocks],
            [left for offer in offers for left in offer.left_out],
        )

    async def run(self, job: Job) -> None:
        """Read the unread messages; the changes, the watermark and the end of the job are one transaction."""
        reading = await unread(self._parts, job, "tasks")
        conversation = reading.conversation
        names = mentions("\n".join(reading.texts))
        today, named = await self._parts.database.read(
            lambda c: (
                tasks_of_day(c, conversation.owner, self.today()),
                tasks_named(c, conversation.owner, names),
            )
        )
        known = list({task.id: task for task in [*today, *named]}.values())
        shown = await self._within(as_lines(known), self._parts.settings.task_tokens)
        accepted: list[tuple[Change, int]] = []
        for text in reading.texts if reading.by_users and conversation.kind != "channel" else []:
            proposed = await propose(
                self._parts, conversation, "tasks", Change, text=text, known="\n".join(shown)
            )
            accepted += accept(proposed, reading.messages, known)

        def apply(connection: apsw.Connection) -> list[str]:
            return [self._apply(connection, conversation, each, message) for each, message in accepted]

        await conclude(self._parts.database, self._hub, job, reading, apply)

    def _apply(
        self, connection: apsw.Connection, conversation: Conversation, change: Change, message: int
    ) -> str:
        now = time.time()
        if change.op in ("add", "add_item"):
            parent = change.id if change.op == "add_item" else None
            title, redactions = redact(change.title.strip())
            new = NewTask(
                owner=conversation.owner,
                level="checklist" if parent else "task",
                parent=parent,
                archetype="user",
                title=title,
                day=self.today(),
                created_at=now,
                conversation=conversation.id,
                message=message,
                redactions=redactions,
            )
            return add_task(connection, new).id
        task = get_task(connection, change.id, conversation.owner)
        save_task(
            connection,
            msgspec.structs.replace(task, state=change.op, message=message, updated_at=now),
        )
        return task.id

    async def _offer(self, name: str, heading: str, tasks: Sequence[Task], room: int) -> Offer:
        """A block of the tasks that fit ``room`` tokens; its last line counts those that do not."""
        if not tasks:
            return Offer()
        every = [heading, *as_lines(tasks)]
        lines = await self._within(every, room)
        text = "\n".join(lines)
        [tokens] = await self._parts.inference.count([text])
        left = len(every) - len(lines) + 1 if lines != every else 0
        why = f"no room: memory.task_tokens is {room}"
        return Offer([Block(name, tokens, text)], [LeftOut(f"{left} lines of {name}", why)] if left else [])

    async def _within(self, lines: Sequence[str], room: int) -> list[str]:
        """The first lines that fit ``room`` tokens, then one with the number of the others, if any."""
        used = 8
        kept: list[str] = []
        for line, count in zip(lines, await self._parts.inference.count(list(lines)), strict=True):
            used += count + 1
            if used > room:
                return [*kept, f"({len(lines) - len(kept)} more)"]
            kept.append(line)
        return kept
