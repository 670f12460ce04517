"""Convert a BERT sentence encoder or cross encoder (safetensors, WordPiece vocabulary) to GGUF.

    python models/bert_gguf.py FOLDER OUT.gguf

The folder holds ``config.json``, ``vocab.txt`` and ``model.safetensors``. The vector of a text is the mean over its
tokens, or the first token's with ``--cls``; a cross encoder has a score. Needs the package ``gguf`` (extra ``dev``).

llama.cpp gives every token the embedding of the first segment. The scores of a cross encoder that was trained with two
segments (``type_vocab_size`` 2, as ms-marco-MiniLM) therefore differ from the original's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np

_DTYPES = {"F32": np.float32, "F16": np.float16}
# Heads of the training tasks and constants, which no vector of a text depends on.
_UNUSED = ("embeddings.position_ids", "cls.")
# Of a cross encoder; a sentence encoder does not use its pooler.
_HEAD = {
    "pooler.dense.weight": "cls.weight",
    "pooler.dense.bias": "cls.bias",
    "classifier.weight": "cls.output.weight",
    "classifier.bias": "cls.output.bias",
}
_CONTROL = {"[PAD]": "pad", "[UNK]": "unk", "[CLS]": "bos", "[SEP]": "sep", "[MASK]": "mask"}


def tensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of a safetensors file: the length of a JSON header, the header, and the data."""
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = data[start + begin : start + end]
        if not name.removeprefix("bert.").startswith(_UNUSED):
            yield name.removeprefix("bert."), values.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])


def add_vocabulary(writer: gguf.GGUFWriter, path: Path) -> None:
    """WordPiece as llama.cpp wants it: the beginnings of words are marked instead of their continuations."""
    words = path.read_text(encoding="utf-8").splitlines()
    tokens = [
        word if word in _CONTROL else word[2:] if word.startswith("##") else f"\u2581{word}" for word in words
    ]
    kinds = [gguf.TokenType.CONTROL if word in _CONTROL else gguf.TokenType.NORMAL for word in words]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    for word, name in _CONTROL.items():
        getattr(writer, f"add_{name}_token_id")(words.index(word))


def write(
    folder: Path,
    target: Path,
    *,
    pooling: gguf.PoolingType = gguf.PoolingType.MEAN,
    add_vocabulary: Callable[[gguf.GGUFWriter, Path], None] = add_vocabulary,
) -> None:
    """Write the model to ``target``: matrices in F16, all else in F32. ``pooling`` is that of a sentence encoder."""
    config = json.loads((folder / "config.json").read_text())
    scores = "BertForSequenceClassification" in config.get("architectures", ())
    pooling = gguf.PoolingType.RANK if scores else pooling
    writer = gguf.GGUFWriter(target, "bert")
    writer.add_name(target.stem)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_token_type_count(config["type_vocab_size"])
    add_vocabulary(writer, folder / "vocab.txt")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, values in tensors(folder / "model.safetensors"):
        if name in _HEAD and not scores:
            continue
        ours = _HEAD.get(name) or names.get_name(name, try_suffixes=(".weight", ".bias"))
        if ours is None:
            raise ValueError(f"{name} is no tensor of a BERT encoder")
        matrix = (
            values.ndim == 2
            and name not in _HEAD
            and "position_embd" not in ours
            and "token_types" not in ours
        )
        writer.add_tensor(ours, values.astype(np.float16 if matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--cls", action="store_true", help="the first token's vector instead of the mean")
    arguments = parser.parse_args()
    pooling = gguf.PoolingType.CLS if arguments.cls else gguf.PoolingType.MEAN
    write(arguments.folder, arguments.target, pooling=pooling)


if __name__ == "__main__":
    main()
