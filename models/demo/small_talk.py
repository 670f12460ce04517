"""Plain turns outside every prompt."""

from __future__ import annotations

import random

from asking import ASKING, typed
from names import nickname
from trees import Branch, Tree
from words import ADJECTIVES


def small_talk_tree(rng: random.Random) -> Tree:
    """Plain turns outside every prompt: the model says what it is."""
    me = "I am the small demo model of hearth. Run `hearth pull gemma-4-e2b` for a real one."
    groups: dict[str, list[str]] = ASKING["small_talk"]
    group = rng.choice(list(groups))
    if group == "hello":
        reply = "Hello! " + me
    elif group == "thanks":
        reply = "You are welcome. " + me
    elif group == "can":
        reply = "I answer questions from the wiki. " + me
    else:
        reply = me
    text = rng.choice(groups[group])
    if rng.random() < 0.2:
        text = f"{text} {rng.choice(ADJECTIVES)} {nickname(rng)}"
    text, _ = typed(text, (), rng)
    return Tree("talk", text, [Branch("", reply, (me,))])
