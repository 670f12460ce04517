"""An assistant's part of the memory: its blocks of a prompt, and its reflection over all its conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

import apsw
import msgspec
import structlog

from gateway.memory.compose import HEADINGS, Composition, readable
from gateway.memory.context import ContextBuilder, MemoryParts
from gateway.memory.planning.situation import MIN_TARGET_TOKENS
from gateway.memory.summaries.summarize import Summarizer, SummarySource
from gateway.memory.types import Block, Character, Compaction, LeftOut
from gateway.store.memory.assistants import (
    Assistant,
    Reflection,
    WaitingSummary,
    add_assistant,
    add_reflection,
    assistant_of,
    list_reflections,
    receivers,
    reflected_summaries,
    waiting_summaries,
)
from gateway.store.memory.conversations import Conversation, any_conversation, save_conversation
from gateway.store.memory.summaries import EXTRACT, Summary, live_summaries

log = structlog.get_logger(__name__)

# Shares of `memory.floor` for the reflection, and for the summaries of other conversations in a prompt.
_REFLECTION_SHARE, _ELSEWHERE_SHARE = 1 / 3, 1 / 4


async def character(parts: MemoryParts, conversation: Conversation) -> Character:
    """The part of a prompt about the conversation's assistant and its other conversations."""
    if conversation.assistant is None:
        return Character()
    assistant, reflections, waiting, reflected = await parts.database.read(
        lambda c: (
            (found := assistant_of(c, conversation)),
            list_reflections(c, found.id, limit=1) if found else [],
            waiting_summaries(c, found) if found else [],
            reflected_summaries(c, conversation),
        )
    )
    if assistant is None:  # deleted meanwhile
        return Character()
    biography = assistant.biography.strip()
    if assistant.name and assistant.name.casefold() not in biography.partition("\n")[0].casefold():
        biography = f"You are {assistant.name}.\n{biography}".strip()
    reflection = _reflection_text(reflections[0]) if reflections else ""
    others = [
        _line(each, conversation, parts) for each in waiting if each.summary.conversation != conversation.id
    ]
    heading = "From your other conversations:"
    counts = await parts.inference.count([biography, reflection, heading, *others])
    room = int((await parts.budget()).floor * _ELSEWHERE_SHARE)
    fitting: list[str] = []
    used = counts[2]
    for line, tokens in zip(reversed(others), reversed(counts[3:]), strict=True):
        if used + tokens + 1 > room:
            break
        used += tokens + 1
        fitting.insert(0, line)
    left = len(others) - len(fitting)
    return Character(
        name=assistant.name,
        biography=Block("biography", counts[0], biography) if biography else None,
        reflection=Block("reflection", counts[1], reflection) if reflection else None,
        elsewhere=Block("elsewhere", used, "\n".join([heading, *fitting])) if fitting else None,
        reflected=reflected if conversation.policy == "conversations" else frozenset(),
        left_out=[LeftOut(f"{left} summaries of other conversations", f"no room: {room} tokens")]
        if left
        else [],
    )


def _reflection_text(reflection: Reflection) -> str:
    return "\n".join([HEADINGS["reflection"], reflection.text, *(f"- {pin}" for pin in reflection.pins)])


def _line(waiting: WaitingSummary, conversation: Conversation, parts: MemoryParts) -> str:
    """The summary with its day and people."""
    summary = waiting.summary
    day = datetime.fromtimestamp(summary.to_time, parts.zone(conversation)).date().isoformat()
    people = f", with {', '.join(waiting.participants)}" if waiting.participants else ""
    return "\n".join(
        [f"[{day}{people}] {readable(summary.text)}".strip(), *(f"- {pin}" for pin in summary.pins)]
    )


class Reflector:
    """Folds the oldest waiting summaries of an assistant into its reflection, once there are enough."""

    def __init__(self, parts: MemoryParts, builder: ContextBuilder, places: asyncio.Semaphore) -> None:
        self._parts = parts
        self._places = places  # of summaries that are written at once
        self._builder = builder
        # Several of an assistant's conversations may end at once.
        self._turns = parts.database.peers.locks("assistant")

    async def run(self, conversation: Conversation) -> None:
        """Reflect for each assistant that gets the conversation's summaries. Raises what the inference raises."""
        for assistant in await self._parts.database.write(lambda c: self._receivers(c, conversation.id)):
            async with self._turns.hold(assistant.id):
                while await self._reflect(conversation, assistant):
                    pass

    def _receivers(self, connection: apsw.Connection, name: str) -> list[Assistant]:
        """The assistants; a conversation of many episodes without one gets its own, which has no name yet."""
        conversation = any_conversation(connection, name)
        if conversation.assistant is None and conversation.policy == "conversations":
            episodes = [each for each in live_summaries(connection, name) if each.level == "conversation"]
            if len(episodes) >= self._parts.settings.reflection_after:
                now = self._parts.clock()
                own = Assistant(
                    id=str(uuid4()),
                    owner=conversation.owner,
                    name="",
                    biography="",
                    version=1,
                    created_at=now,
                    updated_at=now,
                )
                add_assistant(connection, own)
                conversation = msgspec.structs.replace(conversation, assistant=own.id)
                save_conversation(connection, conversation)
        return receivers(connection, conversation)

    async def _reflect(self, conversation: Conversation, assistant: Assistant) -> bool:
        """One reflection, if it is due; return whether it was."""
        settings = self._parts.settings
        waiting, last = await self._parts.database.read(
            lambda c: (waiting_summaries(c, assistant), list_reflections(c, assistant.id, limit=1))
        )
        if len(waiting) < settings.reflection_after:
            return False
        new = [each.summary for each in waiting[: settings.reflection_folds]]
        reflection = await self._written(conversation, assistant, last, new)
        await self._parts.database.write(
            lambda c: add_reflection(c, assistant.id, reflection, [summary.seq for summary in new])
        )
        log.info("an assistant has reflected", assistant=assistant.id, version=reflection.version)
        return True

    async def _written(
        self,
        conversation: Conversation,
        assistant: Assistant,
        last: Sequence[Reflection],
        new: Sequence[Summary],
    ) -> Reflection:
        parts, budget = self._parts, await self._parts.budget()
        folds = [*(_as_summary(each, new[0]) for each in last), *new]
        source = SummarySource(messages=[], folds=folds)
        compaction = Compaction(
            level="reflection",
            first=None,
            last=None,
            folds=tuple(fold.seq for fold in folds),
            target_tokens=max(MIN_TARGET_TOKENS, min(int(budget.floor * _REFLECTION_SHARE), source.tokens)),
        )
        summarizer = Summarizer(parts, conversation, budget, parts.prompts, {})
        blocks = [Block("core", 0, self._builder.core_text("")), Block("biography", 0, assistant.biography)]
        opening = Composition(blocks=[each for each in blocks if each.text], left_out=[], turns=[], total=0)
        draft = await summarizer.written(compaction, source, opening, self._places)
        return Reflection(
            version=1 + (last[0].version if last else 0),
            **msgspec.structs.asdict(draft),
            model=parts.model_name if draft.prompt_name not in ("", EXTRACT) else "",
            created_at=parts.clock(),
        )


def _as_summary(reflection: Reflection, before: Summary) -> Summary:
    """A reflection as the first of the summaries that the next one is made of."""
    values = {name: getattr(reflection, name) for name in ("text", "pins", "tokens")}
    return msgspec.structs.replace(before, seq=0, level="reflection", **values)
