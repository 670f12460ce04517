"""Seeded batches of training rows, packed trees with their masks' coordinates."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from chat_summary import chat_tree
from dialogue import history_tree
from notes import facts_tree, tasks_tree
from numpy.typing import NDArray
from small_talk import small_talk_tree
from tasks import answer_tree, compact_tree
from terms import terms_tree
from tokenizer import BOS, END_TURN, PAD, TURN, Tokenizer
from trees import Tree

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Stage:
    """Sizes of the examples of a stage and its rows: `rows` of `length` tokens a step."""

    rows: int
    length: int
    pages: tuple[int, ...]
    facts: tuple[int, ...]
    branches: int
    compact: tuple[int, ...]
    turns: tuple[int, ...]
    # Shares of terms, answer, compaction, history, chat summary, facts, tasks and small talk by number of trees.
    shares: tuple[float, ...]


STAGES = {
    "copy": Stage(
        12, 384, (1, 1, 2), (1, 2), 4, (1, 2), (2, 3), (0.15, 0.44, 0.24, 0.12, 0.0, 0.01, 0.01, 0.03)
    ),
    "short": Stage(
        9,
        512,
        (1, 1, 2, 2, 3),
        (1, 2, 3, 3),
        6,
        (1, 2, 3, 4),
        (2, 3, 4, 5, 6),
        (0.16, 0.44, 0.22, 0.09, 0.03, 0.03, 0.02, 0.01),
    ),
    "mixed": Stage(
        7,
        704,
        (1, 1, 2, 2, 3),
        (1, 2, 3, 4, 5),
        6,
        (1, 2, 2, 3, 4, 6),
        (2, 4, 6, 8, 10, 12),
        (0.16, 0.38, 0.23, 0.1, 0.05, 0.04, 0.03, 0.01),
    ),
    "long": Stage(
        5,
        1024,
        (1, 1, 2, 2, 3),
        (1, 2, 3, 4, 6, 8, 10),
        10,
        (1, 2, 3, 4, 6, 8, 12),
        (4, 6, 8, 10, 12),
        (0.25, 0.34, 0.2, 0.09, 0.05, 0.03, 0.03, 0.01),
    ),
    # The last two take turns: short rows are twice as fast a token.
    "terse": Stage(
        8,
        512,
        (1, 1, 2, 2, 3),
        (1, 2, 3),
        6,
        (1, 1, 2, 2, 3, 3, 4),
        (2, 3, 4, 6, 8, 8, 10, 12),
        (0.3, 0.22, 0.18, 0.06, 0.06, 0.06, 0.06, 0.06),
    ),
    "wide": Stage(
        4,
        1024,
        (1, 1, 2, 2, 3),
        (3, 4, 6, 8, 10),
        10,
        (3, 4, 6, 8),
        (8, 10, 12),
        (0.0, 0.42, 0.25, 0.07, 0.06, 0.05, 0.06, 0.09),
    ),
}


def make_tree(rng: random.Random, stage: Stage, held_out: bool = False, job: str = "") -> Tree:
    """One tree of a job drawn by the stage's shares, or of the job asked for."""
    jobs = ("terms", "answer", "compact", "history", "chat", "facts", "tasks", "talk")
    job = job or rng.choices(jobs, stage.shares)[0]
    if job == "terms":
        return terms_tree(rng, held_out, stage.branches + 4)
    if job == "answer":
        facts = rng.choice(stage.facts)
        # Among many facts one looks like an answer more easily.
        refusals = 0.26 if facts < 4 else 0.3
        return answer_tree(rng, held_out, rng.choice(stage.pages), facts, stage.branches, refusals)
    if job == "compact":
        return compact_tree(rng, held_out, rng.choice(stage.compact), 1 if held_out else stage.branches)
    if job in ("history", "chat"):
        return (chat_tree if job == "chat" else history_tree)(rng, held_out, rng.choice(stage.turns))
    if job == "facts":
        return facts_tree(rng, held_out, 1 if held_out else 3)
    if job == "tasks":
        return tasks_tree(rng, held_out, 1 if held_out else 3)
    return small_talk_tree(rng, rng.choice(stage.turns))


@dataclass(frozen=True)
class Encoded:
    """A tree as parallel token columns; `branch` is 0 in the shared beginning; `goal` is -1 where nothing follows."""

    ids: list[int]
    positions: list[int]
    branch: list[int]
    goal: list[int]
    supervised: list[float]


