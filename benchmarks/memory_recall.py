"""Measure recall and cost of each memory policy over a long conversation: 2,000 messages with 40 planted facts.

    python benchmarks/memory_recall.py [--messages 2000]

The whole service runs with a scripted model. It answers in a sentence, and its summaries keep the newest sentences with
a number that fit into the allowed words. So the figures show the effect of policies and checks, not the quality of a
particular model. Printed: a Markdown table.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.common import command_line
from gateway.base.supervised import Supervision
from gateway.cli.common.database import opened_database
from gateway.config.settings import MemorySettings
from gateway.inference.interface import GenerateCall, ModelInfo
from gateway.memory.context import MemoryParts
from gateway.memory.events import Done, PostCall
from gateway.memory.service import Conversations
from gateway.models.catalog import ResolvedModel
from gateway.models.prompts import load_prompts
from gateway.models.served import ServedModel
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, PolicyName, add_conversation, any_conversation
from gateway.store.request_log import RequestRecord
from model_host.protocol import Message
from tests.gateway.api.scripted import ScriptedInference

PLANTED = 40
POLICIES: tuple[PolicyName, ...] = ("ceiling", "rounds", "window", "conversations")
_CHARACTERS_PER_TOKEN = 4
# Seconds between exchanges, exchanges of an episode, seconds between episodes.
_PAUSE, _EPISODE, _SILENCE = 30.0, 6, 7200.0
_JOB_SECONDS = 120.0
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")


class ExtractiveModel(ScriptedInference):
    """The scripted model. It counts its calls and tokens."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.background: list[tuple[int, int]] = []  # tokens read and written by each call
        self.largest_prompt = 0
        self._chance = random.Random(2)

    def _reply(self, call: GenerateCall) -> list[str]:
        text = "\n".join(message.text for message in call.messages or [])
        tokens = len(text) // _CHARACTERS_PER_TOKEN
        if call.lane != "background":
            self.largest_prompt = max(self.largest_prompt, tokens)
            return [_small_talk(self._chance)]
        reply = self._summary(text)
        if call.json_schema is not None:
            reply = msgspec.json.encode({"ConversationSummary": reply}).decode()
        self.background.append((tokens, len(reply) // _CHARACTERS_PER_TOKEN))
        return [reply]

    def _summary(self, text: str) -> str:
        """Return the newest sentences with a number, within the words that the prompt allows."""
        body, _, instruction = text.rpartition("Pause the conversation")
        body, instruction = (body, instruction) if body else (text, text)
        words = int((re.search(r"in (\d+) words|of (\d+) words", instruction) or ["", "60"])[1] or 60)
        kept: list[str] = []
        for sentence in reversed(_SENTENCE.findall(body)):
            said = " ".join(sentence.split())
            if re.search(r"\d\d", said) and said not in kept:
                words -= len(said.split())
                if words < 0:
                    break
                kept.append(said)
        return " ".join(reversed(kept)) or "Nothing of note."

    async def count(self, texts: list[str], **_: object) -> list[int]:
        return [len(text) // _CHARACTERS_PER_TOKEN + 1 for text in texts]

    async def count_prompt(self, messages: list[Message], **_: object) -> int:
        text = "\n".join(message.text for message in messages)
        return len(text) // _CHARACTERS_PER_TOKEN + 6 * len(messages)

    async def model_info(self, **_: object) -> ModelInfo:
        return ModelInfo(name="extractive", n_ctx=16_384, n_ctx_train=16_384, fingerprint="x")


_WORDS = re.findall(
    r"\w+", "the weather stays mild and we talk about plans food music and how slow the bus was again"
)


def _small_talk(chance: random.Random) -> str:
    return f"{' '.join(chance.choices(_WORDS, k=chance.randint(8, 60))).capitalize()}."


def _planted(number: int) -> tuple[str, str]:
    """Return a sentence and the part of it that must be found again."""
    name = "".join(chr(97 + (number * 7 + i * 5) % 26) for i in range(6)).capitalize()
    return f"By the way, my friend {name} lives at number {1000 + number * 37}.", f"{1000 + number * 37}"


async def run(policy: PolicyName, messages: int) -> list[str]:
    """Measure one conversation with one policy; return the row of the table."""
    model, chance, now = ExtractiveModel(), random.Random(1), 1_763_700_000.0
    with tempfile.TemporaryDirectory() as folder, opened_database(Path(folder) / "hearth.db") as database:

        async def forget(make: Callable[[], RequestRecord]) -> None: ...

        parts = MemoryParts(
            database=database, inference=model, prompts=load_prompts(), record=forget,
            settings=MemorySettings(facts=False, tasks=False, fresh_share=0.0),
            served=ServedModel(
                ResolvedModel(name="extractive", path=Path("none"), size_bytes=0, ram_bytes=0, context=8192)
            ),
            clock=lambda: now,
        )  # fmt: skip
        service = Conversations(parts)
        await service.start(Supervision())
        talk = Conversation(
            id=policy, owner="o", kind="chat", policy=policy, title="", participants=[],
            instructions="", model="", previous=None, created_at=0.0, updated_at=0.0,
        )  # fmt: skip
        await database.write(lambda c: add_conversation(c, talk))
        wanted: list[str] = []
        every = messages // 2 // PLANTED
        for number in range(messages // 2):
            text = _small_talk(chance)
            if number % every == every // 2 and len(wanted) < PLANTED:
                sentence, item = _planted(len(wanted))
                wanted.append(item)
                text = f"{text} {sentence}"
            async for event in service.post(PostCall(id=f"r{number}", conversation=talk, text=text)):
                if isinstance(event, Done):
                    break
            now += _PAUSE if (number + 1) % _EPISODE else _SILENCE
            await _idle(database)
        await service.close()
        context = await service.context(await database.read(lambda c: any_conversation(c, policy)))
        prompt = "\n".join(block.text for block in context.composition.blocks)
    found = [item in prompt for item in wanted]
    read, written = map(sum, zip(*model.background, strict=True)) if model.background else (0, 0)
    return [
        policy,
        f"{sum(found)} of {len(wanted)}",
        f"{sum(found[PLANTED // 2 :])} of {len(wanted) // 2}",
        f"{len(model.background)}",
        f"{len(model.background) / messages:.1%}",
        f"{read:,}",
        f"{written:,}",
        f"{model.largest_prompt:,}",
    ]


async def _idle(database: Database) -> None:
    """Wait until the jobs of the last exchange are done."""
    deadline = time.monotonic() + _JOB_SECONDS
    while time.monotonic() < deadline:
        if not await database.read(lambda c: c.execute("SELECT count(*) FROM jobs WHERE not_before = 0").get):
            return
        await asyncio.sleep(0.001)
    raise RuntimeError(f"a job did not end within {_JOB_SECONDS:.0f} s")


async def main(messages: int) -> None:
    heads = ["policy", "planted facts in the prompt", "of the newer half", "calls", "calls per message"]
    heads += ["tokens read", "tokens written", "largest prompt"]
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for policy in POLICIES:
        print(f"| {' | '.join(await run(policy, messages))} |", flush=True)


if __name__ == "__main__":
    parser = command_line(__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    asyncio.run(main(parser.parse_args().messages))
