"""What a user is told who asks again while a question of theirs is still being answered."""

from __future__ import annotations

import random
from collections.abc import Sequence

WAITS: Sequence[str] = (
    "one at a time, please: your last question is still on my desk.",
    "I am still reading up on your previous question.",
    "hold on, page 3 of your last answer is just getting interesting.",
    "my other half-thought belongs to you already.",
    "I can only chew one question of yours at a time.",
    "patience: the index card for your last question has fallen behind the shelf.",
    "still digging. Your shovel is in use.",
    "the librarian in me is still up the ladder for you.",
    "let me finish this sentence first, then the next one is yours.",
    "you are already in line, and right behind yourself.",
    "my cache is warm, but my answer is not done yet.",
    "I have not forgotten you; I am just slow and thorough.",
    "first come, first served, and you came first already.",
    "still following links for you. It is always one more link.",
    "a question in the hand is worth two in the queue.",
    "give me a moment, I am arguing with a footnote about your last question.",
    "your previous question is in the oven; opening the door lets the heat out.",
    "I would fork myself, but one of me is enough for this box.",
    "almost there. For some values of almost.",
    "I am a single small model, not a committee. One moment.",
    "that goes on the pile as soon as the pile is empty: ask again after my answer.",
    "still thinking; thinking harder does not make it faster, I have tried.",
    "the gears are turning. You can nearly hear the fan.",
    "I am mid-page. Interrupting me loses my place.",
    "your last question had a good point, and I am still looking for it.",
    "please keep that thought warm until I am done with the last one.",
    "two questions at once make me answer neither.",
    "I read one token at a time, and answer one question at a time.",
    "not ignoring you, only busy with you.",
    "the wiki is large and I am small; a little more time, please.",
    "I owe you one answer already. Let me pay that first.",
    "still checking whether the page really says so.",
    "good questions take a while, and so did yours.",
    "my train of thought has one carriage, and you are on it.",
    "queueing theory says: not yet.",
    "I am putting the citation on your last answer right now.",
)


class Waits:
    """Deals the messages out like cards: none comes again before all have been there."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._deck: list[str] = []

    def next(self) -> str:
        """One of :data:`WAITS`."""
        if not self._deck:
            self._deck = self._rng.sample(WAITS, len(WAITS))
        return self._deck.pop()
