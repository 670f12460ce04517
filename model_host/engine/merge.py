"""Merge a LoRA adapter into a base model, and store its matrices in the type that is fastest on a CPU.

    python -m model_host.engine.merge BASE.gguf ADAPTER.gguf OUT.gguf

llama.cpp can apply an adapter while it runs, which costs a tenth to a sixth of the speed
(docs/decisions/0042-adapters.md); a merged file costs nothing, and works with every program that reads GGUF.

The embeddings keep the base's type and bytes. What the adapter's header says of name, licence and chat template
replaces what the base's says. Progress goes to standard output: a line of tensors done and of all, for each tensor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np

# Reads twice as fast as Q4_K_M (docs/decisions/0045-tuned-gemma.md).
MATRICES = "Q4_0"
_TEMPLATE = "tokenizer.chat_template"
# The writer itself sets these, or they describe the base's types of tensors.
_OWN = {"general.architecture", "general.file_type", "general.quantization_version", "general.type"}


class MergeError(Exception):
    """A file that cannot be merged."""


def merge(base: Path, adapter: Path, out: Path, matrices: str = MATRICES) -> Iterator[tuple[int, int]]:
    """Write ``out``, yielding the number of tensors done and of all. Raises MergeError; ``out`` then is incomplete."""
    model, change = _read(base), _read(adapter)
    architecture = _value(model, "general.architecture")
    if _value(change, "adapter.type") != "lora" or _value(change, "general.architecture") != architecture:
        raise MergeError(f"{adapter} is no LoRA adapter of {architecture}")
    wanted, low = gguf.GGMLQuantizationType[matrices], {each.name: each for each in change.tensors}
    unknown = {_target(name) for name in low} - {each.name for each in model.tensors}
    if unknown:
        raise MergeError(f"{base} has no tensor {min(unknown)}, which the adapter changes")
    writer = gguf.GGUFWriter(out, architecture)
    _copy_pairs(writer, model, change)
    total, rest = len(model.tensors), []
    # The header names every tensor before the first one's data, which is made only when it is written.
    for tensor in model.tensors:
        kind = wanted if f"{tensor.name}.lora_a" in low else tensor.tensor_type
        shape = [int(n) for n in reversed(tensor.shape)]
        if kind is not tensor.tensor_type:
            shape = list(gguf.quant_shape_to_byte_shape(shape, kind))
            writer.add_tensor_info(
                tensor.name, shape, np.dtype(np.uint8), int(np.prod(shape)), raw_dtype=kind
            )
        else:
            data = tensor.data
            writer.add_tensor_info(tensor.name, list(data.shape), data.dtype, data.nbytes, raw_dtype=kind)
        rest.append((tensor, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    scale = float(_value(change, "adapter.lora.alpha"))
    for done, (tensor, kind) in enumerate(rest, 1):
        data = tensor.data
        if f"{tensor.name}.lora_a" in low:
            a, b = (_floats(low[f"{tensor.name}.lora_{part}"]) for part in "ab")
            data = gguf.quants.quantize(_floats(tensor) + scale / len(a) * (b @ a), kind)
        writer.write_tensor_data(data)
        yield done, total
    writer.close()


def _read(path: Path) -> Any:
    try:
        return gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise MergeError(f"{path} cannot be read as GGUF: {error}") from None


def _value(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()


def _floats(tensor: Any) -> Any:
    """The values as float32 [rows, columns]."""
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    return values.reshape([int(n) for n in reversed(tensor.shape)])


def _target(name: str) -> str:
    return name.removesuffix(".lora_a").removesuffix(".lora_b")


def _copy_pairs(writer: Any, model: Any, change: Any) -> None:
    """Copy the header's pairs, those of the adapter that describe the result instead of the base's."""
    described = {key for key in change.fields if key.startswith("general.") or key == _TEMPLATE} - _OWN
    for reader in (change, model):
        for key, field in reader.fields.items():
            here = (key in described) if reader is change else (key not in described | _OWN)
            if here and not key.startswith("GGUF."):
                kind, *inner = field.types
                writer.add_key_value(key, field.contents(), kind, *inner[-1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--matrices", default=MATRICES, help="GGUF type of the changed matrices")
    options = parser.parse_args()
    try:
        for done, total in merge(options.base, options.adapter, options.out, options.matrices):
            sys.stdout.write(f"{done} {total}\n")
            sys.stdout.flush()
    except (MergeError, OSError, KeyError) as error:
        with suppress(OSError):
            options.out.unlink()
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
