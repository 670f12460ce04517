"""The tuning items as token trees, one JSON object a line: what `tune.py` reads.

    .venv/bin/python models/tuning/examples.py BASE.gguf OUT.jsonl --epochs 3

A tree is the beginning that the prompts of one source share and its endings: the rest of a prompt, and the reply.
Twenty questions about a page cost the page once. Each epoch shows other pages beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from items import Item, Page, items, load
from llama_cpp import Llama
from render import example

from gateway.telemetry.generations import text_of
from model_host.protocol import Message

# Gemma's control tokens.
BOS, TURN, END_TURN = 2, 105, 106
MOST = 1400  # tokens of a tree


class Encoder:
    """Prompts and replies as tokens, in the format of `models/gemma_turns.jinja`."""

    def __init__(self, base: Path) -> None:
        self._model = Llama(str(base), vocab_only=True, verbose=False)

    def text(self, text: str) -> list[int]:
        return self._model.tokenize(text.encode(), add_bos=False, special=False)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        turns = list(messages)
        opening = ""
        if turns[0].role == "system":
            opening = text_of(turns.pop(0)).strip() + "\n\n"
        ids = [BOS]
        newline = self.text("\n")
        for turn in turns:
            role = "model" if turn.role == "assistant" else "user"
            ids += [TURN, *self.text(f"{role}\n{opening}{text_of(turn).strip()}"), END_TURN, *newline]
            opening = ""
        return [*ids, TURN, *self.text("model\n")]

    def reply(self, text: str) -> list[int]:
        return [*self.text(text.strip()), END_TURN]


Tree = dict[str, Any]


def trees(encoder: Encoder, chosen: list[Item], epoch: int) -> Iterator[Tree]:
    """The examples of an epoch, those that share a beginning together, in an order of its own."""
    pages: defaultdict[str, list[Page]] = defaultdict(list)
    for page in {id(i.source): i.source for i in chosen if isinstance(i.source, Page)}.values():
        pages[page.lang].append(page)
    groups: defaultdict[tuple[object, ...], list[tuple[list[int], list[int]]]] = defaultdict(list)
    for number, item in enumerate(chosen):
        source = item.source
        about = source.title if isinstance(source, Page) else ""
        # All questions about a page see the same pages beside it.
        rng = random.Random(f"{epoch} {about or number}")
        messages, reply = example(item, pages[source.lang], rng)
        shared = {"ask": about, "no": about, "brief": about}.get(item.kind, "")
        kind = "question" if item.kind in ("ask", "no") else item.kind
        groups[kind, shared].append((encoder.prompt(messages), encoder.reply(reply)))
    rng = random.Random(epoch)
    made = [tree for (kind, _), group in groups.items() for tree in cut(str(kind), group, rng)]
    rng.shuffle(made)
    yield from made


def cut(kind: str, group: list[tuple[list[int], list[int]]], rng: random.Random) -> Iterator[Tree]:
    """Trees of at most ``MOST`` tokens; an example that is longer by itself is left out and told."""
    rng.shuffle(group)
    while group:
        first = group[0][0]
        prefix, taken, size = first[:-1], [group.pop(0)], 0
        for each in list(group):
            shared = common(prefix, each[0][:-1])
            both = [*taken, each]
            size = shared + sum(len(p) - shared + len(r) for p, r in both)
            if shared < min(40, len(prefix)) or size > MOST:
                break
            prefix, taken = prefix[:shared], both
            group.pop(0)
        at = len(prefix)
        if at + sum(len(p) - at + len(r) for p, r in taken) > MOST:
            print(f"left out: {kind} of {len(first)} tokens", file=sys.stderr)
            continue
        yield {"kind": kind, "prefix": prefix, "endings": [[p[at:], r] for p, r in taken]}


def common(a: list[int], b: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--held-out", action="store_true", help="the items that training never sees")
    options = parser.parse_args()
    encoder = Encoder(options.base)
    chosen = [item for item in items(load()) if item.held_out == options.held_out]
    tokens = 0
    with options.out.open("w") as file:
        for epoch in range(options.epochs):
            for tree in trees(encoder, chosen, epoch):
                file.write(json.dumps({"epoch": epoch, **tree}) + "\n")
                tokens += len(tree["prefix"]) + sum(len(p) + len(r) for p, r in tree["endings"])
    print(f"{len(chosen)} items, {tokens:,} tokens in {options.epochs} epochs")


if __name__ == "__main__":
    main()
