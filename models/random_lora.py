"""Write a LoRA adapter with random weights for a model file: it changes what the model says, to nothing sensible.

    python models/random_lora.py MODEL.gguf OUT.gguf
    python models/random_lora.py MODEL.gguf OUT.gguf --rank 16 --strength 0.5 --seed 2

Each matrix of the blocks gets two factors of the rank. ``--strength`` is their product's size relative to a matrix of
unit variance per row. Needs the package ``gguf`` (extra ``dev``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

_MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def write(
    model: Path,
    target: Path,
    *,
    ranks: tuple[int, int] = (4, 4),
    strength: float = 1.0,
    seed: int = 1,
    architecture: str | None = None,
    details: Callable[[gguf.GGUFWriter], None] = lambda _: None,
) -> None:
    """Write an adapter of ``model`` to ``target``.

    ``ranks`` are those of the two factors, which llama.cpp wants to be the same. ``architecture`` is named in place of
    the model's, and ``details`` adds to the header.
    """
    reader = gguf.GGUFReader(model)
    field = reader.get_field("general.architecture")
    assert field is not None, f"{model} names no architecture"
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(target, architecture or field.contents())
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(ranks[0]))  # the product is not scaled
    details(writer)
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") or tensor.name.split(".")[2] not in _MATRICES:
            continue
        columns, rows = (int(size) for size in tensor.shape)
        first, second = ranks
        for name, shape in (("a", (first, columns)), ("b", (rows, second))):
            values = random.standard_normal(shape, dtype=np.float32) * np.sqrt(strength / shape[1])
            writer.add_tensor(f"{tensor.name}.lora_{name}", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(
        arguments.model,
        arguments.target,
        ranks=(arguments.rank, arguments.rank),
        strength=arguments.strength,
        seed=arguments.seed,
    )
    print(f"{arguments.target}: {arguments.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
