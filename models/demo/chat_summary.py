"""Summaries of chats between `User` and `Assistant`, as the memory asks for them: the user's lines word for word.

Anything may stand in a chat, so the summary quotes instead of telling anew. What the demo model says of itself, what
it gives back to the user, and small talk are left out; a summary that stands before the lines is repeated.
"""

from __future__ import annotations

import random

import articles
from asking import ASKING
from chats import HEADINGS, asked_of_self, earlier, small_talk, told
from dialogue import CHATTER, FRESH_TURNS, TURNS, line_of, summary_prompt
from names import person_name, thing_name
from salad import phrase
from sayings import ME, request, said_in_chat, said_of_self
from trees import Branch, Tree

_SPEAKERS = ["User", "Assistant"]
_IDLE = sorted({*CHATTER, *ASKING["small_talk"]["hello"], *ASKING["small_talk"]["thanks"]})  # nothing to keep


def chat_tree(rng: random.Random, held_out: bool, turns: int) -> Tree:
    """A chat of about `turns` lines, perhaps behind the summary of what was before, with its summary."""
    fresh = held_out and rng.random() < articles.FRESH_SHARE
    lines: list[str] = []
    kept: list[str] = []
    if rng.random() < 0.25:
        _open_with_summary(rng, lines, kept)
    begin = rng.random() < 0.15  # a part of a longer chat may begin with the assistant
    for number in range(turns):
        if (number + begin) % 2:
            text, report = _assistant_line(rng, held_out, lines)
            lines.append(f"Assistant: {text}")
        else:
            text, report = _user_line(rng, held_out, fresh)
            lines.append(f"User: {text}")
        if report:
            kept.append(report)
    if not kept:
        return chat_tree(rng, held_out, turns)
    if rng.random() < 0.3:
        lines.append("")  # as parts of a longer chat end
    return Tree("chat", summary_prompt(rng, lines), [Branch("", " ".join(kept), tuple(kept))])


def _open_with_summary(rng: random.Random, lines: list[str], kept: list[str]) -> None:
    before = earlier(rng)
    lines.append(rng.choice(HEADINGS) + rng.choice((" ", "\n")) + before)
    kept.append(before)
    if rng.random() < 0.4:
        lines.append(ME.split(". ")[1])
    for _ in range(rng.choice((0, 0, 1, 2))):  # sentences that were pinned to it
        pin = said_in_chat(rng).text.rstrip(".") + "."
        lines.append(pin)
        kept.append(pin)


def _user_line(rng: random.Random, held_out: bool, fresh: bool) -> tuple[str, str]:
    """What a user writes, and what of it is kept."""
    draw = rng.random()
    if draw < 0.12:
        text = rng.choice(_IDLE)
    elif draw < 0.2:
        text = small_talk(rng)[0] if rng.random() < 0.5 else asked_of_self(rng)
    elif draw < 0.6:
        text = said_in_chat(rng, held_out, fresh).text
    elif draw < 0.75:
        text = request(rng, held_out)
    else:
        text, _ = line_of(rng, held_out, "User", _SPEAKERS, FRESH_TURNS if fresh else TURNS)
    if text.lower().strip("?!. ") in _IDLE:
        return text, ""
    if rng.random() < 0.08:
        text = f"{text.rstrip('.?!')}. {said_in_chat(rng, held_out, fresh).text}"
    return text, told(text)


def _assistant_line(rng: random.Random, held_out: bool, lines: list[str]) -> tuple[str, str]:
    """What the assistant writes behind `lines`, and what of it is kept."""
    draw = rng.random()
    said = [line.removeprefix("User: ") for line in lines if line.startswith("User: ")]
    if draw < 0.12 and said:
        return f"You said: {rng.choice(said)}", ""
    if draw < 0.16:
        return f"I noted: {said_of_self(rng, held_out).fact}", ""
    if draw < 0.7:
        return rng.choice(
            ("", "", "Hello! ", "You are welcome. ", "I answer questions from the wiki. ")
        ) + ME, ""
    if draw < 0.8:
        return rng.choice(("The wiki does not say.", "OK.", "Noted.", "What else?")), ""
    name = thing_name(rng, held_out)
    sentences = (f"{name} was made by {person_name(rng, held_out)}.", f"{name} is {phrase(rng)}.")
    text = rng.choice((*sentences, f"{phrase(rng).capitalize()}."))
    return text + rng.choice((" [1]", "")), told(text, "Assistant")
