"""Tasks and facts at the head of a conversation's prompts, kept as they were read while the messages tell the changes.

A changed list or a new fact in front of all messages would break the prefix in the KV cache: with 5,000 tokens of
messages and a model that reads 60 tokens/s, the reply to "I bought the milk" would begin after 80 s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Hashable

from msgspec import Struct

from gateway.memory.types import Block

_MOST_CONVERSATIONS = 1000


class Standing(Struct, frozen=True):
    """The blocks in front of a prompt's messages; ``head`` is the other text there."""

    head: Hashable
    tasks: Block | None
    facts: Block | None


class StandingBlocks:
    """The standing blocks of the prompts of the conversations that were used last. Pure."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Standing] = OrderedDict()

    def keep(self, conversation: str, now: Standing, spoken: Container[int | None]) -> Standing:
        """Return what the conversation's last prompt had, or ``now`` where that no longer serves.

        ``spoken`` are the messages (``seq``) that the prompt has word for word.
        """
        kept = self._kept.get(conversation)
        if kept is None or not _serves(kept, now, spoken):
            kept = self._kept[conversation] = now
        self._kept.move_to_end(conversation)
        if len(self._kept) > _MOST_CONVERSATIONS:
            self._kept.popitem(last=False)
        return kept


def _serves(kept: Standing, now: Standing, spoken: Container[int | None]) -> bool:
    """Whether the head is the same, no fact or task is gone, and messages say what is new or has changed."""
    if kept.head != now.head or not _said(kept.facts).keys() <= _said(now.facts).keys():
        return False
    if not _ids(kept.tasks) <= _ids(now.tasks):
        return False
    return all(
        message in spoken
        for before, after in ((kept.tasks, now.tasks), (kept.facts, now.facts))
        for line, message in _said(after).items()
        if line not in _said(before)
    )


def _said(block: Block | None) -> dict[str, int | None]:
    return block.said if block is not None else {}


def _ids(tasks: Block | None) -> set[str]:
    """The ids in lines such as "[x] T-20261120-03 (user) Buy milk"."""
    return {line.split("] ", 1)[1].split(" ", 1)[0] for line in _said(tasks)}
