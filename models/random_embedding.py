"""Write an EmbeddingGemma GGUF with random weights: real architecture, real tokenizer, meaningless vectors.

    python models/random_embedding.py OUT.gguf                # tiny: half a megabyte, vectors of 64 dimensions
    python models/random_embedding.py OUT.gguf --shape 300m   # the published shape, for benchmarks

Needs what ``models/random_gemma.py`` needs, which does the writing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import random_gemma

# EmbeddingGemma has the tensors of a Gemma 3 text model, looks both ways, and averages over a text's tokens.
random_gemma.SHAPES["tiny-embedding"] = random_gemma.Shape(6, 64, 2, 1, 32, 128, 256, 512)
random_gemma.SHAPES["300m"] = random_gemma.Shape(24, 768, 3, 1, 256, 1152, 512, 2048)


def embedding_details(writer: gguf.GGUFWriter) -> None:
    """What the header of an embedding model says beyond that of a Gemma 3."""
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_add_eos_token(True)


def write(target: Path, *, shape: str = "tiny-embedding", kind: str = "q8_0", seed: int = 1) -> None:
    """Write the model to ``target``."""
    random_gemma.write(
        target,
        shape=shape,
        kind=kind,
        seed=seed,
        architecture="gemma-embedding",
        details=embedding_details,
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("--shape", choices=("tiny-embedding", "300m"), default="tiny-embedding")
    parser.add_argument("--type", choices=sorted(random_gemma.TYPES), default="q8_0")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.target, shape=arguments.shape, kind=arguments.type, seed=arguments.seed)
    print(f"{arguments.target}: {arguments.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
