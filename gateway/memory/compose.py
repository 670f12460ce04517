"""The composer: the prompt of the next reply, as a pure function of what is remembered and what was said.

Blocks stand in the order of their stability, so that a prompt shares as long a beginning with the one before it
as it can: what never changes, what a compaction changes, what a new fact changes, then the messages, which only
grow at their end. Nothing is cut within a block: it is in, or it is left out and listed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from gateway.base.errors import PromptTooLongError
from gateway.memory.types import Block, ContextBudget, LeftOut
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary, SummaryLevel
from model_host.protocol import Message, Role, TextPart

# Before the summaries of a level; what a reader of the prompt needs to place them in time.
HEADINGS: dict[SummaryLevel, str] = {
    "reflection": "What you have learned over time:",
    "conversation": "Earlier conversation:",
    "month": "Before today:",
    "today": "Earlier today:",
    "now": "Just before the messages below:",
    "round": "The conversation so far:",
    "message": "[A long message, in short]",
}
# The order of the chain's levels in the prompt, the most stable first.
_LEVELS: tuple[SummaryLevel, ...] = ("reflection", "month", "today", "now", "round", "conversation")
# Templates want the user to speak first.
_RESUMED = "(The messages before this are summarized above.)"
# What leaves the prompt when it is over the limit, the first to go first: what was recalled, then the oldest messages
# but for the last ones, which nobody could do without, then these blocks, then messages again.
_DROPPED = (
    "facts",
    "tasks",
    "conversation",
    "month",
    "today",
    "reflection",
    "now",
    "round",
    "persona",
)
_LAST_LINES = 8
# Lines go in steps of such a share of the limit, counted from the first of them, so that the next prompts begin where
# this one does and share what the model has read.
_STEP_SHARE = 0.25
_SEPARATOR_TOKENS = 1  # of the blank line between two blocks


class _Variable(Struct):
    name: str
    type: str
    description: str


class _CodeSummary(Struct):
    """The JSON of the policy ``rounds``, with the field names of its prompts."""

    ConversationSummary: str
    Variables: list[_Variable] = []


class Ingredients(Struct, frozen=True, kw_only=True):
    """All that a prompt may be made of. Texts come with their token counts, in blocks.

    ``core`` and ``persona`` open the prompt, ``tasks`` and ``facts`` follow the summaries, ``recalled`` stands
    right before the last message. ``summaries`` are the live ones, ``messages`` those of
    :func:`gateway.store.memory.messages.open_messages`, the new one included. ``counted`` has the tokens of each
    summary
    as :func:`summary_text` writes it. ``turn_tokens`` is what the chat template adds to a turn. ``left_out`` is what
    the blocks' own budgets had no room for.
    """

    core: Block
    persona: Block | None = None
    tasks: Block | None = None
    facts: Block | None = None
    recalled: Block | None = None
    summaries: Sequence[Summary] = ()
    messages: Sequence[StoredMessage] = ()
    counted: dict[int, int] = {}
    turn_tokens: int = 6
    verbatim: int = 8
    left_out: Sequence[LeftOut] = ()
    named: bool = False  # lines carry their speaker's name: several people are in the conversation


class Turn(Struct, frozen=True):
    """One turn of the chat template: the lines of one side in a row, from ``first`` to ``last`` (``seq``)."""

    role: Role
    text: str
    tokens: int
    first: int
    last: int


class Composition(Struct, frozen=True, kw_only=True):
    """A prompt, the blocks it consists of, and what is not in it. ``total`` is in tokens and rather too high."""

    blocks: list[Block]
    left_out: list[LeftOut]
    turns: list[Turn]
    total: int

    @property
    def messages(self) -> list[Message]:
        """The prompt for the model."""
        return [*self._system(), *(Message(turn.role, turn.text) for turn in self.turns)]

    def instruction_after(self, last: int, instruction: str) -> list[Message]:
        """The same prompt up to the message ``last`` (``seq``), then an instruction instead of the rest.

        Its tokens are those of the conversation's own prompt as far as they go, so the model has read them.
        """
        kept = [turn for turn in self.turns if turn.last <= last]
        if kept and kept[-1].role == "user":
            text = f"{kept[-1].text}\n\n{instruction}"
            return [*self._system(), *(Message(t.role, t.text) for t in kept[:-1]), Message("user", text)]
        return [*self._system(), *(Message(t.role, t.text) for t in kept), Message("user", instruction)]

    def _system(self) -> list[Message]:
        parts: list[TextPart] = []
        for block in self.blocks:
            if block.name not in ("messages", "recalled"):
                parts.append(TextPart(("\n\n" if parts else "") + block.text))
        return [Message("system", parts)] if parts else []


def summary_text(summary: Summary) -> str:
    """A summary as it stands in a prompt: heading, text, and the lines that are pinned to it."""
    pinned = "\n".join(f"- {line}" for line in summary.pins)
    return "\n".join(part for part in (HEADINGS[summary.level], readable(summary.text), pinned) if part)


def readable(text: str) -> str:
    """A summary's text for people and models: JSON with variables becomes lines, other text stays as it is."""
    try:
        value = msgspec.json.decode(text, type=_CodeSummary)
    except (msgspec.DecodeError, RecursionError):
        return text.strip()
    variables = [f"{each.name} ({each.type}): {each.description}" for each in value.Variables]
    return "\n".join([value.ConversationSummary.strip(), *(["Variables:", *variables] if variables else [])])


