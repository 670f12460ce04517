"""Chats as the memory composes them: what is remembered stands before the turns, each block under its heading.

The assistant of these chats is the demo model: it says what it is, and finds again what the user told it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from asking import ASKING, typed
from carriers import composed
from names import nickname, thing_name
from salad import phrase
from sayings import ME, Saying, asked_of_self, reply_of_assistant, request, said_in_chat, said_of_self
from words import ADJECTIVES, VERBS

from prompts import render

# Before what the memory has summarized.
HEADINGS = ("Earlier today:", "Before today:", "Just before the messages below:", "The conversation so far:")
_RESUMED = "(The messages before this are summarized above.)"
_OPENINGS = {"hello": "Hello! ", "thanks": "You are welcome. ", "can": "I answer questions from the wiki. "}
# What an owner may have asked of the assistant, in the prompt's own words.
_INSTRUCTIONS = (
    "", "", "", "", "", "", "Be brief.", "Answer in one sentence.", "Be polite.", "Answer in English.",
    "You are a pirate.", "Speak like a teacher.", "Use simple words.",
)  # fmt: skip
_ASKS_TASKS = (
    "what do I still have to do?", "what are my tasks?", "what is on my list?", "which tasks are open?",
    "what must I do today?", "what is left to do?", "show my tasks", "my tasks?", "what do I have to do?",
)  # fmt: skip
_OPEN = (" ", ">", "?")


@dataclass
class Chat:
    """`system` before the turns, (user, assistant) `turns`, and the `answers` to questions about what both hold."""

    system: str = ""
    turns: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)


def small_talk(rng: random.Random) -> tuple[str, str]:
    """Small talk and its reply."""
    groups: dict[str, list[str]] = ASKING["small_talk"]
    group = rng.choice(list(groups))
    text = rng.choice(groups[group])
    if rng.random() < 0.15:
        text = f"{text} {rng.choice(ADJECTIVES)} {nickname(rng)}"
    return typed(text, (), rng)[0], _OPENINGS.get(group, "") + ME


def next_turn(rng: random.Random, answers: dict[str, str]) -> tuple[str, str, Saying | None]:
    """What a user says next, the reply, and the saying where it was one. `answers`: to what can be asked by now."""
    draw = rng.random()
    if draw < 0.3:
        saying = said_in_chat(rng)
        return saying.text, ME, saying
    if draw < 0.5:
        return *small_talk(rng), None
    if draw < 0.72 and answers:
        answer = rng.choice(sorted(set(answers.values())))
        question = rng.choice([q for q, a in answers.items() if a == answer])
        return _asked(question, rng), answer, None
    if draw < 0.82:
        question = asked_of_self(rng) if rng.random() < 0.9 else rng.choice(_ASKS_TASKS)
        return _asked(question, rng), answers.get(question, ME), None
    text = composed((thing_name(rng),), rng) if draw > 0.97 else request(rng)
    return _asked(text, rng), ME, None


def _asked(question: str, rng: random.Random) -> str:
    """As it is typed, the names as they are."""
    draw = rng.random()
    if draw < 0.35:
        question = question[0].upper() + question[1:]
    elif draw < 0.45:
        question = question.lower()
    return question.removesuffix("?") if rng.random() < 0.3 else question


def make_chat(rng: random.Random, exchanges: int, composed_by_memory: bool = True) -> Chat:
    """A chat of so many exchanges, as it stands before the user's next message."""
    chat = Chat()
    noted = (
        [said_of_self(rng) for _ in range(rng.choice((0, 0, 1, 2, 3, 5, 8)))] if composed_by_memory else []
    )
    noted = list({saying.key: saying for saying in noted}.values())
    titles = _task_list(rng) if composed_by_memory and rng.random() < 0.45 else []
    chat.answers = {a: f"I noted: {saying.fact}" for saying in noted for a in saying.asks}
    if unfinished := [title for mark, title in titles if mark in _OPEN]:
        chat.answers |= dict.fromkeys(_ASKS_TASKS, "On your list: " + "; ".join(unfinished[:4]))
    for _ in range(exchanges):
        text, reply, saying = next_turn(rng, chat.answers)
        if saying:
            noting = saying.fact and composed_by_memory and rng.random() < 0.5
            if noting:  # what was known before under this key is gone
                gone = {f"I noted: {old.fact}" for old in noted if old.key == saying.key}
                chat.answers = {ask: reply for ask, reply in chat.answers.items() if reply not in gone}
                noted.append(saying)
            chat.answers |= dict.fromkeys(saying.asks, f"You said: {text}")
        if rng.random() < 0.12:  # another model was here before
            reply = reply_of_assistant(rng) if rng.random() < 0.7 else f"{phrase(rng).capitalize()}. {ME}"
        chat.turns.append((text, reply))
    if composed_by_memory:
        chat.system = _system(rng, titles, noted, chat)
    return chat


def _task_list(rng: random.Random) -> list[tuple[str, str]]:
    """Marks and titles."""
    return [
        (rng.choice((" ", " ", ">", "?", "x", "-")), f"{rng.choice(VERBS)} {phrase(rng)}")
        for _ in range(rng.choice((1, 2, 3, 5)))
    ]


def _system(rng: random.Random, titles: list[tuple[str, str]], noted: list[Saying], chat: Chat) -> str:
    """The blocks in the memory's order, an empty line between them."""
    blocks = [render("chat_core", instructions=rng.choice(_INSTRUCTIONS)).strip()]
    if rng.random() < 0.2:
        blocks.append(f"{rng.choice(HEADINGS)}\n{earlier(rng)}")
        if chat.turns and rng.random() < 0.3:
            gone, reply = chat.turns[0]
            chat.turns[0] = (_RESUMED, reply)
            chat.answers = {ask: known for ask, known in chat.answers.items() if known != f"You said: {gone}"}
    if titles:
        day = f"T-2026{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
        lines = [f"[{mark}] {day}-{n:02d} (user) {title}" for n, (mark, title) in enumerate(titles, 1)]
        if rng.random() < 0.2:
            lines.insert(1, f"  [ ] {day}-01.c1 {rng.choice(VERBS)} {phrase(rng)}")
        blocks.append("\n".join(["Tasks of today:", *lines]))
    if noted:
        newest = {saying.key: saying.fact for saying in noted}
        blocks.append("\n".join(["What you know:", *(f"- {k}: {v}" for k, v in reversed(newest.items()))]))
    return "\n\n".join(blocks)


def earlier(rng: random.Random) -> str:
    """A summary of a chat, as this model writes them."""
    return " ".join(
        told(said_in_chat(rng).text if rng.random() < 0.7 else request(rng)) for _ in range(rng.randint(1, 4))
    )


def told(line: str, speaker: str = "User") -> str:
    """How a summary of a chat reports a line: word for word, its first sentence."""
    first = _first_sentence(line)
    verb = "asked" if first.endswith("?") else "said"
    return f"{speaker} {verb}: {first}" + ("" if first[-1] in ".?!" else ".")


def _first_sentence(line: str) -> str:
    ends = [i for mark in (". ", "? ", "! ", "\n") if (i := line.find(mark) + 1) > 0]
    return line[: min(ends)].strip() if ends else line.strip()
