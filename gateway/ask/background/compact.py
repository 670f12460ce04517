"""Summaries of pages with more matching passages than fit, made by the model for the question and cached."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.ask.background.draft import PageDraft
from gateway.ask.background.fit import Summarize
from gateway.ask.budget import QuestionClock
from gateway.ask.checking.evidence import Evidence, supporting
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits
from gateway.ask.text.passages import Passage, estimated_tokens
from gateway.ask.text.sentences import split_units
from gateway.ask.text.words import is_babble, same_words
from gateway.base.errors import HearthError
from gateway.models.prompts import Prompt
from gateway.store.compactions import get_compaction, put_compaction, touch_compaction
from gateway.store.db import Database

_NOTHING = "nothing relevant"
# Room to finish the last sentence; sentences that do not fit are cut afterwards.
_SLACK = 1.25
_LEAST_OUTPUT = 32
_MARKER = 8  # tokens of a line's marker and end


class CompactionCache:
    """Summaries by key, in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: bytes) -> str | None:
        now = time.time()
        found = await self._database.read(lambda c: get_compaction(c, key, now))
        if found is None:
            return None
        text, stale = found
        if stale:
            await self._database.write(lambda c: touch_compaction(c, key, now))
        return text

    async def put(self, key: bytes, text: str) -> None:
        await self._database.write(lambda c: put_compaction(c, key, text, time.time()))


def compaction_key(parts: Sequence[str]) -> bytes:
    """Hash everything that a summary depends on."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=24).digest()


@dataclass(frozen=True)
class PageCompactor:
    """Summarizes pages for one question. ``fingerprint`` identifies the model's weights."""

    model: Model
    journal: Journal
    prompt: Prompt
    limits: Limits
    cache: CompactionCache | None
    fingerprint: str
    clock: QuestionClock

    async def run(self, step: Summarize) -> list[Passage]:
        """Summarize, check the summary against the page, and cut it to the step's tokens.

        Returns nothing, with a remark in the record, if the summary fails, has nothing that the page supports, or is
        neither cached nor possible in time.
        """
        title = step.draft.page.title
        try:
            output, finished = await self._summary(step)
            if output.strip().strip(".!").casefold() == _NOTHING:
                raise HearthError("the model found nothing relevant")
            kept = self._supported(step.draft, [unit.body for unit in split_units(output)], finished)
            if not kept:
                raise HearthError("it says nothing that the page supports")
        except HearthError as error:
            self.journal.note("summary_left_out", {"title": title, "reason": error.message})
            return []
        return await self._fitted(step, kept)

    async def _summary(self, step: Summarize) -> tuple[str, bool]:
        """Return the raw summary and whether the model finished it.

        Passages over the prompt limit are left out of its source, which the journal notes. Raises HearthError if no
        passage fits, or if the model would need too long.
        """
        title, chosen = step.draft.page.title, list(step.passages)
        values = self._values(step, chosen)
        while (
            chosen
            and (tokens := await self.model.count_prompt(self.prompt.render(**values))) > self.limits.prompt
        ):
            excess = tokens - self.limits.prompt
            while excess > 0 and chosen:
                excess -= estimated_tokens(step.draft.passages[chosen.pop()].text)
            values = self._values(step, chosen)
        if not chosen:
            raise HearthError("no passage of the page fits the prompt")
        if left_out := len(step.passages) - len(chosen):
            self.journal.note(
                "left_out", {"title": title, "passages": left_out, "of": "the summary's source"}
            )
        key = self._key(step, values)
        known = await self.cache.get(key) if self.cache else None
        self.journal.stage("compact", title=title, words=step.words, **({"cached": True} if known else {}))
        if known is not None:
            self.journal.note("summary_cached", title)
            return known, True
        longest = max(_LEAST_OUTPUT, int(step.tokens * _SLACK))
        if late := self.clock.refusal(tokens, longest):
            self.journal.skip("page summaries", f"{late}: passages are used instead")
            raise HearthError(late)
        generated = await self.model.generate(
            "compact",
            self.prompt,
            values,
            shared=("title", "text"),
            max_tokens=max(1, min(longest, self.limits.context - tokens)),
        )
        if self.cache is not None and not generated.cut and generated.text.strip():
            await self.cache.put(key, generated.text)
        return generated.text, not generated.cut

    def _key(self, step: Summarize, values: Mapping[str, str]) -> bytes:
        """Key the summary by all that it depends on; white space and case of the question do not matter.

        It depends on the question's exact words. The owner is part of the key, so that no owner learns from an
        answer's speed what another one has asked.
        """
        question = " ".join(values["question"].split()).casefold()
        page, prompt, asked = step.draft.page, self.prompt, self.journal.call
        return compaction_key(
            [
                asked.owner,
                question,
                page.title,
                str(page.revision),
                values["text"],
                values["words"],
                prompt.name,
                str(prompt.version),
                "\0".join(prompt.pieces),
                self.fingerprint,
            ]
        )

    def _values(self, step: Summarize, chosen: Sequence[int]) -> dict[str, str]:
        return {
            "question": self.journal.question,
            "words": str(step.words),
            "title": step.draft.page.title,
            "text": article_text(step.draft, sorted(chosen)),
        }

    def _supported(self, draft: PageDraft, sentences: list[str], finished: bool) -> list[str]:
        """Keep the sentences that the page's own text supports, once each, and drop an unfinished last one."""
        complete = sentences if finished else sentences[:-1]
        evidence = Evidence.of([(0, draft.page, draft.passages)])
        distinct = {same_words(each): each for each in reversed(complete) if not is_babble(each)}
        kept = [each for each in complete if distinct.get(same_words(each)) is each]
        kept = [each for each in kept if supporting(each, evidence, self.journal.question).pages]
        dropped = [each for each in sentences if not any(each is one for one in kept)]
        if dropped:
            self.journal.note("summary_dropped", {"title": draft.page.title, "sentences": dropped})
        return kept

    async def _fitted(self, step: Summarize, kept: list[str]) -> list[Passage]:
        """Show as many sentences of the summary as the step's tokens hold, as a passage without a heading."""
        counts = await self.model.count([f" {sentence}" for sentence in kept])
        fitting = len(kept)
        while fitting and sum(counts[:fitting]) + _MARKER > step.tokens:
            fitting -= 1
        if fitting < len(kept):
            left_out = {"title": step.draft.page.title, "sentences": kept[fitting:]}
            self.journal.note("summary_cut", left_out)
        return [Passage(0, " ".join(kept[:fitting]))] if fitting else []


def article_text(draft: PageDraft, chosen: Sequence[int]) -> str:
    """Render the chosen passages as plain text with ``== Heading ==`` lines."""
    blocks: list[str] = []
    section = -1
    for index in chosen:
        passage = draft.passages[index]
        heading = draft.page.sections[passage.section].heading
        if passage.section != section and heading:
            blocks.append(f"== {heading} ==")
        section = passage.section
        blocks.append(passage.text)
    return "\n\n".join(blocks)