def line_text(message: StoredMessage, named: bool) -> str:
    """A message as it stands in a prompt."""
    return f"{message.speaker}: {message.text}" if named and message.role == "user" else message.text


def compose(ingredients: Ingredients, budget: ContextBudget) -> Composition:
    """The prompt, of at most ``budget.limit`` tokens.

    Raises PromptTooLongError when the last line alone, with the core, is over the limit.
    """
    optional, lines = _optional_blocks(ingredients), _lines(ingredients)
    no_room: list[LeftOut] = []
    steps = _steps(ingredients, optional, lines, max(1, int(budget.limit * _STEP_SHARE)))
    while (total := _total(ingredients, optional, _turns(lines))) > budget.limit:
        gone = next(steps, None)
        if isinstance(gone, Block):
            optional.remove(gone)
            no_room.append(
                LeftOut(gone.name, f"no room: {gone.tokens} tokens, and the limit is {budget.limit}")
            )
        elif gone is not None:
            tokens = sum(line.tokens for line in lines[:gone])
            what = f"messages {lines[0].first} to {lines[gone - 1].last}"
            no_room.append(LeftOut(what, f"no room: {tokens} tokens, and the limit is {budget.limit}"))
            lines = lines[gone:]
        else:
            raise PromptTooLongError(
                f"the message and what belongs to it have {total} tokens; the prompt may have {budget.limit}",
                param="text",
                details={"tokens": total, "limit": budget.limit},
            )
    left_out = [*_not_considered(ingredients), *no_room]
    return _composition(ingredients, optional, _turns(lines), left_out, total)


def _steps(
    ingredients: Ingredients, optional: Sequence[Block], lines: Sequence[Turn], step: int
) -> Iterator[Block | int]:
    """What to leave out, one after the other: a block, or so many of the lines that are left."""
    by_name = {name: [block for block in optional if block.name == name] for name in ("recalled", *_DROPPED)}
    yield from by_name.pop("recalled")
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
    """Where the first ``most`` lines can be cut: behind every ``step`` tokens, and at last behind all of them."""
    used = passed = 0
    for number, line in enumerate(lines[: max(0, most)], 1):
        used += line.tokens + _SEPARATOR_TOKENS
        if number == most or used // step > passed:
            passed = used // step
            yield number


def _composition(
    ingredients: Ingredients, optional: list[Block], turns: list[Turn], left_out: list[LeftOut], total: int
) -> Composition:
    spoken = Block(
        "messages",
        sum(turn.tokens + ingredients.turn_tokens for turn in turns),
        "\n\n".join(f"[{turn.role}] {turn.text}" for turn in turns),
    )
    before = [block for block in optional if block.name != "recalled"]
    recalled = [block for block in optional if block.name == "recalled"]
    return Composition(
        blocks=[ingredients.core, *before, spoken, *recalled],
        left_out=left_out,
        turns=_with_recalled(turns, recalled),
        total=total,
    )


