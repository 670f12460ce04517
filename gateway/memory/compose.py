"""The composer: the prompt of the next reply, as a pure function of the conversation's memory and messages.

Blocks are ordered so that consecutive prompts share a long prefix: what never changes, the tasks of the day, what a
compaction changes, facts, then the messages, which only grow at their end; the blocks in front of them are kept while
they can be (:mod:`gateway.memory.planning.standing`). A block is never cut: it is included, or left out and listed with
the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from gateway.base.errors import PromptTooLongError
from gateway.memory.summaries.variables import decoded
from gateway.memory.types import Block, Character, ContextBudget, LeftOut
from gateway.store.memory.messages import MessageRole, StoredMessage
from gateway.store.memory.summaries import EXTRACT, NewSummary, Summary, SummaryLevel
from model_host.protocol import Message, Role, TextPart

# Headings of the summaries, which place them in time.
HEADINGS: dict[SummaryLevel, str] = {
    "reflection": "What you have learned over time:",
    "conversation": "Earlier conversation:",
    "month": "Before today:",
    "today": "Earlier today:",
    "now": "Just before the messages below:",
    "round": "The conversation so far:",
    "message": "[A long message, in short]",
}
# The order of the summaries in the prompt, the most stable level first.
_LEVELS: tuple[SummaryLevel, ...] = ("reflection", "month", "today", "now", "round", "conversation")
# Chat templates want the user to speak first. What stands there is true: not everything left out is summarized.
_SUMMARIZED = "(The messages before this are summarized above.)"
_LEFT_OUT = "(Earlier messages are left out here.)"
_BEGINS = "(The conversation begins here.)"
# Blocks that change with each message: they precede the last one, where they break no prefix.
_BESIDE_THE_LAST = ("history", "recalled", "project", "tasks_now")
# A prompt over the limit drops those, then the oldest messages down to the last _LAST_LINES, then these blocks in this
# order, then further messages.
_DROPPED = (
    "facts",
    "tasks",
    "elsewhere",
    "conversation",
    "month",
    "today",
    "reflection",
    "stand_in",
    "now",
    "round",
    "biography",
)
_LAST_LINES = 8
# Messages are dropped in steps of this share of the limit, so that the next prompts start at the same message and share
# its prefix in the KV cache.
_STEP_SHARE = 0.25
_SEPARATOR_TOKENS = 1  # of the blank line between two blocks


class Ingredients(Struct, frozen=True, kw_only=True):
    """Everything that a prompt may consist of, with token counts.

    ``core``, the ``character`` and ``tasks`` open the prompt, ``facts`` follow the summaries. Code of the ``project``,
    ``recalled`` facts, quotes from the ``history`` and the tasks as they are now precede the last message.
    ``summaries`` are the live ones, with the tokens of :func:`summary_text`; ``messages`` are those of
    :func:`gateway.store.memory.messages.open_messages`, the new one included. ``begun``: some that came before are in
    neither; ``stand_in`` has sentences of theirs. ``turn_tokens`` is what the chat template adds to a turn.
    ``left_out`` lists what exceeded the blocks' own budgets.
    """

    core: Block
    character: Character = Character()
    tasks: Block | None = None
    stand_in: Block | None = None
    facts: Block | None = None
    history: Block | None = None
    recalled: Block | None = None
    project: Block | None = None
    tasks_now: Block | None = None
    summaries: Sequence[Summary] = ()
    messages: Sequence[StoredMessage] = ()
    turn_tokens: int = 6
    verbatim: int = 8
    begun: bool = False
    left_out: Sequence[LeftOut] = ()


class Turn(Struct, frozen=True):
    """One turn of the chat template: consecutive messages of one role, from ``first`` to ``last`` (``seq``)."""

    role: Role
    text: str
    tokens: int
    first: int
    last: int


class Composition(Struct, frozen=True, kw_only=True):
    """A prompt, the blocks it consists of, and what was left out. ``total`` is an upper estimate, in tokens."""

    blocks: list[Block]
    left_out: list[LeftOut]
    turns: list[Turn]
    total: int

    @property
    def messages(self) -> list[Message]:
        return [*self._system(), *(Message(turn.role, turn.text) for turn in self.turns)]

    def instruction_after(self, last: int, instruction: str) -> list[Message]:
        """The same prompt up to the message ``last`` (``seq``), then an instruction instead of the rest.

        It shares its prefix with the conversation's own prompt, so most of it is in the KV cache.
        """
        turns = [turn for turn in self.turns if turn.last <= last]
        if turns and turns[-1].role == "user":
            instruction = f"{turns.pop().text}\n\n{instruction}"
        return [*self._system(), *(Message(t.role, t.text) for t in turns), Message("user", instruction)]

    def _system(self) -> list[Message]:
        parts: list[TextPart] = []
        for block in self.blocks:
            if block.name not in ("messages", *_BESIDE_THE_LAST):
                parts.append(TextPart(("\n\n" if parts else "") + block.text))
        return [Message("system", parts)] if parts else []


def summary_text(summary: NewSummary) -> str:
    """A summary as prompts show it: heading, text, pinned lines."""
    pinned = "\n".join(f"- {line}" for line in summary.pins)
    return "\n".join(part for part in (HEADINGS[summary.level], readable(summary.text), pinned) if part)


def readable(text: str) -> str:
    """A summary's text with the JSON of the policy ``rounds`` written as lines; other text is returned unchanged."""
    value = decoded(text)
    if value is None:
        return text.strip()
    variables = [each.line for each in value.Variables]
    return "\n".join([value.ConversationSummary.strip(), *(["Variables:", *variables] if variables else [])])


