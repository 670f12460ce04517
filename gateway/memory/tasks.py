"""Tasks in conversations: today's in every prompt, others when mentioned, and updates read after each exchange."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import apsw
import msgspec
import structlog

from gateway.memory.context import MemoryParts
from gateway.memory.dialogue import dialogue
from gateway.memory.hub import Hub
from gateway.memory.policies import time_zone
from gateway.memory.types import Block
from gateway.store.conversations import Conversation, any_conversation
from gateway.store.jobs import Job, finish_job, set_watermark, watermark
from gateway.store.messages import StoredMessage, messages_between
from gateway.store.tasks import NewTask, Task, add_task, get_task, save_task, tasks_named, tasks_of_day
from gateway.tasks.values import Accepted, Change, accept, as_lines, mentions

log = structlog.get_logger(__name__)

_MAX_MESSAGES = 12


class TaskKeeper:
    """The handler of jobs of the kind ``tasks``, and a source of prompt blocks."""

    def __init__(self, parts: MemoryParts, hub: Hub) -> None:
        self._parts = parts
        self._hub = hub

    def today(self) -> str:
        """Today as YYYY-MM-DD, in the configured zone."""
        return (
            datetime.fromtimestamp(time.time(), time_zone(self._parts.settings.time_zone)).date().isoformat()
        )

    async def blocks(self, conversation: Conversation, asked: str) -> list[Block]:
        """Today's tasks, finished ones too, and those that the last message mentions."""
        room = self._parts.settings.task_tokens
        if not room or conversation.kind == "channel":  # a channel is no place for its owner's private list
            return []
        names = mentions(asked)
        today, named = await self._parts.database.read(
            lambda c: (
                tasks_of_day(c, conversation.owner, self.today()),
                tasks_named(c, conversation.owner, names) if names else [],
            )
        )
        shown = {task.id for task in today}
        blocks = [
            await self._block("tasks", "Tasks of today:", today, room),
            await self._block("recalled", "Tasks mentioned:", [t for t in named if t.id not in shown], room),
        ]
        return [block for block in blocks if block is not None]

    async def run(self, job: Job) -> None:
        """Read what was said since the last time; tasks, watermark and the job's end are one transaction."""
        database = self._parts.database
        conversation, done = await database.read(
            lambda c: (any_conversation(c, job.conversation), watermark(c, job.conversation, "tasks"))
        )
        messages, known = await database.read(
            lambda c: (
                messages_between(c, conversation.id, done + 1, 2**62),
                tasks_of_day(c, conversation.owner, self.today()),
            )
        )
        spoken = [message for message in messages if not message.failed][-_MAX_MESSAGES:]
        accepted: list[Accepted] = []
        if conversation.kind != "channel" and any(message.role == "user" for message in spoken):
            accepted = accept(await self._propose(conversation, spoken, known), spoken, known)

        def store(connection: apsw.Connection) -> list[str]:
            changed = [self._apply(connection, conversation, each) for each in accepted]
            if messages:
                set_watermark(connection, conversation.id, "tasks", messages[-1].seq)
            finish_job(connection, job)
            return changed

        changed = await database.write(store)
        if changed:
            self._hub.tell(conversation.id, "tasks", changed=changed)

    async def _propose(
        self, conversation: Conversation, messages: Sequence[StoredMessage], known: Sequence[Task]
    ) -> list[Change]:
        prompt = self._parts.prompts.get("tasks")
        rendered = prompt.render(known="\n".join(as_lines(known)) or "(none)", dialogue=dialogue(messages))
        text, stopped = await self._parts.model(conversation).write(prompt, rendered, max_tokens=600)
        try:
            return msgspec.json.decode(text, type=list[Change])
        except msgspec.DecodeError as error:
            log.warning("task updates could not be read", stopped=stopped, problem=str(error)[:200])
            return []

    def _apply(self, connection: apsw.Connection, conversation: Conversation, accepted: Accepted) -> str:
        """Carry out one change; returns the task's id."""
        change, now = accepted.change, time.time()
        if change.op in ("add", "add_item"):
            parent = change.id if change.op == "add_item" else None
            new = NewTask(
                owner=conversation.owner,
                level="checklist" if parent else "task",
                parent=parent,
                archetype="user",
                title=change.title.strip(),
                day=self.today(),
                now=now,
                conversation=conversation.id,
                message=accepted.message,
            )
            return add_task(connection, new).id
        task = get_task(connection, change.id, conversation.owner)
        save_task(
            connection,
            msgspec.structs.replace(task, state=change.op, message=accepted.message, updated_at=now),
        )
        return task.id

    async def _block(self, name: str, heading: str, tasks: Sequence[Task], room: int) -> Block | None:
        """The tasks that fit ``room`` tokens; what does not is counted in a last line."""
        lines = as_lines(tasks)
        if not lines:
            return None
        counts = await self._parts.inference.count([heading, *lines])
        used, kept = counts[0] + 8, [heading]
        for line, count in zip(lines, counts[1:], strict=True):
            if used + count + 1 > room:
                kept.append(f"({len(lines) - len(kept) + 1} more)")
                break
            used += count + 1
            kept.append(line)
        return Block(name, used, "\n".join(kept))
