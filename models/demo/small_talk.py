"""Turns outside every task's prompt, alone or within a chat as the memory composes it."""

from __future__ import annotations

import random

from chats import make_chat, next_turn, small_talk
from trees import NEXT_MODEL, NEXT_USER, Branch, Tree


def small_talk_tree(rng: random.Random, turns: int) -> Tree:
    """Small talk as the first turn, or what a user says next in a chat of up to `turns` lines."""
    if rng.random() < 0.1:
        text, reply = small_talk(rng)
        return Tree("talk", "", [Branch(text, reply, (reply,))])
    chat = make_chat(rng, rng.randint(0, turns), rng.random() < 0.85)
    tree = Tree("talk", f"{chat.system}\n\n" if chat.system else "")
    tree.prefix += "".join(said + NEXT_MODEL + reply + NEXT_USER for said, reply in chat.turns)
    for _ in range(6):
        text, reply, _ = next_turn(rng, chat.answers)
        tree.branches.append(Branch(text, reply, (reply,)))
    return tree
