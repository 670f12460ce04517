"""Score a GGUF on the held-out items, greedily and through its own chat template: one JSON object on standard output.

    .venv/bin/python models/tuning/evaluate.py MODEL.gguf --limit 60 --replies build/tune/replies.jsonl

An answer is right if it has every number and at least half of the other content words that the written one adds to its
question. That is a lower bound: a right answer in other words counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from items import Item, Page, items, load
from llama_cpp import Llama
from render import NOTHING, example

from gateway.ask.checking.citations import REFUSAL
from gateway.base.stems import stem

_WORD = re.compile(r"\w+")
_MARKER = re.compile(r"\[(\d+)\]")
_SHORT = 3  # letters of words that do not count
_JSON = {"facts": ("op", "key", "quote"), "tasks": ("op", "id", "quote"), "objective": ("title", "quote")}
_REPLY_TOKENS = 300


def words(text: str) -> set[str]:
    """Stems of the content words, and all numbers."""
    found = _WORD.findall(_MARKER.sub(" ", text).casefold())
    return {stem(each) for each in found if len(each) > _SHORT or each.isdigit()}


def holds(reply: str, target: str, question: str) -> bool:
    """Whether a reply has what the target adds to the question."""
    wanted, got = words(target) - words(question) or words(target), words(reply)
    numbers = {each for each in wanted if each.isdigit()}
    return numbers <= got and len(wanted & got) * 2 >= len(wanted)


def rows(text: str, names: tuple[str, ...]) -> set[tuple[Any, ...]] | None:
    """The changes in a reply's JSON; None for other text."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return None
    return {tuple(str(each.get(name)) for name in names) for each in found}


def score(item: Item, question: str, reply: str, target: str) -> dict[str, bool]:
    """What is counted for one item: name and whether it holds."""
    if item.kind == "ask":
        refused = "does not say" in reply
        cited = set(_MARKER.findall(reply)) == set(_MARKER.findall(target))
        right = not refused and holds(reply, target, question)
        return {"right": right, "right and cited": right and cited, "false refusal": refused}
    if item.kind == "no":
        return {"refused": reply.startswith(REFUSAL[:-1])}
    if item.kind == "brief":
        if target == NOTHING:
            return {"nothing relevant": reply.startswith(NOTHING[:-1])}
        return {"right": holds(reply, target, question)}
    if item.kind == "terms":
        wanted = {each.casefold() for each in json.loads(target)}
        try:
            return {"one term right": bool(wanted & {str(each).casefold() for each in json.loads(reply)})}
        except (json.JSONDecodeError, TypeError):
            return {"one term right": False}
    if item.kind in _JSON:
        wanted, got = rows(target, _JSON[item.kind]), rows(reply, _JSON[item.kind])
        return {"all right" if wanted else "none right": wanted == got}
    if item.kind.startswith("summary"):
        return {"half of the words": holds(reply, target, "")}
    return {}


def asked(item: Item) -> str:
    """The question of a page's item; other items have none."""
    return getattr(item.source, item.kind)[item.number][0] if isinstance(item.source, Page) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--limit", type=int, default=60, help="items of each kind and language")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kinds", help="these kinds alone, with commas")
    parser.add_argument("--replies", type=Path, help="write every prompt's end, reply and target here")
    options = parser.parse_args()
    llama = Llama(
        str(options.model),
        n_ctx=4096,
        n_threads=options.threads,
        n_threads_batch=options.threads,
        verbose=False,
    )
    groups: defaultdict[tuple[str, str], list[Item]] = defaultdict(list)
    pages: defaultdict[str, list[Page]] = defaultdict(list)
    for item in items(load()):
        if item.held_out:
            groups[item.kind, item.source.lang].append(item)
            if isinstance(item.source, Page) and item.source not in pages[item.source.lang]:
                pages[item.source.lang].append(item.source)
    kinds = set(options.kinds.split(",")) if options.kinds else None
    scores: defaultdict[str, list[bool]] = defaultdict(list)
    replies, began = [], time.monotonic()
    for (kind, lang), group in sorted(groups.items()):
        if kinds and kind not in kinds:
            continue
        for item in random.Random(kind).sample(group, min(options.limit, len(group))):
            messages, target = example(
                item, pages[lang], random.Random(f"{kind} {item.number} {asked(item)}")
            )
            turns: Any = [{"role": each.role, "content": each.text} for each in messages]
            out: Any = llama.create_chat_completion(turns, temperature=0.0, max_tokens=_REPLY_TOKENS)
            reply = str(out["choices"][0]["message"]["content"] or "").strip()
            for name, holds_here in score(item, asked(item), reply, target).items():
                scores[f"{kind} {lang}: {name}"].append(holds_here)
            end = asked(item) or messages[-1].text[-200:]
            replies.append({"kind": kind, "lang": lang, "end": end, "reply": reply, "target": target})
    if options.replies:
        options.replies.write_text(
            "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in replies), "utf-8"
        )
    shares = {name: f"{sum(all_) / len(all_):.2f} of {len(all_)}" for name, all_ in sorted(scores.items())}
    print(
        json.dumps(
            {"model": options.model.name, "seconds": round(time.monotonic() - began), **shares}, indent=1
        )
    )


if __name__ == "__main__":
    main()