def encode_tree(tree: Tree, tokenizer: Tokenizer) -> Encoded:
    """Token columns of a tree in Gemma's turn format."""
    enc = tokenizer.encode
    turns = ("user\n" + tree.prefix).split("<end_of_turn>\n<start_of_turn>")
    prefix = [BOS, TURN, *enc(turns[0])]
    for turn in turns[1:]:
        prefix += [END_TURN, *enc("\n"), TURN, *enc(turn)]
    n = len(prefix)
    [dot] = enc(".")
    out = Encoded(list(prefix), list(range(n)), [0] * n, [*prefix[1:], -1], [0.0] * n)
    opening = [END_TURN, *enc("\n"), TURN, *enc("model\n")]
    for number, b in enumerate(tree.branches, 1):
        asked = [*enc(b.suffix), *opening]
        reply = [*enc(b.target), END_TURN]
        ids = [*asked, *reply]
        goal = [*ids[1:], -1]
        weight = [0.0] * (len(asked) - 1) + [1.0] * len(reply) + [0.0]
        # The first tokens of a reply choose the sentence or the name; what follows is copying.
        for i in range(len(asked) - 1, min(len(asked) + 4, len(weight) - 1)):
            weight[i] = 2.0
        if tree.job in ("history", "chat"):  # a sentence's first tokens choose the line that it reports
            for i in range(len(asked), len(ids) - 1):
                if dot in ids[i - 2 : i + 1]:
                    weight[i] = 2.0
        if tree.job == "terms":  # a name's end matters as much as its beginning
            weight[len(asked) + 4 : -1] = [2.0] * len(weight[len(asked) + 4 : -1])
        if b.pages:
            weight[-4] = 2.0  # the page number of the final citation
        out.ids.extend(ids)
        out.positions.extend(range(n, n + len(ids)))
        out.branch.extend([number] * len(ids))
        out.goal.extend(goal)
        out.supervised.extend(weight)
    return out


@dataclass(frozen=True)
class Batch:
    """Rows [rows, length]: token ids, positions, tree and branch numbers, next ids and loss weights."""

    ids: Ints
    positions: Ints
    tree: Ints
    branch: Ints
    goal: Ints
    weight: NDArray[np.float32]


def pack(trees: list[Encoded], rows: int, length: int, context_weight: float, rng: random.Random) -> Batch:
    """Fill rows with trees, first fit; a tree that fits nowhere is dropped, space left over is padding."""
    shape = (rows, length)
    ids, goal = np.full(shape, PAD, np.int32), np.full(shape, -1, np.int32)
    positions, tree, branch = (
        np.zeros(shape, np.int32),
        np.full(shape, -1, np.int32),
        np.zeros(shape, np.int32),
    )
    weight = np.zeros(shape, np.float32)
    used = [0] * rows
    for number, e in enumerate(trees):
        n = len(e.ids)
        row = next((r for r in range(rows) if used[r] + n <= length), -1)
        if row < 0:
            continue
        at = slice(used[row], used[row] + n)
        ids[row, at], positions[row, at], branch[row, at] = e.ids, e.positions, e.branch
        tree[row, at], goal[row, at] = number, e.goal
        w = np.asarray(e.supervised, np.float32)
        if context_weight:
            for i in range(n):
                if w[i] == 0.0 and e.branch[i] == 0 and e.goal[i] >= 0 and rng.random() < 0.3:
                    w[i] = context_weight
        weight[row, at] = w
        used[row] += n
    return Batch(ids, positions, tree, branch, goal, weight)


def make_batch(tokenizer: Tokenizer, stage: Stage, seed: int, context_weight: float) -> Batch:
    """The batch of a seed; the same arguments give the same batch."""
    rng = random.Random(seed)
    trees: list[Encoded] = []
    room = stage.rows * stage.length
    while room > 0:
        tree = make_tree(rng, stage)
        encoded = encode_tree(tree, tokenizer)
        while len(encoded.ids) > stage.length and len(tree.branches) > 1:
            tree.branches.pop()  # a long background is worth a row even with few questions
            encoded = encode_tree(tree, tokenizer)
        if len(encoded.ids) <= stage.length:
            trees.append(encoded)
            room -= len(encoded.ids)
    trees.sort(key=lambda e: -len(e.ids))
    # Questions for search terms fill what the rows have left.
    trees += [encode_tree(terms_tree(rng, False, n), tokenizer) for n in (5, 4, 3, 3, 2, 2, 1, 1)]
    return pack(trees, stage.rows, stage.length, context_weight, rng)


def sample_texts(seed: int, count: int) -> list[str]:
    """Training texts for the tokenizer, prompts included."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        t = make_tree(rng, STAGES["short"])
        texts.append(t.prefix + "".join(b.suffix + "\n" + b.target for b in t.branches))
    return texts