def line_text(role: MessageRole, speaker: str, text: str) -> str:
    """A message as prompts show it. The assistant's lines need no name, and with one the model would write it, too."""
    return f"{speaker}: {text}" if speaker and role == "user" else text


def lightened(ingredients: Ingredients, tokens: int, why: str) -> Ingredients:
    """Leave out quotes, recalled facts and facts, in this order, until the prompt has at most ``tokens`` tokens."""
    for name in (*_BESIDE_THE_LAST, "facts"):
        total = _total(ingredients, _optional_blocks(ingredients), _turns(_lines(ingredients), _BEGINS))
        if total > tokens and getattr(ingredients, name) is not None:
            left_out = [*ingredients.left_out, LeftOut(name, why)]
            ingredients = msgspec.structs.replace(ingredients, **{name: None, "left_out": left_out})
    return ingredients


def compose(ingredients: Ingredients, budget: ContextBudget) -> Composition:
    """The prompt, with at most ``budget.limit`` tokens.

    Raises PromptTooLongError when the core and the last message alone exceed the limit.
    """
    optional, lines = _optional_blocks(ingredients), _lines(ingredients)
    no_room: list[LeftOut] = []
    steps = _steps(ingredients, optional, lines, max(1, int(budget.limit * _STEP_SHARE)))
    complete = len(lines)
    while (total := _total(ingredients, optional, _turns(lines, _BEGINS))) > budget.limit:
        dropped = next(steps, None)
        if isinstance(dropped, Block):
            optional.remove(dropped)
            what, tokens = dropped.name, dropped.tokens
        elif dropped is not None:
            what = f"messages {lines[0].first} to {lines[dropped - 1].last}"
            tokens = sum(line.tokens for line in lines[:dropped])
            lines = lines[dropped:]
        else:
            raise PromptTooLongError(
                f"the message and what belongs to it have {total} tokens; the prompt may have {budget.limit}",
                param="text",
                details={"tokens": total, "limit": budget.limit},
            )
        no_room.append(LeftOut(what, f"no room: {tokens} tokens, and the limit is {budget.limit}"))
    left_out = [*_not_considered(ingredients), *no_room]
    opening = _opening(ingredients, optional, everything=len(lines) == complete)
    return _composition(ingredients, optional, _turns(lines, opening), left_out, total)


def _steps(
    ingredients: Ingredients, optional: Sequence[Block], lines: Sequence[Turn], step: int
) -> Iterator[Block | int]:
    """Steps of dropping, in order: a block, or a number of the remaining lines."""
    by_name = {
        name: [block for block in optional if block.name == name] for name in (*_BESIDE_THE_LAST, *_DROPPED)
    }
    for name in _BESIDE_THE_LAST:
        yield from by_name.pop(name)
    old = len(lines) - max(ingredients.verbatim, _LAST_LINES)
    done = 0
    for cut in _cuts(lines, step, old):
        yield cut - done
        done = cut
    for blocks in by_name.values():
        yield from blocks
    for cut in _cuts(lines, step, len(lines) - 1):
        if cut > done:
            yield cut - done
            done = cut


def _cuts(lines: Sequence[Turn], step: int, most: int) -> Iterator[int]:
    """Where the first ``most`` lines may be cut: after every ``step`` tokens, and finally after all of them."""
    used = passed = 0
    for number, line in enumerate(lines[: max(0, most)], 1):
        used += line.tokens + _SEPARATOR_TOKENS
        if number == most or used // step > passed:
            passed = used // step
            yield number


