"""Write a BERT GGUF with random weights: a tiny encoder, real architecture, meaningless scores or vectors.

    python models/random_bert.py OUT.gguf                 # a reranker
    python models/random_bert.py OUT.gguf --pieces        # a reranker with XLM-RoBERTa's kind of vocabulary
    python models/random_bert.py OUT.gguf --pooling cls   # a sentence encoder

It is made in the published form and converted by ``models/bert_gguf.py``.
"""

from __future__ import annotations

import argparse
import json
import string
import tempfile
from pathlib import Path

import bert_gguf
import gguf
import numpy as np

CONFIG = {
    "max_position_embeddings": 512,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 1,
}
_SIGNS = [*string.ascii_lowercase, *string.digits, *string.punctuation]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_SIGNS, *(f"##{sign}" for sign in _SIGNS)]


def shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors."""
    width, wide = 32, 64
    norm = {"LayerNorm.weight": (width,), "LayerNorm.bias": (width,)}
    square = {"weight": (width, width), "bias": (width,)}
    found: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (len(VOCABULARY), width),
        "bert.embeddings.position_embeddings.weight": (512, width),
        "bert.embeddings.token_type_embeddings.weight": (1, width),
        **{f"bert.embeddings.{name}": shape for name, shape in norm.items()},
        **{f"bert.pooler.dense.{name}": shape for name, shape in square.items()},
        "classifier.weight": (1, width),
        "classifier.bias": (1,),
    }
    for layer in range(2):
        start = f"bert.encoder.layer.{layer}"
        for part in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ):
            found |= {f"{start}.{part}.{name}": shape for name, shape in square.items()}
        found |= {f"{start}.attention.output.{name}": shape for name, shape in norm.items()}
        found |= {
            f"{start}.intermediate.dense.weight": (wide, width),
            f"{start}.intermediate.dense.bias": (wide,),
        }
        found |= {f"{start}.output.dense.weight": (width, wide), f"{start}.output.dense.bias": (width,)}
        found |= {f"{start}.output.{name}": shape for name, shape in norm.items()}
    return found


def add_pieces(writer: gguf.GGUFWriter, path: Path) -> None:
    """A SentencePiece vocabulary with the control tokens of XLM-RoBERTa, in the place of the WordPiece one."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *_SIGNS]
    tokens += [f"<extra{number}>" for number in range(len(VOCABULARY) - len(tokens))]
    kinds = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.UNKNOWN]
    kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds))
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([-1.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(True)
    writer.add_bos_token_id(0)
    writer.add_pad_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_sep_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def write(target: Path, *, pooling: str = "rank", pieces: bool = False, seed: int = 1) -> None:
    """Write the model to ``target``; its ``pooling`` is rank, cls or mean."""
    architecture = "BertForSequenceClassification" if pooling == "rank" else "BertModel"
    chance = np.random.default_rng(seed)
    header, data, at = {}, [], 0
    for name, shape in shapes().items():
        values = chance.normal(1.0 if name.endswith("Norm.weight") else 0.0, 0.2, shape).astype("<f4")
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + values.nbytes]}
        data.append(values.tobytes())
        at += values.nbytes
    head = json.dumps(header).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps({**CONFIG, "architectures": [architecture]}))
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
        (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + b"".join(data))
        vocabulary = add_pieces if pieces else bert_gguf.add_vocabulary
        bert_gguf.write(folder, target, pooling=gguf.PoolingType[pooling.upper()], add_vocabulary=vocabulary)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("--pooling", choices=("rank", "cls", "mean"), default="rank")
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.target, pooling=arguments.pooling, pieces=arguments.pieces, seed=arguments.seed)
    print(f"{arguments.target}: {arguments.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
