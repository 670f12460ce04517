"""Train the tokenizer on generated texts only, so that every piece of it occurs in training."""

from __future__ import annotations

import argparse
from pathlib import Path

from data import sample_texts
from tokenizer import train


def main() -> None:
    """Write the vocabulary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("vocabulary.json"))
    parser.add_argument("--merges", type=int, default=1900)
    parser.add_argument("--size", type=int, default=5120)
    parser.add_argument("--trees", type=int, default=6000)
    args = parser.parse_args()
    vocabulary = train(sample_texts(11, args.trees), args.merges, args.size)
    vocabulary.save(args.out)
    print(len(vocabulary.pieces))


if __name__ == "__main__":
    main()
