"""Turns outside every task's prompt, alone or within a chat as the memory composes it: the model says what it is."""

from __future__ import annotations

import random

from asking import ASKING, typed
from carriers import composed
from dialogue import HEADINGS
from names import nickname, thing_name
from notes import said_facts, said_idly, said_in_reply
from salad import phrase
from trees import NEXT_MODEL, NEXT_USER, Branch, Tree
from words import ADJECTIVES

from prompts import render

ME = "I am the small demo model of hearth. Run `hearth pull gemma-4-e2b` for a real one."
_OPENINGS = {"hello": "Hello! ", "thanks": "You are welcome. ", "can": "I answer questions from the wiki. "}
# What an owner may have asked of the assistant, in the prompt's own words.
_INSTRUCTIONS = (
    "", "", "", "Be brief.", "Answer in one sentence.", "Be polite.", "Answer in English.", "You are a pirate.",
    "Speak like a teacher.", "Use simple words.",
)  # fmt: skip


def small_talk_tree(rng: random.Random) -> Tree:
    """Small talk as the first turn, or within a chat after `What you know` and turns of both sides."""
    if rng.random() < 0.3:
        return Tree("talk", "", [_branch(rng)])
    prefix = _chat(rng)
    return Tree("talk", prefix, [_branch(rng, within=True) for _ in range(4)])


def _branch(rng: random.Random, within: bool = False) -> Branch:
    groups: dict[str, list[str]] = ASKING["small_talk"]
    group = rng.choice(list(groups))
    if within and rng.random() < 0.4:  # whatever else is said, it knows nothing
        draw = rng.random()
        text = said_idly(rng) if draw < 0.5 else said_facts(rng)[1]
        if draw > 0.8:
            text = composed((thing_name(rng),), rng)
        group = ""
    else:
        text = rng.choice(groups[group])
    if rng.random() < 0.2:
        text = f"{text} {rng.choice(ADJECTIVES)} {nickname(rng)}"
    text, _ = typed(text, (), rng)
    return Branch(text, _OPENINGS.get(group, "") + ME, (ME,))


def _chat(rng: random.Random) -> str:
    """A chat before the user's last message: the core prompt with what is remembered, then turns."""
    blocks = []
    if rng.random() < 0.75:
        blocks.append(render("chat_core", instructions=rng.choice(_INSTRUCTIONS)).strip())
        if rng.random() < 0.25:
            blocks.append(f"{rng.choice(HEADINGS)}\n{said_facts(rng)[2]} User asked about {thing_name(rng)}.")
        if rng.random() < 0.4:
            known = [said_facts(rng) for _ in range(rng.randint(1, 3))]
            blocks.append("\n".join(["What you know:", *(f"- {key}: {fact}" for key, _, fact in known)]))
    turns = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 4))):
        draw = rng.random()
        user = said_facts(rng)[1] if draw < 0.5 else said_idly(rng) if draw < 0.8 else _branch(rng).suffix
        reply = said_in_reply(rng) if rng.random() < 0.5 else ME
        if rng.random() < 0.1:
            reply = f"{phrase(rng).capitalize()}. {ME}"
        turns.append(user + NEXT_MODEL + reply + NEXT_USER)
    return "".join(f"{block}\n\n" for block in blocks) + "".join(turns)
