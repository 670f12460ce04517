"""Train the demo model for a number of tokens or minutes; resumable, on a CPU or on a GPU when there is one."""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import random
import time
from pathlib import Path
from queue import Empty
from typing import Any

import torch
from averaging import Averager
from data import STAGES, Batch, encode_tree, make_batch, make_tree, pack
from export import read_gemma3_gguf
from model import PLAIN, Config, Gemma3, Passes, parameter_count
from optimizer import optimizers
from tokenizer import FIRST_PIECE, Tokenizer, Vocabulary, family
from torch import Tensor
from torch.nn import functional


def family_embeddings(model: Gemma3, vocabulary: Vocabulary, seed: int) -> None:
    """Start the pieces of a family near one another, apart by a shared direction for space and for capital."""
    c = model.config
    g = torch.Generator().manual_seed(seed)
    scale = c.dim**-0.5
    space, capital = (torch.randn(c.dim, generator=g) * scale * 0.4 for _ in range(2))
    bases: dict[str, Tensor] = {}
    with torch.no_grad():
        for i in range(FIRST_PIECE, len(vocabulary.pieces)):
            low, spaced, raised = family(vocabulary.pieces[i])
            base = bases.setdefault(low, torch.randn(c.dim, generator=g) * scale * 0.9)
            noise = torch.randn(c.dim, generator=g) * scale * 0.25
            model.embed.weight[i] = base + spaced * space + raised * capital + noise


def tensors(batch: Batch, device: str) -> tuple[Tensor, ...]:
    """ids, positions, mask, flat indices of weighted tokens, their goals and weights.

    Tokens of no weight round their number up: oneDNN compiles, and keeps, kernels for every size that it sees.
    """
    ids = torch.from_numpy(batch.ids).long().to(device)
    positions = torch.from_numpy(batch.positions).long().to(device)
    tree = torch.from_numpy(batch.tree).to(device)
    branch = torch.from_numpy(batch.branch).to(device)
    t = ids.shape[1]
    order = torch.arange(t, device=device)
    mask = (tree[:, :, None] == tree[:, None, :]) & (order[:, None] >= order[None, :])
    mask &= (branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None])
    weight = torch.from_numpy(batch.weight).flatten().to(device)
    goal = torch.from_numpy(batch.goal).flatten().long().to(device)
    where = weight.nonzero()[:, 0]
    unasked = int(((weight == 0) & (goal >= 0)).nonzero()[0, 0])
    where = functional.pad(where, (0, -len(where) % 256), value=unasked)
    return ids, positions, mask, where, goal[where], weight[where]


def producer(
    queue: Any, vocabulary: Path, stages: list[str], seed: int, first: int, context_weight: float
) -> None:
    """Put batches of the stages in turn on the queue for ever; runs in a child process."""
    os.nice(5)
    tokenizer = Tokenizer(Vocabulary.load(vocabulary))
    i = first
    while True:
        stage = STAGES[stages[i % len(stages)]]
        queue.put(make_batch(tokenizer, stage, seed * 1_000_003 + i, context_weight))
        i += 1


def following(queue: Any, child: Any) -> Batch:
    """The next batch; raises RuntimeError when its maker has ended, whose own error stands above."""
    while True:
        try:
            batch: Batch = queue.get(timeout=10)
            return batch
        except Empty:
            if not child.is_alive():
                raise RuntimeError("the process that makes batches has ended") from None