def _composition(
    ingredients: Ingredients, optional: list[Block], turns: list[Turn], left_out: list[LeftOut], total: int
) -> Composition:
    messages = Block(
        "messages",
        sum(turn.tokens + ingredients.turn_tokens for turn in turns),
        "\n\n".join(f"[{turn.role}] {turn.text}" for turn in turns),
    )
    beside = [block for block in optional if block.name in _BESIDE_THE_LAST]
    before = [block for block in optional if block not in beside]
    if beside and turns and turns[-1].role == "user":
        text = "\n\n".join([*(block.text for block in beside), turns[-1].text])
        turns = [*turns[:-1], msgspec.structs.replace(turns[-1], text=text)]
    blocks = [ingredients.core, *before, messages, *beside]
    return Composition(blocks=blocks, left_out=left_out, turns=turns, total=total)


def _optional_blocks(ingredients: Ingredients) -> list[Block]:
    summaries = [
        Block(summary.level, summary.tokens, summary_text(summary))
        for level in _LEVELS
        for summary in ingredients.summaries
        if summary.level == level and _says_something(summary)
    ]
    i, mind = ingredients, ingredients.character
    before = [mind.biography, i.tasks, mind.reflection, mind.elsewhere]
    blocks = [*before, *summaries, i.stand_in, i.facts, i.project, i.recalled, i.history, i.tasks_now]
    return [block for block in blocks if block and block.text]


def _lines(ingredients: Ingredients) -> list[Turn]:
    stand_ins = {summary.first: summary for summary in ingredients.summaries if summary.level == "message"}
    lines: list[Turn] = []
    for message in verbatim(ingredients.messages, ingredients.verbatim):
        stand_in = stand_ins.get(message.seq)
        text = summary_text(stand_in) if stand_in else line_text(message.role, message.speaker, message.text)
        tokens = stand_in.tokens if stand_in else message.tokens
        lines.append(Turn(message.role, text, tokens, message.seq, message.seq))
    return lines


def _opening(ingredients: Ingredients, optional: Sequence[Block], *, everything: bool) -> str:
    """The line before a first line of the assistant. ``everything``: no line was dropped for room."""
    summaries = [summary for summary in ingredients.summaries if summary.level != "message"]
    shown = {block.text for block in optional}
    reflection = ingredients.character.reflection
    if ingredients.character.reflected and reflection is not None and reflection.text not in shown:
        return _LEFT_OUT
    said = [summary_text(summary) for summary in summaries if _says_something(summary)]
    if ingredients.begun or not everything or not shown.issuperset(said) or (summaries and not said):
        return _LEFT_OUT
    return _SUMMARIZED if said or ingredients.character.reflected else _BEGINS


def _says_something(summary: Summary) -> bool:
    return bool(summary.text.strip() or summary.pins)


def _turns(lines: Sequence[Turn], opening: str) -> list[Turn]:
    """Consecutive lines of one role joined into turns; the first turn is a user's, if need be with ``opening``."""
    turns: list[Turn] = []
    for line in lines:
        if turns and turns[-1].role == line.role:
            before = turns.pop()
            text, tokens = f"{before.text}\n{line.text}", before.tokens + 1 + line.tokens
            turns.append(Turn(line.role, text, tokens, before.first, line.last))
        else:
            turns.append(line)
    if turns and turns[0].role == "assistant":
        return [Turn("user", opening, 12, 0, 0), *turns]
    return turns


def verbatim(messages: Sequence[StoredMessage], at_least: int) -> list[StoredMessage]:
    """Every message that no summary covers, and at least the last ``at_least`` ones."""
    spoken = [message for message in messages if not message.failed]
    first_open = next((i for i, message in enumerate(spoken) if message.summarized_by is None), len(spoken))
    return spoken[min(first_open, max(0, len(spoken) - at_least)) :]


def _total(ingredients: Ingredients, optional: Sequence[Block], turns: Sequence[Turn]) -> int:
    blocks = [ingredients.core, *optional]
    return (
        sum(block.tokens + _SEPARATOR_TOKENS for block in blocks)
        + sum(turn.tokens + ingredients.turn_tokens for turn in turns)
        + 2 * ingredients.turn_tokens  # the system's turn, and the opening of the reply
    )


def _not_considered(ingredients: Ingredients) -> list[LeftOut]:
    """Notes on the parts that the prompt leaves out by design."""
    spoken = {message.seq for message in verbatim(ingredients.messages, ingredients.verbatim)}
    failed = [message for message in ingredients.messages if message.failed]
    left_out = [LeftOut(f"message {message.seq}", "it failed") for message in failed]
    for summary in ingredients.summaries:
        if summary.level != "message":
            left_out.append(
                LeftOut(
                    f"messages {summary.first} to {summary.last}",
                    f"{'extracted' if summary.prompt_name == EXTRACT else 'summarized'}: {summary.level}",
                )
            )
        elif summary.first in spoken:
            extracted = summary.prompt_name in ("", EXTRACT)
            what = "sentences picked from it stand" if extracted else "its summary stands"
            left_out.append(LeftOut(f"message {summary.first}", f"too long: {what} in for it"))
    return [*left_out, *ingredients.left_out]
