"""Read a conversation's memory from the database, count its tokens and compose the prompt."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

import apsw
import msgspec
from msgspec import Struct

from gateway.config.settings import MemorySettings
from gateway.inference.interface import GenerateCall, Inference
from gateway.memory.answers.copies import since_copies, stand_in, without_recited
from gateway.memory.answers.known import known_reply
from gateway.memory.answers.length import ReplyEnd, reply_end
from gateway.memory.answers.requests import Requests
from gateway.memory.compose import (
    HEADINGS,
    Composition,
    Ingredients,
    compose,
    lightened,
    line_text,
    summary_text,
    verbatim,
)
from gateway.memory.events import PostCall
from gateway.memory.history import History, asks_for_told
from gateway.memory.model import MemoryModel, Record
from gateway.memory.pace import Pace
from gateway.memory.planning.budget import make_budget, time_zone
from gateway.memory.planning.situation import Situation
from gateway.memory.planning.standing import Standing, StandingBlocks
from gateway.memory.types import Block, BudgetReport, Character, ContextBudget, LeftOut, Offer
from gateway.models.catalog import FlowDefaults
from gateway.models.prompts import Prompt, PromptSet
from gateway.models.served import ServedModel
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, set_model
from gateway.store.memory.messages import StoredMessage, open_messages, set_tokens
from gateway.store.memory.summaries import Summary, live_summaries
from gateway.vectors.queries import Queries
from model_host.protocol import Message, Sampling

# Quotes from the history take at most one eighth of a prompt.
_HISTORY_SHARE = 8
# Sentences picked from messages that a small model does not see take at most one sixteenth.
_STAND_IN_SHARE = 16
_SEPARATOR = 2  # tokens around them
_RECENT = 8  # the user's messages that a sum may go on from

# A source of prompt blocks, called with the conversation and the user's last message.
BlockSource = Callable[[Conversation, str], Awaitable[Offer]]


async def no_blocks(conversation: Conversation, asked: str) -> Offer:
    return Offer()


class MemoryParts(Struct, frozen=True, kw_only=True):
    """The services and settings that the memory uses."""

    database: Database
    inference: Inference
    prompts: PromptSet
    settings: MemorySettings
    served: ServedModel
    record: Record
    pace: Pace = msgspec.field(default_factory=Pace)
    # To read a conversation's first prompt, or for a small model to reply; 0: no limit.
    target_seconds: float = 0.0
    requests: Requests = Requests()
    queries: Queries | None = None  # None: facts and messages are searched by words alone
    clock: Callable[[], float] = time.time  # Unix seconds

    @property
    def defaults(self) -> FlowDefaults:
        return self.served.current.defaults

    @property
    def model_name(self) -> str:
        return self.served.current.name

    def zone(self, conversation: Conversation) -> tzinfo | None:
        """Whose days the conversation has."""
        return time_zone(conversation.time_zone or self.settings.time_zone)

    def now(self, conversation: Conversation) -> datetime:
        return datetime.fromtimestamp(self.clock(), self.zone(conversation))

    async def budget(self) -> ContextBudget:
        return make_budget(self.settings, (await self.inference.model_info()).context)

    def model(self, conversation: Conversation) -> MemoryModel:
        return MemoryModel(
            self.inference, self.record, self.pace, conversation.owner, conversation.id, self.model_name
        )


# The part of an assistant in a prompt.
CharacterSource = Callable[[MemoryParts, Conversation], Awaitable[Character]]


class Context(Struct, frozen=True, kw_only=True):
    """A conversation as the planner (``situation``) and the model (``composition``) see it."""

    conversation: Conversation
    speaker: str  # the assistant's name
    situation: Situation
    composition: Composition
    quoted: Sequence[str] = ()  # conversations that the prompt quotes from
    answer: str = ""  # the reply, where it needs no model
    after: str = ""  # what is told after the reply

    @property
    def budget(self) -> ContextBudget:
        return self.situation.budget

    def report(self, cached_tokens: int = 0) -> BudgetReport:
        blocks: dict[str, int] = {}
        for block in self.composition.blocks:
            blocks[block.name] = blocks.get(block.name, 0) + block.tokens
        return BudgetReport(
            total=self.composition.total,
            limit=self.budget.limit,
            ceiling=self.budget.ceiling,
            floor=self.budget.floor,
            blocks=blocks,
            left_out=self.composition.left_out,
            cached_tokens=cached_tokens,
        )


@dataclass(frozen=True)
class ContextBuilder:
    """Builds contexts. Counting tokens loads the model."""

    parts: MemoryParts
    character: CharacterSource
    sources: Sequence[BlockSource]
    history: History
    project: BlockSource
    turn_tokens: dict[str, int] = field(default_factory=dict)  # by the model's fingerprint
    standing: StandingBlocks = field(default_factory=StandingBlocks)

    def core_prompt(self) -> Prompt:
        """The template that opens every conversation."""
        return self.parts.prompts.get("chat_core")

    def core_text(self, instructions: str) -> str:
        [core] = self.core_prompt().render(instructions=instructions)
        return core.text.strip()

    def reply_call(self, context: Context, call: PostCall) -> tuple[GenerateCall, ReplyEnd | None]:
        """The model call for a reply, and where the reply ends if the message sets no limit.

        The sampling is the core prompt's, or the model's ``reply_temperature`` without penalties if it has one.
        """
        parts, conversation, most = self.parts, call.conversation, call.max_tokens or context.budget.answer
        end = None
        if call.max_tokens is not None and conversation.kind == "channel":
            end = ReplyEnd.within(most)
        elif call.max_tokens is None and conversation.kind != "code":
            end = reply_end(parts.served.current, parts.settings.reply_tokens, parts.target_seconds)
        chosen = parts.defaults.reply_temperature
        return GenerateCall(
            id=call.id,
            messages=context.composition.messages,
            max_tokens=min(most, context.budget.answer, end.most if end is not None else most),
            sampling=self.core_prompt().sampling if chosen is None else Sampling(temperature=chosen),
            lane=call.lane,
            owner=conversation.owner,
            adapter=call.adapter,
        ), end

    def can_disclose(self, context: Context) -> bool:
        """Whether the model should be told secrets once, for which it prefills its whole prompt.

        Small models can do nothing with them, and others only if the prompt can be read within the target time.
        """
        speed, target = self.parts.inference.health().speed, self.parts.target_seconds
        if self.parts.served.current.small:
            return False
        return speed is None or not target or speed.seconds(context.composition.total, 0) <= target

    async def build(
        self, conversation: Conversation, *, compacting: bool = False, force: bool = False
    ) -> Context:
        """The context of the next reply; ``force`` asks for a compaction that is not due.

        Raises PromptTooLongError, except when ``compacting``, which makes the prompt fit.
        """
        parts = self.parts
        at_least = parts.settings.verbatim_messages if conversation.policy == "ceiling" else 0
        budget = await parts.budget()
        messages, summaries = await parts.database.read(
            lambda c: (open_messages(c, conversation.id, at_least), live_summaries(c, conversation.id))
        )
        messages = await self._count_lines(conversation, messages)
        *before, asked = ["", *(m.text for m in messages if m.role == "user" and not m.failed)][-_RECENT:]
        # Small models go on in the form of a quote, and in the words of a reply that they have repeated.
        small = parts.served.current.small and not compacting
        told = without_recited(messages, parts.requests.told) if small else messages
        sieved = small and conversation.kind == "chat"
        messages_shown = since_copies(told, parts.served.current.languages) if sieved else told
        offers = [await source(conversation, asked) for source in self.sources]
        extra = [block for offer in offers for block in offer.blocks]
        character = await self.character(parts, conversation)
        reflected = [summary for summary in summaries if summary.seq in character.reflected]
        summaries = [summary for summary in summaries if summary.seq not in character.reflected]
        core_text = self.core_text(conversation.instructions)
        # Small models talk about whatever a summary says, so they see one where a message may ask for it. Code goes on.
        standing = (
            compacting
            or conversation.kind == "code"
            or parts.served.current.standing_memory
            or asks_for_told(asked)
        )
        unseen = stand_in(messages, messages_shown, budget.limit // _STAND_IN_SHARE) if standing else ""
        unseen_text = f"{HEADINGS['now']}\n{unseen}"
        core_tokens, unseen_tokens, *counts = await parts.inference.count(
            [core_text, unseen_text, *map(summary_text, summaries)]
        )
        summaries = [
            msgspec.structs.replace(summary, tokens=count)
            for summary, count in zip(summaries, counts, strict=True)
        ]
        turn_tokens = await self._turn()
        shown = [each for each in summaries if standing or each.level == "message"]
        tasks, facts = _named(extra, "tasks"), _named(extra, "facts")
        head = (
            core_text,
            character.biography,
            parts.now(conversation).date(),
            *(each.seq for each in summaries),
        )
        spoken = {message.seq for message in verbatim(messages_shown, at_least)}
        kept = self.standing.keep(conversation.id, Standing(head, tasks, facts), spoken)
        ingredients = Ingredients(
            core=Block("core", core_tokens, core_text),
            # A summary is made of its own conversation alone.
            character=msgspec.structs.replace(character, reflection=None, elsewhere=None)
            if compacting
            else character,
            tasks=kept.tasks,
            facts=kept.facts,
            tasks_now=_named(extra, "tasks_now") if tasks is None or kept.tasks != tasks else None,
            recalled=_named(extra, "recalled"),
            stand_in=Block("stand_in", unseen_tokens, unseen_text) if unseen else None,
            summaries=shown,
            messages=messages_shown,
            begun=len(shown) < len(summaries) or messages[:1] != messages_shown[:1],
            turn_tokens=turn_tokens,
            verbatim=at_least,
            left_out=[
                *_folded(reflected),
                *_dropped(len(messages) - len(told), "answered from what is stored, for a small model"),
                *_dropped(
                    len(told) - len(messages_shown),
                    "from before a small model repeated itself or lost its language",
                ),
                *_dropped(
                    len(summaries) - len(shown),
                    "for a small model, and not asked for by the message",
                    "summaries",
                ),
                *character.left_out,
                *(left for offer in offers for left in offer.left_out),
            ],
        )
        quoted: Sequence[str] = ()
        answer, after = "", next((offer.after for offer in offers if offer.after), "")
        if not compacting:  # what is recalled for one message must not cause a compaction
            code = await self.project(conversation, asked)
            left_out = [*ingredients.left_out, *code.left_out]
            answer = next((offer.answer for offer in (code, *offers) if offer.answer), "")
            if not answer and conversation.kind == "chat":
                plays = bool(conversation.instructions or conversation.assistant)
                languages = parts.served.current.languages
                answer, behind = known_reply(
                    asked, before, parts.now(conversation), small=small, plays=plays, languages=languages
                )
                after = f"{after}\n{behind}".strip()
            ingredients = msgspec.structs.replace(
                ingredients, project=_named(code.blocks, "project"), left_out=left_out
            )
            ingredients, quoted = await self._with_history(ingredients, conversation, asked, budget)
        if not compacting and not summaries and all(message.role == "user" for message in messages):
            ingredients = self._within_time(ingredients, budget)
        # A compaction may need the prompt that does not fit, so it gets a context without a limit.
        unlimited = ContextBudget(context=2**31, ceiling=budget.ceiling, floor=budget.floor, answer=0)
        mind = [each for each in (character.biography, character.reflection, character.elsewhere) if each]
        fixed = core_tokens + sum(block.tokens + 1 for block in [*mind, *extra]) + 2 * turn_tokens + 2
        situation = Situation(
            policy=conversation.policy,
            settings=msgspec.structs.replace(
                parts.settings, time_zone=conversation.time_zone or parts.settings.time_zone
            ),
            messages=[message for message in messages if message.summarized_by is None],
            # The chain has no gaps, but what the reflection stands for takes no room.
            summaries=sorted([*reflected, *summaries], key=lambda each: (each.first, each.seq)),
            reflected=character.reflected,
            now=parts.clock(),
            budget=budget,
            fixed_tokens=fixed,
            turn_tokens=turn_tokens,
            force=force,
        )
        return Context(
            conversation=conversation,
            speaker=character.name,
            situation=situation,
            composition=compose(ingredients, unlimited if compacting else budget),
            quoted=quoted,
            answer=answer,
            after=after,
        )

    async def _with_history(
        self, ingredients: Ingredients, conversation: Conversation, asked: str, budget: ContextBudget
    ) -> tuple[Ingredients, Sequence[str]]:
        """Add quotes that the last message recalls, as far as there is room; return the conversations they are from."""
        room = min(
            budget.limit // _HISTORY_SHARE, budget.limit - compose(ingredients, budget).total - _SEPARATOR
        )
        stood_in = {summary.first for summary in ingredients.summaries if summary.level == "message"}
        lines = verbatim(ingredients.messages, ingredients.verbatim)
        # Word for word, and the last one.
        shown = [m.seq for m in lines if m.seq not in stood_in or m is lines[-1]]
        quotes = await self.history.recall(conversation, asked, shown, room)
        if quotes is None:
            return ingredients, ()
        return msgspec.structs.replace(ingredients, history=quotes.block), quotes.sources

    def _within_time(self, ingredients: Ingredients, budget: ContextBudget) -> Ingredients:
        """Leave out of a conversation's first prompt, which is in no cache, what cannot be read in time."""
        speed, target = self.parts.inference.health().speed, self.parts.target_seconds
        if speed is None or not target:
            return ingredients
        why = f"no time: at {speed.reading:,.0f} tokens/s a first prompt with it takes over {target:g} s"
        return lightened(ingredients, speed.readable(target, 0, budget.limit), f"{why} (ask.target_seconds)")

    async def _count_lines(
        self, conversation: Conversation, messages: list[StoredMessage]
    ) -> list[StoredMessage]:
        """Count imported lines, which have no token counts, and all lines after a change of the model."""
        changed = {conversation.model, conversation.counted_by} != {self.parts.model_name}
        missing = [message for message in messages if message.tokens < 0 or (changed and not message.failed)]
        if not missing and not changed:
            return messages
        counts = await self.parts.inference.count([line_text(m.role, m.speaker, m.text) for m in missing])
        known = {message.seq: count for message, count in zip(missing, counts, strict=True)}

        def store(connection: apsw.Connection) -> None:
            set_tokens(connection, known)
            set_model(connection, conversation.id, self.parts.model_name)

        await self.parts.database.write(store)
        return [msgspec.structs.replace(m, tokens=known.get(m.seq, m.tokens)) for m in messages]

    async def _turn(self) -> int:
        """Tokens that the chat template adds to a turn, measured once per model."""
        inference = self.parts.inference
        fingerprint = (await inference.model_info()).fingerprint
        if fingerprint not in self.turn_tokens:
            short = [Message("user", "a")]
            long = [Message("user", "a"), Message("assistant", "a"), Message("user", "a")]
            difference = await inference.count_prompt(long) - await inference.count_prompt(short)
            [letter] = await inference.count(["a"])
            self.turn_tokens[fingerprint] = max(1, (difference + 1) // 2 - letter)
        return self.turn_tokens[fingerprint]


def _folded(reflected: Sequence[Summary]) -> list[LeftOut]:
    if not reflected:
        return []
    span = f"messages {reflected[0].first} to {reflected[-1].last}"
    return [LeftOut(span, "summarized, and part of the reflection")]


def _dropped(count: int, why: str, what: str = "messages") -> list[LeftOut]:
    return [LeftOut(f"{count} {what}", why)] if count else []


def _named(blocks: Sequence[Block], name: str) -> Block | None:
    """The blocks of that name, joined."""
    found = [block for block in blocks if block.name == name]
    if not found:
        return None
    tokens = sum(block.tokens + 1 for block in found) - 1
    said = {each: message for block in found for each, message in block.said.items()}
    return Block(name, tokens, "\n\n".join(block.text for block in found), said)