@torch.no_grad()
def exact_match(model: Gemma3, tokenizer: Tokenizer, stage: str, trees: int, device: str) -> dict[str, float]:
    """Share of held-out branches whose whole reply the greedy decoder would give, by job."""
    rng = random.Random(4242)
    hits: dict[str, list[bool]] = {}
    for job in ("terms", "answer", "compact", "history", "chat", "facts", "tasks"):
        for _ in range(trees if job in ("answer", "terms") else trees * 3):
            tree = make_tree(rng, STAGES[stage], held_out=True, job=job)
            encoded = encode_tree(tree, tokenizer)
            batch = pack([encoded], 1, len(encoded.ids), 0.0, rng)
            ids, positions, mask, where, goal, _ = tensors(batch, device)
            states = model.hidden(ids, positions, mask).flatten(0, 1)[where]
            right = (model.logits(states).argmax(-1) == goal).cpu()
            owner = torch.from_numpy(batch.branch).flatten()[where.cpu()]
            for number, b in enumerate(tree.branches, 1):
                name = job if b.keys or job not in ("answer", "compact") else job + " refusal"
                hits.setdefault(name, []).append(bool(right[owner == number].all()))
    return {k: round(sum(v) / len(v), 3) for k, v in hits.items()}


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint in one step."""
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def arguments() -> argparse.Namespace:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--run", type=Path, required=True, help="directory of checkpoints")
    p.add_argument("--vocabulary", type=Path, required=True)
    p.add_argument("--start", type=Path, help="a new run begins with the weights of this GGUF")
    p.add_argument(
        "--stage", choices=list(STAGES), nargs="+", required=True, help="several take turns, step by step"
    )
    length = p.add_mutually_exclusive_group(required=True)
    length.add_argument("--until", type=float, help="train until the run has seen so many millions of tokens")
    length.add_argument(
        "--minutes", type=float, help="how long this call trains, whatever the machine's speed"
    )
    p.add_argument(
        "--decay", type=float, default=0.0, help="last share of the call over which the rates fall to zero"
    )
    p.add_argument("--warmup", type=int, default=60)
    p.add_argument("--muon", type=float, default=0.01)
    p.add_argument("--adam", type=float, default=3e-3)
    p.add_argument("--context-weight", type=float, default=0.1)
    p.add_argument("--threads", type=int, default=2, help="of each process")
    p.add_argument("--processes", type=int, default=1, help="on a CPU, that train and average their weights")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--dim", type=int, default=256)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--ffn", type=int, default=640)
    p.add_argument("--ema", type=float, default=0.995)
    p.add_argument("--eval-every", type=float, default=5.0, help="minutes")
    p.add_argument("--save-every", type=float, default=2.5, help="minutes")
    return p.parse_args()


def main() -> None:
    """Train from the newest checkpoint in the run directory, or from the start."""
    args = arguments()
    if torch.cuda.is_available():
        args.processes = 1
    args.run.mkdir(parents=True, exist_ok=True)
    (args.run / "meeting").unlink(missing_ok=True)
    others = [mp.Process(target=train, args=(args, rank)) for rank in range(1, args.processes)]
    for process in others:
        process.start()
    train(args, 0)
    for process in others:
        process.join()


def train(args: argparse.Namespace, rank: int) -> None:
    """One of the processes; the first one reports and saves."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vocabulary = Vocabulary.load(args.vocabulary)
    tokenizer = Tokenizer(vocabulary)
    latest = args.run / "latest.pt"
    step, tokens, spent = 0, 0, 0.0
    if latest.exists():
        state = torch.load(latest, weights_only=True)
        model = Gemma3(Config(**state["config"]))
        model.load_state_dict(state["model"])
        step, tokens, spent = state["step"], state["tokens"], state["minutes"]
    elif args.start:
        state = None
        config, weights = read_gemma3_gguf(args.start)
        model = Gemma3(config)
        model.load_state_dict(weights)
    else:
        state = None
        model = Gemma3(
            Config(
                vocab=len(vocabulary.pieces),
                dim=args.dim,
                layers=args.layers,
                ffn=args.ffn,
                heads=args.dim // 64,
            )
        )
        family_embeddings(model, vocabulary, args.seed)
    if args.until and tokens >= args.until * 1e6:
        print(f"{latest} has seen {tokens} tokens already")
        return
    model.to(device)
    passes = Passes.compiled()
    if passes is None and rank == 0:
        print(
            "half as slow again: the passes between products are not compiled; PyTorch needs g++ for it and a path "
            "without blanks",
            flush=True,
        )
    passes = passes or PLAIN
    steppers = optimizers(model, args.muon, args.adam)
    average = {k: v.clone() for k, v in model.state_dict().items()}
    if state:
        for o, saved in zip(steppers, state["optimizers"], strict=True):
            o.load_state_dict(saved)
        average = {k: v.to(device) for k, v in state["average"].items()}
    base_rates = (args.muon, args.adam)
    if rank == 0:
        start_line = {"parameters": parameter_count(model), "device": device, "step": step, "tokens": tokens}
        print(json.dumps(start_line), flush=True)
    averager = Averager(rank, args.processes, args.run.resolve() / "meeting")

    queue: Any = mp.Queue(maxsize=12)
    child = mp.Process(
        target=producer,
        args=(queue, args.vocabulary, args.stage, args.seed + rank, step, args.context_weight),
        daemon=True,
    )
    child.start()
    start = last_log = last_eval = last_save = time.monotonic()
    logged_tokens, losses = tokens, [0.0, 0.0]
    begun, first_token = step, tokens
    while True:
        elapsed = (time.monotonic() - start) / 60
        done = (
            elapsed / args.minutes
            if args.minutes
            else (tokens - first_token) / (args.until * 1e6 - first_token)
        )
        together = averager.due(step - begun)
        if together:
            done, seen = averager.mean(model, [done, tokens / 1e6])
            tokens = round(seen * 1e6)
        share = min(1.0, done)
        ended = together and done >= 1.0
        rate = min(1.0, (step - begun + 1) / args.warmup)
        if args.decay and share > 1 - args.decay:
            rate *= max(0.0, (1 - share) / args.decay)
        if not ended:
            ids, positions, mask, where, goal, weight = tensors(following(queue, child), device)
            with torch.autocast(device, torch.bfloat16):
                states = model.hidden(ids, positions, mask, passes).flatten(0, 1)[where]
                scores = model.logits(states)
            each = functional.cross_entropy(scores.float(), goal, reduction="none")
            loss = (each * weight).sum() / weight.sum()
            loss.backward()
            for o, base in zip(steppers, base_rates, strict=True):
                for group in o.param_groups:
                    group["lr"] = base * rate
                o.step()
                o.zero_grad(set_to_none=True)
            with torch.no_grad():
                keep = min(args.ema, (step + 1) / (step + 10))
                for k, v in model.state_dict().items():
                    average[k].lerp_(v, 1 - keep)
            step += 1
            tokens += args.processes * int((ids != 0).sum())
            asked = weight >= 1.0
            losses[0] += float(each.detach()[asked].mean())
            losses[1] += 1
        now = time.monotonic()
        if rank == 0 and (now - last_log > 30 or ended):
            speed = (tokens - logged_tokens) / (now - last_log)
            print(
                json.dumps(
                    {
                        "minute": round(spent + elapsed, 1),
                        "step": step,
                        "tokens": tokens,
                        "loss": round(losses[0] / max(1, losses[1]), 4),
                        "rate": round(rate, 3),
                        "tokens_per_second": round(speed),
                    }
                ),
                flush=True,
            )
            last_log, logged_tokens, losses = now, tokens, [0.0, 0.0]
        if rank == 0 and (now - last_eval > args.eval_every * 60 or ended):
            trained = {k: v.clone() for k, v in model.state_dict().items()}
            model.load_state_dict(average if not (args.decay and ended) else trained)
            print(
                json.dumps(
                    {
                        "minute": round(spent + elapsed, 1),
                        "exact": exact_match(model, tokenizer, args.stage[0], 12, device),
                    }
                ),
                flush=True,
            )
            model.load_state_dict(trained)
            last_eval = last_log = time.monotonic()
            logged_tokens = tokens
        if rank == 0 and ((together and now - last_save > args.save_every * 60) or ended):
            save(
                latest,
                {
                    "config": model.config.as_dict(),
                    "model": model.state_dict(),
                    "average": average,
                    "step": step,
                    "tokens": tokens,
                    "minutes": spent + elapsed,
                    "optimizers": [o.state_dict() for o in steppers],
                    "decayed": bool(args.decay and ended),
                },
            )
            last_save = now
        if ended:
            break
    child.terminate()
    child.join()


if __name__ == "__main__":
    main()
