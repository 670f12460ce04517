"""The tuning items as token trees, one JSON object a line: what `tune.py` reads.

    .venv/bin/python models/tuning/examples.py BASE.gguf OUT.jsonl --epochs 3

A tree is the beginning that the prompts of one source share and its endings: the rest of a prompt, and the reply.
Twenty questions about a page cost the page once. Each epoch shows other pages beside it: in every other one, such as a
search would find with it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from items import Batch, Item, Page, items, load
from llama_cpp import Llama
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from render import example
from wiki import batch

from model_host.protocol import Message

TEMPLATE = Path(__file__).resolve().parent.parent / "gemma_turns.jinja"
MOST = 1400  # tokens of a tree
NEAREST = 5  # pages


class Encoder:
    """Prompts and replies as tokens, in the base's chat template; a base of Gemma has none and gets ours."""

    def __init__(self, base: Path) -> None:
        self._model = Llama(str(base), vocab_only=True, verbose=False)
        template = self._model.metadata.get("tokenizer.chat_template") or TEMPLATE.read_text("utf-8")
        self._end = "<|im_end|>" if "<|im_end|>" in template else "<end_of_turn>"
        self._template = Jinja2ChatFormatter(template, eos_token=self._end, bos_token="<bos>")

    def text(self, text: str) -> list[int]:
        return self._model.tokenize(text.encode(), add_bos=False, special=True)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        turns: Any = [{"role": each.role, "content": each.text} for each in messages]
        return self.text(self._template(messages=turns).prompt)

    def reply(self, text: str) -> list[int]:
        return self.text(text.strip() + self._end)


Tree = dict[str, Any]


def trees(encoder: Encoder, chosen: list[Item], epoch: int) -> Iterator[Tree]:
    """The examples of an epoch, those that share a beginning together, in an order of its own."""
    pages: defaultdict[str, list[Page]] = defaultdict(list)
    for page in {id(i.source): i.source for i in chosen if isinstance(i.source, Page)}.values():
        pages[page.lang].append(page)
    near = {lang: nearest(each) for lang, each in pages.items()} if epoch % 2 else {}
    groups: defaultdict[tuple[object, ...], list[tuple[list[int], list[int]]]] = defaultdict(list)
    for number, item in enumerate(chosen):
        source = item.source
        about = source.title if isinstance(source, Page) else ""
        # All questions about a page see the same pages beside it.
        rng = random.Random(f"{epoch} {about or number}")
        beside = near[source.lang][about] if near and about else pages[source.lang]
        messages, reply = example(item, beside, rng)
        shared = {"ask": about, "no": about, "brief": about, "chat": id(source)}.get(item.kind, "")
        kind = "question" if item.kind in ("ask", "no") else item.kind
        groups[kind, shared].append((encoder.prompt(messages), encoder.reply(reply)))
    rng = random.Random(epoch)
    made = [tree for (kind, _), group in groups.items() for tree in cut(str(kind), group, rng)]
    rng.shuffle(made)
    yield from made


def chosen_items(held_out: bool, wiki: list[Batch]) -> list[Item]:
    """The items that are held out or the others: the project's own, or a wiki's and to learn half as many of those."""
    own, theirs = ([i for i in items(each) if i.held_out == held_out] for each in (load(), wiki))
    if not wiki:
        return own
    # So that formats, chats and other languages are not lost.
    return theirs if held_out else theirs + random.Random(1).sample(own, min(len(own), len(theirs) // 2))


def epoch_trees(base: Path, chosen: list[Item], epoch: int) -> list[Tree]:
    """All trees of an epoch."""
    return list(trees(Encoder(base), chosen, epoch))


def nearest(pages: list[Page]) -> dict[str, list[Page]]:
    """For each page's title, the pages that share most with it, rare words counting more; copies of a title apart."""
    has = [set(re.findall(r"\w{4,}", f"{page.title} {page.text}".casefold())) for page in pages]
    spread = Counter(word for each in has for word in each)
    found = {}
    for at, page in enumerate(pages):
        shared = [sum(1 / spread[word] for word in has[at] & other) for other in has]
        order = sorted(range(len(pages)), key=lambda n: -shared[n])
        found[page.title] = [pages[n] for n in order if pages[n].title != page.title][:NEAREST]
    return found


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
    parser.add_argument(
        "--wiki", type=Path, help="items from the pages of this wiki too; held out: from it alone"
    )
    options = parser.parse_args()
    wiki = [batch(options.wiki, options.out.parent / "data")] if options.wiki else []
    chosen, tokens = chosen_items(options.held_out, wiki), 0
    with options.out.open("w") as file, ProcessPoolExecutor() as pool:
        made = partial(epoch_trees, options.base, chosen)
        for epoch, each in enumerate(pool.map(made, range(options.epochs))):
            for tree in each:
                file.write(json.dumps({"epoch": epoch, **tree}) + "\n")
                tokens += len(tree["prefix"]) + sum(len(p) + len(r) for p, r in tree["endings"])
    print(f"{tokens:,} tokens in {options.epochs} epoch{'' if options.epochs == 1 else 's'}")


if __name__ == "__main__":
    main()
