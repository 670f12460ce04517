"""Compare token ids and greedy replies of a GGUF's weights in PyTorch (float32) and in llama.cpp."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import torch
from data import STAGES, make_tree
from export import read_gemma3_gguf
from llama_cpp import Llama
from model import Gemma3, causal_mask
from tokenizer import BOS, END_TURN, TURN, Tokenizer, Vocabulary

HERE = Path(__file__).resolve().parent


@torch.no_grad()
def greedy(model: Gemma3, ids: list[int], limit: int) -> list[int]:
    """Greedy continuation without a cache."""
    start = len(ids)
    while len(ids) < start + limit:
        states = model.hidden(torch.tensor([ids]), torch.arange(len(ids))[None], causal_mask(len(ids)))
        ids = [*ids, int(model.logits(states[0, -1]).argmax())]
        if ids[-1] == END_TURN:
            break
    return ids[start:]


def main() -> None:
    """Print how many prompts agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=HERE / "hearth-demo.gguf")
    parser.add_argument("--vocabulary", type=Path, default=HERE / "vocabulary.json")
    parser.add_argument("--count", type=int, default=12)
    args = parser.parse_args()
    config, weights = read_gemma3_gguf(args.model)
    model = Gemma3(config)
    model.load_state_dict(weights)
    tokenizer = Tokenizer(Vocabulary.load(args.vocabulary))
    llama = Llama(str(args.model), n_ctx=4096, verbose=False)
    rng = random.Random(9)
    same_ids = same_replies = 0
    jobs = ("terms", "answer", "compact", "history")
    for i in range(args.count):
        tree = make_tree(rng, STAGES["long" if i % 3 == 0 else "short"], True, jobs[i % 4])
        text = tree.prefix + tree.branches[0].suffix
        ids = [BOS, TURN, *tokenizer.encode("user\n" + text), END_TURN, *tokenizer.encode("\n"), TURN]
        ids += tokenizer.encode("model\n")
        turn = f"<start_of_turn>user\n{text}<end_of_turn>\n<start_of_turn>model\n"
        theirs = llama.tokenize(turn.encode(), add_bos=True, special=True)
        same_ids += theirs == ids
        ours = greedy(model, ids, 60)
        out: list[int] = []
        stream: Any = llama.generate(ids, temp=0.0, reset=True)
        for token in stream:
            out.append(token)
            if token == END_TURN or len(out) == len(ours):
                break
        same_replies += out == ours
    print(json.dumps({"prompts": args.count, "same ids": same_ids, "same replies": same_replies}))


if __name__ == "__main__":
    main()
