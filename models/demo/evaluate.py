"""Score a GGUF through llama.cpp on held-out names and templates; greedy decoding, JSON on standard output."""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import articles
from chat_summary import chat_tree
from checked import background_of, checked
from data import STAGES, make_tree
from dialogue import history_tree
from llama_cpp import Llama, LlamaGrammar
from tasks import answer_tree, compact_tree
from trees import Tree

from prompts import NOTHING, REFUSAL, render, schema

Scores = dict[str, list[float]]
HERE = Path(__file__).resolve().parent
_WORD = re.compile(r"\w+")


class Runner:
    """A model that answers one user turn greedily and counts its time."""

    def __init__(self, path: Path, threads: int) -> None:
        self.llama = Llama(str(path), n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False)
        self.prompt_tokens = 0
        self.reply_tokens = 0
        self.seconds = 0.0

    def length(self, text: str) -> int:
        """Tokens of a turn with its markers."""
        return len(self.llama.tokenize(text.encode(), special=False)) + 8

    def reply(self, text: str, limit: int = 220, constrained: str = "") -> str:
        """The reply to a prompt, without surrounding space; in the JSON form of the prompt `constrained` if named."""
        grammar = None
        if constrained:
            grammar = LlamaGrammar.from_json_schema(json.dumps(schema(constrained)), verbose=False)
        start = time.perf_counter()
        ids = self.llama.tokenize(
            f"<start_of_turn>user\n{text}<end_of_turn>\n<start_of_turn>model\n".encode(),
            add_bos=True,
            special=True,
        )
        out: Any = self.llama.create_completion(ids, max_tokens=limit, temperature=0.0, grammar=grammar)
        self.prompt_tokens += len(ids)
        self.reply_tokens += out["usage"]["completion_tokens"]
        self.seconds += time.perf_counter() - start
        return str(out["choices"][0]["text"]).strip()


def holds(reply: str, keys: tuple[str, ...]) -> bool:
    """Whether every key stands in the reply, whatever the case."""
    return all(k.casefold() in reply.casefold() for k in keys)


def score_answer(
    reply: str, keys: tuple[str, ...], pages: tuple[int, ...], scores: Scores, label: str
) -> None:
    """Key fact, citations and refusals of one answer; no keys means that a refusal is right."""
    refused = "does not say" in reply
    if not keys:
        scores[f"{label}: refusal"].append(refused)
        return
    right = holds(reply, keys)
    scores[f"{label}: key fact"].append(right)
    scores[f"{label}: false refusal"].append(refused)
    if right:
        cited = {int(n) for n in re.findall(r"\[(\d+)\]", reply)}
        scores[f"{label}: citation right"].append(cited == set(pages))


def score_both(
    prompt: str, reply: str, keys: tuple[str, ...], pages: tuple[int, ...], scores: Scores, label: str
) -> None:
    """An answer as the model gave it, and as the product shows it after its citation check."""
    score_answer(reply, keys, pages, scores, f"answer {label}")
    score_answer(checked(reply, background_of(prompt)), keys, pages, scores, f"checked answer {label}")


def score_notes(reply: str, target: str, scores: Scores, job: str) -> None:
    """Facts or task changes: how many of the wanted ones stand in the reply with their quotes, whatever the other
    words, and how often "nothing" was right. A reply that has not come to its end has none."""
    wanted = json.loads(target)
    try:
        found = json.loads(reply)
    except json.JSONDecodeError:
        found = None
    scores[f"{job}: complete"].append(isinstance(found, list))
    if not wanted:
        scores[f"{job}: nothing to note"].append(found == [])
    found = found if isinstance(found, list) else []
    names = ("op", "key", "quote") if job == "facts" else ("op", "id", "quote")
    for row in wanted:
        mark = tuple(row[name] for name in names)
        scores[f"{job}: noted"].append(
            any(isinstance(f, dict) and tuple(f.get(name) for name in names) == mark for f in found)
        )


def score(runner: Runner, tree: Tree, scores: Scores, label: str) -> list[tuple[str, str]]:
    """Run one branch of a tree; returns (reply, target) pairs."""
    pairs = []
    for b in tree.branches[:2]:
        notes = tree.job in ("facts", "tasks")
        reply = runner.reply(tree.prefix + b.suffix, 600 if notes else 220, tree.job if notes else "")
        pairs.append((reply, b.target))
        if tree.job == "terms":
            found = [t.strip().casefold() for t in re.findall(r'"([^"]*)"', reply)]
            scores["terms: entity among terms"].append(all(e.casefold() in found for e in b.entities))
            scores["terms: exact"].append(reply == b.target)
        elif tree.job == "answer":
            score_both(tree.prefix + b.suffix, reply, b.keys, b.pages, scores, label)
        elif tree.job == "compact":
            if b.target == NOTHING:
                scores[f"compaction {label}: nothing relevant"].append(NOTHING[:7] in reply)
            else:
                scores[f"compaction {label}: key fact"].append(holds(reply, b.keys))
                scores[f"compaction {label}: false nothing"].append(NOTHING[:7] in reply)
        elif tree.job in ("history", "chat"):
            name = "summary" if tree.job == "history" else "chat summary"
            scores[f"{name}: names present"].append(holds(reply, b.keys))
            want = {w.casefold() for w in _WORD.findall(b.target)}
            got = {w.casefold() for w in _WORD.findall(reply)}
            scores[f"{name}: word recall"].append(len(want & got) / len(want))
        elif notes:
            score_notes(reply, b.target, scores, tree.job)
    return pairs


