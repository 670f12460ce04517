"""Train an adapter for a small Gemma 3 or Llama on the trees of `examples.py`; `make tune` runs all of it.

    python models/tuning/tune.py BASE.gguf TREES.jsonl HELD_OUT.jsonl --run build/tune/run

A run that was stopped goes on from its last checkpoint. The learning rate rises over the first twentieth of its minutes
and falls over the last third.
`best.gguf`, or as `--name` says, is the adapter of the run that knew most next tokens of the held-out rows: with many
epochs not the last.
With a GPU: `--device cuda --rows 8 --whole --rounded`, some 100 times as fast as a core.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from lora import adapter, load, read_adapter, write_adapter
from model import PLAIN, Model, Passes
from torch import Tensor
from torch.nn import functional

LENGTH = 1408  # tokens of a row
NEGATIVES = 4096  # of the vocabulary, beside the batch's own tokens, in the sampled softmax
# The first tokens of a reply choose between an answer and a refusal; what follows is mostly copying.
FIRST, FIRST_WEIGHT = 5, 2.0


@dataclass(frozen=True)
class Row:
    """Trees side by side, [rows, LENGTH] each; ``tree`` and ``branch`` say who sees whom, ``weight`` the learned."""

    ids: Tensor
    positions: Tensor
    tree: Tensor
    branch: Tensor
    goal: Tensor
    weight: Tensor

    @classmethod
    def of(cls, rows: list[Row], device: str) -> Row:
        """Rows below one another."""
        names = [each.name for each in fields(cls)]
        return cls(*(torch.cat([getattr(row, name) for row in rows]).to(device) for name in names))


def as_row(trees: list[dict[str, list]]) -> Row:
    columns: list[list[float]] = [[], [], [], [], [], []]

    def add(
        ids: list[int], start: int, number: int, branch: int, goal: list[int], weight: list[float]
    ) -> None:
        n = len(ids)
        for column, values in zip(
            columns, (ids, range(start, start + n), [number] * n, [branch] * n, goal, weight), strict=True
        ):
            column.extend(values)

    for number, each in enumerate(trees):
        prefix = each["prefix"]
        add(prefix, 0, number, 0, [0] * len(prefix), [0.0] * len(prefix))
        for branch, (rest, reply) in enumerate(each["endings"], 1):
            ids = [*rest, *reply]
            first = len(rest) - 1
            weight = [0.0] * first + [1.0] * len(reply) + [0.0]
            for i in range(first, min(first + FIRST, len(weight) - 1)):
                weight[i] = FIRST_WEIGHT
            add(ids, len(prefix), number, branch, [*ids[1:], 0], weight)
    room = LENGTH - len(columns[0])
    add([0] * room, 0, -1, 0, [0] * room, [0.0] * room)
    whole = (torch.tensor([column], dtype=torch.long) for column in columns[:5])
    return Row(*whole, torch.tensor([columns[5]]))


def size(tree: dict[str, list]) -> int:
    return len(tree["prefix"]) + sum(len(p) + len(r) for p, r in tree["endings"])


def rows(trees: list[dict[str, list]]) -> Iterator[Row]:
    """Rows of trees in their order; a later tree that fits fills what is left of a row."""
    waiting = list(trees)
    while waiting:
        taken, room, later = [], LENGTH, []
        for at, each in enumerate(waiting):
            if size(each) <= room:
                taken.append(each)
                room -= size(each)
            else:
                later.append(each)
            if room < 60 or at > 60:
                later += waiting[at + 1 :]
                break
        waiting = later
        yield as_row(taken)


def loss_of(model: Model, row: Row, passes: Passes, whole: bool) -> tuple[Tensor, Tensor, int]:
    """Weighted mean loss of rows, the share of next tokens that are right, and their number.

    ``whole``: over the whole vocabulary, else over the rows' own tokens and a sample.
    """
    order = torch.arange(LENGTH, device=row.ids.device)
    mask = (row.tree[:, :, None] == row.tree[:, None, :]) & (order[:, None] >= order[None, :])
    mask &= (row.branch[:, None, :] == 0) | (row.branch[:, None, :] == row.branch[:, :, None])
    where = row.weight > 0
    goal, weight = row.goal[where], row.weight[where]
    states = model.hidden(row.ids, row.positions, mask, passes)[where]
    if whole:
        scores, aim = functional.linear(states, model.embed.weight).float(), goal
    else:
        own = torch.unique(torch.cat((row.ids.flatten(), goal)))
        others = torch.randint(0, model.config.vocab, (NEGATIVES,), device=own.device)
        others = others[~torch.isin(others, own)]
        scores = functional.linear(states, model.embed.weight[torch.cat((own, others))]).float()
        # Each sampled token stands for many.
        scores[:, len(own) :] += math.log((model.config.vocab - len(own)) / len(others))
        aim = torch.searchsorted(own, goal)
    each = functional.cross_entropy(scores, aim, reduction="none")
    return (each * weight).sum() / weight.sum(), (scores.argmax(-1) == aim).float().mean(), len(goal)


@torch.no_grad()
def held_out_loss(model: Model, held_out: list[Row], passes: Passes) -> tuple[float, float]:
    losses = [loss_of(model, row, passes, True) for row in held_out]
    total = sum(n for _, _, n in losses)
    return sum(float(x) * n for x, _, n in losses) / total, sum(float(r) * n for _, r, n in losses) / total


def train(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = load(options.base, options.rank, options.alpha, options.rounded, options.device)
    passes = (Passes.compiled() if options.compile else None) or PLAIN
    values = adapter(model)
    optimizer = torch.optim.AdamW(values.values(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.0)
    run: Path = options.run
    kept = run / f"{options.name}.gguf"
    run.mkdir(parents=True, exist_ok=True)
    step, tokens, spent = 0, 0, 0.0
    before: list[float] = []  # loss and share of right tokens of the held-out rows, before training
    best: list[float] = []
    if options.start:
        read_adapter(options.start, values)
    if (run / "latest.pt").exists():
        saved = torch.load(run / "latest.pt", map_location=options.device)
        for name, value in saved["values"].items():
            values[name].data.copy_(value)
        optimizer.load_state_dict(saved["optimizer"])
        step, tokens, spent, before, best = (
            saved[name] for name in ("step", "tokens", "spent", "before", "best")
        )

    def save() -> None:
        state = {
            "values": {name: value.detach() for name, value in values.items()}, "optimizer": optimizer.state_dict(),
            "step": step, "tokens": tokens, "spent": spent + time.monotonic() - begun, "before": before, "best": best,
        }  # fmt: skip
        torch.save(state, run / "part.pt")
        (run / "part.pt").replace(run / "latest.pt")
        write_adapter(run / "adapter.gguf", options.base, values, options.rank, options.alpha)

    def judge() -> list[float]:
        """Save, and keep the adapter that knew most next tokens. The time of judging is not that of training."""
        nonlocal best, begun
        save()
        since = time.monotonic()
        loss, right = held_out_loss(model, judged, passes)
        told = {"step": step, "tokens": tokens, "held_out": round(loss, 3), "right": round(right, 3)}
        print(json.dumps(told), flush=True)
        if not best or right > best[1]:
            best = [loss, right]
            kept.write_bytes((run / "adapter.gguf").read_bytes())
        begun += time.monotonic() - since
        return [loss, right]

    trees = [json.loads(line) for line in options.trees.open()]
    held_out = list(rows([json.loads(line) for line in options.held_out.open()]))
    random.Random(3).shuffle(held_out)
    # A CPU is no faster with several rows at once, and they need its memory.
    at_once = options.rows if options.device != "cpu" else 1
    held_out = held_out[: options.judged]
    judged = [Row.of(held_out[k : k + at_once], options.device) for k in range(0, len(held_out), at_once)]
    every = list(rows(trees))
    print(
        f"{sum(v.numel() for v in values.values()):,} values, {len(every)} rows, at step {step}", flush=True
    )
    begun = time.monotonic()
    before = before or judge()
    last = saved_at = time.monotonic()
    seen: list[tuple[float, float, int]] = []
    while (done := (spent + time.monotonic() - begun) / 60 / options.minutes) < 1:
        rate = min(1.0, 0.05 + done * 20) * min(1.0, max(0.01, (1 - done) * 3))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate
        at = step * options.rows
        taken = [every[k % len(every)] for k in range(at, at + options.rows)]
        for k in range(0, options.rows, at_once):
            row = Row.of(taken[k : k + at_once], options.device)
            loss, right, n = loss_of(model, row, passes, options.whole)
            (loss * at_once / options.rows).backward()
            tokens += int((row.tree >= 0).sum())
            seen.append((float(loss.detach()), float(right), n))
        torch.nn.utils.clip_grad_norm_(values.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        now = time.monotonic()
        if now - last > min(60, 3 * options.minutes):
            mean = [sum(each[i] for each in seen) / len(seen) for i in (0, 1)]
            pace = {
                "minutes": f"{(spent + now - begun) / 60:.1f} of {options.minutes:g}",
                "step": step,
                "tokens": tokens,
            }
            told = {**pace, "loss": round(mean[0], 3), "right": round(mean[1], 3), "rate": round(rate, 3)}
            print(json.dumps({**told, "load": round(os.getloadavg()[0], 1)}), flush=True)
            last, seen = now, []
        if now - saved_at > min(900, 10 * options.minutes):
            judge()
            saved_at = last = time.monotonic()
    judge()
    print(
        f"{kept.resolve()}: on held-out text its loss is {best[0]:.3f} and {best[1]:.1%} of its next tokens are right; "
        f"without it {before[0]:.3f} and {before[1]:.1%}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("trees", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--name", default="best", help="of the file in --run that is the best adapter")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rows", type=int, default=2, help="rows of a step")
    parser.add_argument("--judged", type=int, default=8, help="held-out rows, about a thousand tokens each")
    parser.add_argument("--device", default="cpu", help="of PyTorch: cpu or cuda")
    parser.add_argument(
        "--whole", action="store_true", help="softmax over the whole vocabulary, not a sample"
    )
    parser.add_argument("--rounded", action="store_true", help="compute with matrices as Q4_0 rounds them")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=float, default=32.0)
    # At 1e-3 the loss did not fall for 0.6 million tokens (docs/decisions/0045-tuned-gemma.md).
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--start", type=Path, help="an adapter of the same rank to go on from")
    parser.add_argument("--compile", action="store_true", help="a minute at the start; needs g++")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