def _optional_blocks(ingredients: Ingredients) -> list[Block]:
    summaries = [
        Block(summary.level, ingredients.counted.get(summary.seq, summary.tokens), summary_text(summary))
        for level in _LEVELS
        for summary in ingredients.summaries
        if summary.level == level and (summary.text.strip() or summary.pins)
    ]
    before = [ingredients.persona] if ingredients.persona else []
    after = [block for block in (ingredients.tasks, ingredients.facts, ingredients.recalled) if block]
    return [block for block in [*before, *summaries, *after] if block.text]


def _lines(ingredients: Ingredients) -> list[Turn]:
    """The messages that belong into the prompt, each a turn of its own."""
    stand_ins = _stand_ins(ingredients)
    lines: list[Turn] = []
    for message in _verbatim(ingredients):
        stand_in = stand_ins.get(message.seq)
        text = summary_text(stand_in) if stand_in else line_text(message, ingredients.named)
        tokens = ingredients.counted.get(stand_in.seq, stand_in.tokens) if stand_in else message.tokens
        lines.append(Turn(message.role, text, tokens, message.seq, message.seq))
    return lines


def _turns(lines: Sequence[Turn]) -> list[Turn]:
    """Lines of one side in a row joined to one turn, a user's turn first."""
    turns: list[Turn] = []
    for line in lines:
        if turns and turns[-1].role == line.role:
            before = turns.pop()
            text, tokens = f"{before.text}\n{line.text}", before.tokens + 1 + line.tokens
            turns.append(Turn(line.role, text, tokens, before.first, line.last))
        else:
            turns.append(line)
    return _opened(turns)


def _stand_ins(ingredients: Ingredients) -> dict[int, Summary]:
    """Summaries of single messages, by the message they stand in for."""
    return {summary.first: summary for summary in ingredients.summaries if summary.level == "message"}


def _verbatim(ingredients: Ingredients) -> list[StoredMessage]:
    """Every message that no summary covers, and at least the last ``verbatim`` ones, from a user's line on."""
    spoken = [message for message in ingredients.messages if not message.failed]
    first_open = next((i for i, message in enumerate(spoken) if message.summarized_by is None), len(spoken))
    return spoken[min(first_open, max(0, len(spoken) - ingredients.verbatim)) :]


def _opened(turns: list[Turn]) -> list[Turn]:
    if turns and turns[0].role == "assistant":
        return [Turn("user", _RESUMED, 12, 0, 0), *turns]
    return turns


def _with_recalled(turns: list[Turn], recalled: list[Block]) -> list[Turn]:
    """What was recalled for the last message stands right before it, where it spoils no shared beginning."""
    last = turns[-1] if turns else None
    if last is None or last.role != "user" or not recalled:
        return turns
    return [
        *turns[:-1],
        Turn(last.role, f"{recalled[0].text}\n\n{last.text}", last.tokens, last.first, last.last),
    ]


def _total(ingredients: Ingredients, optional: Sequence[Block], turns: Sequence[Turn]) -> int:
    blocks = [ingredients.core, *optional]
    return (
        sum(block.tokens + _SEPARATOR_TOKENS for block in blocks)
        + sum(turn.tokens + ingredients.turn_tokens for turn in turns)
        + 2 * ingredients.turn_tokens  # the system's turn, and the opening of the reply
    )


def _not_considered(ingredients: Ingredients) -> list[LeftOut]:
    """What is not in the prompt because it is not meant to be."""
    spoken = {message.seq for message in _verbatim(ingredients)}
    failed = [message for message in ingredients.messages if message.failed]
    left_out = [LeftOut(f"message {message.seq}", "it failed") for message in failed]
    for summary in ingredients.summaries:
        if summary.level != "message":
            left_out.append(
                LeftOut(f"messages {summary.first} to {summary.last}", f"summarized: {summary.level}")
            )
        elif summary.first in spoken:
            what = "its summary stands" if summary.prompt_name else "sentences picked from it stand"
            left_out.append(LeftOut(f"message {summary.first}", f"too long: {what} in for it"))
    return [*left_out, *ingredients.left_out]