def trees(rng: random.Random, runner: Runner, count: int) -> list[tuple[str, Tree]]:
    """Held-out examples with a length label: up to 350 and up to 1,000 prompt tokens."""
    made: list[tuple[str, Tree]] = [
        ("", make_tree(rng, STAGES["short"], True, "terms")) for _ in range(count)
    ]
    made += [("", history_tree(rng, True, rng.randint(4, 12))) for _ in range(count // 2)]
    made += [("", chat_tree(rng, True, rng.randint(4, 12))) for _ in range(count // 2)]
    made += [
        ("", make_tree(rng, STAGES["short"], True, job)) for job in ("facts", "tasks") for _ in range(count)
    ]
    for label, low, high in (("<=350", 0, 350), ("<=1000", 351, 1000)):
        for job in ("answer", "compact"):
            need = count * (2 if job == "answer" else 1)
            while need:
                facts = rng.choice((1, 2, 3, 4)) if not low else rng.choice((4, 6, 8, 10))
                tree = (
                    answer_tree(rng, True, rng.randint(1, 3), facts, 3)
                    if job == "answer"
                    else compact_tree(rng, True, facts if not low else facts * 2, 1)
                )
                if low <= runner.length(tree.prefix + tree.branches[0].suffix) <= high:
                    made.append((label, tree))
                    need -= 1
    return made


def score_sample(runner: Runner, path: Path, scores: Scores) -> list[tuple[str, str]]:
    """Hand-made questions on the sample wiki: pages as given, questions with the words that an answer must hold."""
    pairs = []
    for row in json.loads(path.read_text()):
        keys = tuple(row["keys"])
        prompt = render("answer_plain", background=row["background"], question=row["question"])
        reply = runner.reply(prompt)
        pairs.append((f"{row['question']} -> {reply}", " / ".join(keys) or REFUSAL))
        score_both(prompt, reply, keys, (row["page"],), scores, "sample wiki")
        if row["name"]:
            reply = runner.reply(
                render("search_terms", subject="esoteric programming languages", question=row["question"])
            )
            scores["terms: sample wiki"].append(row["name"].casefold() in reply.casefold())
        if keys:
            text = "\n\n".join(
                re.sub(r" \[\d\]$", "", line)
                for line in row["background"].split("\n")
                if not line.startswith("[")
            )
            reply = runner.reply(
                render("compact_article", question=row["question"], words="40", title=row["name"], text=text)
            )
            scores["compaction sample wiki: key fact"].append(holds(reply, keys))
    return pairs


def summary(scores: Scores) -> dict[str, str]:
    """Mean and number of cases of each score."""
    return {k: f"{sum(v) / len(v):.3f} of {len(v)}" for k, v in sorted(scores.items())}


def main() -> None:
    """Print the scores as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "hearth-demo.gguf")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument(
        "--fresh",
        type=float,
        nargs="+",
        default=[0.0, 1.0],
        help="shares of wordings that training never shows",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", type=int, default=0, help="print this many wrong replies of each job")
    parser.add_argument("--sample", type=Path, default=HERE / "sample_questions.json")
    args = parser.parse_args()
    runner = Runner(args.model, args.threads)
    every: dict[str, Scores] = {}
    for fresh in args.fresh:
        articles.FRESH_SHARE = fresh
        scores = every[f"wordings new by {fresh:.0%}"] = defaultdict(list)
        shown: dict[str, int] = defaultdict(int)
        for label, tree in trees(random.Random(args.seed), runner, args.count):
            for reply, target in score(runner, tree, scores, label):
                if reply != target and shown[tree.job + label] < args.show:
                    shown[tree.job + label] += 1
                    print(f"# {tree.job} {label}\n#   got  {reply!r}\n#   want {target!r}")
    if args.sample.exists():
        scores = every["sample wiki"] = defaultdict(list)
        for reply, target in score_sample(runner, args.sample, scores):
            if args.show:
                print(f"# sample {reply!r} want {target!r}")
    print(
        json.dumps(
            {
                "model": args.model.name,
                "scores": {name: summary(scores) for name, scores in every.items()},
                "prompt_tokens": runner.prompt_tokens,
                "reply_tokens": runner.reply_tokens,
                "seconds": round(runner.seconds, 1),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
