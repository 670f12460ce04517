"""Replays long dialogues through conversations, and scores what the memory keeps of them."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, closing
from functools import partial
from pathlib import Path
from uuid import uuid4

import msgspec

from gateway.base.patterns import any_case
from gateway.base.supervised import Supervision
from gateway.evaluation.dialogues import Dialogue, PlantedFact, Spoken
from gateway.evaluation.memory import wait_for_jobs
from gateway.evaluation.questions import Question
from gateway.evaluation.score import MemoryContents, Row
from gateway.memory.compose import readable
from gateway.memory.context import MemoryParts
from gateway.memory.events import BudgetKnown, Done, PostCall
from gateway.memory.pace import Pace
from gateway.memory.service import Conversations
from gateway.memory.summaries.keep import invented, wrong_pair
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, add_conversation, get_conversation
from gateway.store.memory.facts import list_facts
from gateway.store.memory.messages import (
    NewMessage,
    StoredMessage,
    add_message,
    mark_failed,
    page_of_messages,
)
from gateway.store.memory.summaries import EXTRACT, list_summaries
from gateway.store.memory.tasks import list_tasks
from gateway.store.request_log import RequestRecord, add_record

_PACE = 20.0  # seconds between messages
_ANSWER_TOKENS = 40
_STEP = 40  # lines between two reports
_NEAR = 200  # characters; patterns of one item that are farther apart do not match together
_MOST = 10_000  # rows
_LOG = {"max_records": _MOST, "max_record_bytes": 2**30}
_OWNER = "evaluation"
# The round of a variable: true, but not said.
_ROUND = re.compile(r"(?<=: )round \d+: ")


async def replayed(
    parts: MemoryParts, show: Callable[[str], None], dialogues: Sequence[Question]
) -> AsyncIterator[Row]:
    """Replay each dialogue in a database of its own, and yield its row. ``show`` gets the progress.

    Raises HearthError if the memory cannot read one.
    """
    for dialogue in dialogues:
        assert isinstance(dialogue, Dialogue)
        begun = time.monotonic()
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(Database(Path(folder) / "hearth.db")) as database,
        ):
            database.open()
            kept = await _Replay(parts, database, dialogue, show).run(Path(folder))
        yield Row(
            id=dialogue.id,
            category=dialogue.category,
            text=dialogue.text,
            answerable=False,
            kept=kept,
            timings={"total": time.monotonic() - begun},
        )


class _Replay:
    def __init__(
        self, parts: MemoryParts, database: Database, dialogue: Dialogue, show: Callable[[str], None]
    ) -> None:
        self._show = show
        self._now = 0.0
        self._records: list[RequestRecord] = []
        self._waited: list[float] = []
        self._dialogue = dialogue
        self._parts = msgspec.structs.replace(
            parts,
            database=database,
            settings=msgspec.structs.replace(parts.settings, fresh_share=0.0),
            record=self._record,
            pace=Pace(),
            clock=lambda: self._now,
        )
        self._service = Conversations(self._parts)
        name, kind, policy = str(uuid4()), dialogue.kind, dialogue.policy
        self._talk = Conversation(
            id=name, owner=_OWNER, kind=kind, policy=policy, created_at=0.0, updated_at=0.0
        )

    async def _record(self, make: Callable[[], RequestRecord]) -> None:
        made = make()
        self._records.append(made)
        await self._parts.database.write(lambda c: add_record(c, made, **_LOG))

    async def run(self, folder: Path) -> MemoryContents:
        await self._parts.database.write(lambda c: add_conversation(c, self._talk))
        await self._service.start(Supervision())
        begun = time.monotonic()
        try:
            for number, line in enumerate(self._dialogue.log):
                if number % _STEP == 0:
                    self._show(
                        f"{self._dialogue.id}: line {number} of {len(self._dialogue.log)}, "
                        f"{len(self._records)} calls, {time.monotonic() - begun:.0f} s"
                    )
                if line.at is not None:
                    await wait_for_jobs(self._parts.database, self._talk)
                    self._now = line.at
                elif not line.by_model:
                    following = self._dialogue.log[number + 1 : number + 2]
                    await self._say(line, reply=any(each.by_model for each in following))
                self._now += _PACE
            await wait_for_jobs(self._parts.database, self._talk)
            return await self._scored(folder)
        finally:
            await self._service.close()

    async def _say(self, line: Spoken, reply: bool) -> None:
        call = PostCall(
            id=str(uuid4()), conversation=self._talk, text=line.text, speaker=line.speaker, role=line.role,
            reply=reply, max_tokens=_ANSWER_TOKENS,
        )  # fmt: skip
        begun, waits = time.monotonic(), True
        async with aclosing(self._service.post(call)) as events:
            async for event in events:
                if waits and isinstance(event, BudgetKnown | Done):
                    self._waited.append(time.monotonic() - begun)
                    waits = False

    async def _scored(self, folder: Path) -> MemoryContents:
        dialogue, database = self._dialogue, self._parts.database
        context = await self._service.context(self._talk)
        prompt = _plain("\n".join(block.text for block in context.composition.blocks))
        facts, tasks, summaries, log = await database.read(
            lambda c: (
                list_facts(c, _OWNER, limit=_MOST),
                list_tasks(c, _OWNER, limit=_MOST),
                list_summaries(c, self._talk.id, limit=_MOST),
                page_of_messages(c, self._talk.id, limit=_MOST),
            )
        )
        learned = [_plain(f"{fact.key}: {fact.text}") for fact in facts]
        calls = Counter[str](made.kind for made in self._records)
        ranks = [await self._rank(item, log) for item in dialogue.planted]
        planted = dialogue.planted
        stale = [f"prompt: {item.asked}" for item in planted if outdated(prompt, item)]
        stale += [f"fact: {fact}" for fact in learned for item in planted if outdated(fact, item)]
        right = 0
        for planned in dialogue.tasks:
            states = [each.state for each in tasks if places(_plain(each.title), planned.title)]
            ended = planned.state in ("done", "cancelled")
            right += bool(states) and all(
                state == planned.state if ended else state in ("open", "doing") for state in states
            )
            if ended and any(state in ("open", "doing") for state in states):
                stale.append(f"task: {' '.join(planned.title)}")
        said = [f"{each.speaker}: {each.text}" for each in log]
        written = [_ROUND.sub("", readable(each.text)) for each in summaries]
        foreign = [
            found for text in [*written, *(fact.text for fact in facts)] for found in _foreign(said, text)
        ]
        asked = list(zip(planted, await self._asked(), strict=True))
        stale += [f"asked: {item.asked}" for item, text in asked if outdated(text, item)]
        missing = [item.asked for item, text in asked if not places(text, item.has)]
        return MemoryContents(
            messages=dialogue.messages,
            planted=len(planted),
            in_prompt=sum(bool(places(prompt, item.has)) for item in planted),
            when_asked=len(planted) - len(missing),
            first_five=sum(0 < rank <= 5 for rank in ranks),
            in_facts=sum(any(places(fact, item.has) for fact in learned) for item in planted),
            missing=missing,
            tasks=len(dialogue.tasks),
            tasks_right=right,
            stored_facts=learned,
            stale=stale,
            invented=list(dict.fromkeys(foreign)),
            secrets=len(dialogue.secrets),
            leaked=await asyncio.to_thread(_at_rest, folder, dialogue.secrets),
            waited=self._waited,
            calls=dict(calls),
            summaries=sum(each.prompt_name not in ("", EXTRACT) for each in summaries),
            extracts=sum(each.prompt_name == EXTRACT for each in summaries),
        )

    async def _rank(self, item: PlantedFact, log: Sequence[StoredMessage]) -> int:
        """The place of the message among the hits of a search for the question; 0 if it is not found."""
        wanted = {each.seq for each in log if item.said in each.text}
        found = await self._service.history.search(_OWNER, self._talk.id, item.asked)
        return next((place for place, seq in enumerate(found, 1) if seq in wanted), 0)

    async def _asked(self) -> list[str]:
        """The prompts of the questions, without the questions themselves, each in the state after the dialogue."""
        prompts = []
        database = self._parts.database
        talk = await database.read(lambda c: get_conversation(c, self._talk.id, _OWNER))
        for item in self._dialogue.planted:
            question = NewMessage(
                id=str(uuid4()), conversation=talk.id, role="user", speaker="", text=item.asked, tokens=-1,
                redactions=0, created_at=self._now,
            )  # fmt: skip
            await database.write(partial(add_message, message=question))
            messages = msgspec.to_builtins((await self._service.context(talk)).composition.messages)
            text = "\n".join(_text(each["content"]) for each in messages)
            prompts.append(_plain(text).replace(_plain(item.asked), ""))
            await database.write(partial(mark_failed, conversation=talk.id, failed=True, message=question.id))
        return prompts


def _text(content: str | list[dict[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def places(text: str, patterns: Sequence[str]) -> list[int]:
    """Where the patterns stand together in ``text``."""
    first, *others = [any_case(_plain(pattern)) for pattern in patterns]
    return [
        match.start()
        for match in first.finditer(text)
        if all(other.search(text, max(0, match.start() - _NEAR), match.end() + _NEAR) for other in others)
    ]


def outdated(text: str, item: PlantedFact) -> bool:
    """Whether ``text`` has what was true before, and what is true now neither near it nor after it."""
    if not item.was:
        return False
    now = places(text, item.has)
    return any(all(there < before - _NEAR for there in now) for before in places(text, item.was))


def _foreign(said: Sequence[str], text: str) -> list[str]:
    """Names, numbers and identifiers of ``text`` that no message has, and a pair that none joins."""
    pair = wrong_pair(said, text)
    return [*invented("\n".join(said), text), *([" and ".join(pair)] if pair else [])]


def _at_rest(folder: Path, secrets: Sequence[str]) -> list[str]:
    """The secrets that a file has; four digits inside an id or a time are none."""
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    return [
        each
        for each in secrets
        if re.search(rb"(?<![0-9a-f.])%b(?![0-9a-f])" % re.escape(each.encode()), stored)
    ]
