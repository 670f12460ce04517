"""Write a Gemma 3 GGUF with random weights: real architecture, real tokenizer, meaningless text.

    python models/random_gemma.py OUT.gguf                      # tiny: 2 MB, loads in milliseconds
    python models/random_gemma.py OUT.gguf --shape 270m --vocabulary OTHER.gguf --type q4_0

Speed does not depend on the values of the weights, so benchmarks use the larger shapes with the vocabulary of
a real model file (``--vocabulary`` copies it, the 262,144 tokens of Gemma 3 and 4 for example). Without
``--vocabulary`` a small SentencePiece model is trained on the sample wiki of this project.
Needs the packages ``gguf`` and ``sentencepiece`` (extra ``dev``).
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import sentencepiece

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Shape:
    """Sizes of a Gemma 3 text model; names as in the GGUF keys."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    window: int
    context: int


@dataclass(frozen=True)
class Chat:
    """A chat template of this folder, the control tokens it wants, and the one that ends a turn."""

    file: str
    control: tuple[str, ...] = ("<start_of_turn>", "<end_of_turn>")
    end: str = "<end_of_turn>"

    @property
    def template(self) -> str:
        """The text of the template."""
        return (ROOT / "models" / self.file).read_text(encoding="utf-8")


_GEMMA_4 = ("turn", "tool", "tool_call", "tool_response", "channel")
CHATS = {
    "turns": Chat("gemma_turns.jinja"),  # Gemma 3: no tools
    "hermes": Chat("hermes_tools.jinja"),  # the markers of calls are plain text
    "tagged": Chat(
        "tagged_tools.jinja",
        (
            "<start_of_turn>",
            "<end_of_turn>",
            "<tool_call>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
        ),
    ),
    "gemma": Chat(
        "gemma_tools.jinja",  # the markers are control tokens
        (*(f"<|{name}>" for name in _GEMMA_4), *(f"<{name}|>" for name in _GEMMA_4), '<|"|>'),
        "<turn|>",
    ),
}

CHATS["code"] = Chat(
    "gemma_turns.jinja",
    (*Chat.control, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    "<end_of_turn>",
)

# tiny and wide are for tests, which need a prompt that takes seconds to read now and then; the other two are the
# published shapes of Gemma 3 270M and 1B.
SHAPES = {
    "tiny": Shape(6, 64, 2, 1, 32, 128, 256, 8192),
    "wide": Shape(10, 512, 8, 2, 64, 2048, 256, 8192),
    "270m": Shape(18, 640, 4, 1, 256, 2048, 512, 32768),
    "1b": Shape(26, 1152, 4, 1, 256, 6912, 512, 32768),
}
TYPES = {"f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0}
TYPES["q4_0"] = gguf.GGMLQuantizationType.Q4_0


def project_text() -> Iterator[str]:
    """Lines of the sample wiki in a fixed order. Prompts change too often, and every change would make other models."""
    for file in sorted((ROOT / "gateway/wiki/sample").glob("*.wiki")):
        yield from (line for line in file.read_text(encoding="utf-8").splitlines() if line.strip())


def train_vocabulary(
    lines: Iterable[str], size: int, control: Iterable[str]
) -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece model in Gemma's manner: byte fallback, no prefix space, and ``control`` tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type="bpe",
        byte_fallback=True,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        split_digits=True,
        character_coverage=0.9995,
        max_sentence_length=1 << 16,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        control_symbols=list(control),
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def add_trained_vocabulary(writer: gguf.GGUFWriter, size: int, chat: Chat) -> int:
    """Train a vocabulary and write it; returns its size."""
    pieces = train_vocabulary(project_text(), size, chat.control)
    tokens, scores, kinds = [], [], []
    for token in range(pieces.vocab_size()):
        kind = gguf.TokenType.NORMAL
        if pieces.is_unknown(token):
            kind = gguf.TokenType.UNKNOWN
        elif pieces.is_control(token):
            kind = gguf.TokenType.CONTROL
        elif pieces.is_byte(token):
            kind = gguf.TokenType.BYTE
        tokens.append(pieces.id_to_piece(token).encode())
        scores.append(pieces.get_score(token))
        kinds.append(kind)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(pieces.piece_to_id(chat.end))
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(chat.template)
    return len(tokens)


def copy_vocabulary(writer: gguf.GGUFWriter, source: Path) -> int:
    """Copy every ``tokenizer.*`` key of another GGUF; returns the size of its vocabulary."""
    reader = gguf.GGUFReader(source)
    size = 0
    has_template = False
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        value: Any = field.contents()
        kind = field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(key, value, kind, sub_type=field.types[-1])
        else:
            writer.add_key_value(key, value, kind)
        size = len(value) if key == "tokenizer.ggml.tokens" else size
        has_template |= key == "tokenizer.chat_template"
    if not has_template:
        writer.add_chat_template(CHATS["turns"].template)
    return size


def tensors(shape: Shape, vocabulary: int, seed: int) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Name, float32 values and whether to quantize, for every tensor of the model."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)).astype(
            np.float32
        )

    ones = np.ones
    yield "token_embd.weight", matrix(vocabulary, shape.width), True
    yield "output_norm.weight", ones(shape.width, np.float32), False
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            yield f"{block}{name}.weight", ones(shape.width, np.float32), False
        for name in ("attn_q_norm", "attn_k_norm"):
            yield f"{block}{name}.weight", ones(shape.head_width, np.float32), False
        yield f"{block}attn_q.weight", matrix(queries, shape.width), True
        yield f"{block}attn_k.weight", matrix(keys, shape.width), True
        yield f"{block}attn_v.weight", matrix(keys, shape.width), True
        yield f"{block}attn_output.weight", matrix(shape.width, queries), True
        yield f"{block}ffn_gate.weight", matrix(shape.feed_forward, shape.width), True
        yield f"{block}ffn_up.weight", matrix(shape.feed_forward, shape.width), True
        yield f"{block}ffn_down.weight", matrix(shape.width, shape.feed_forward), True


def write(
    target: Path,
    *,
    shape: str = "tiny",
    kind: str = "q8_0",
    vocabulary: Path | None = None,
    vocabulary_size: int = 2048,
    chat: str = "turns",
    seed: int = 1,
    architecture: str = "gemma3",
    details: Callable[[gguf.GGUFWriter], None] = lambda _: None,
) -> None:
    """Write the model to ``target``, through a temporary name so that a broken run leaves no half file.

    ``details`` adds what another ``architecture`` with the same tensors has in its header.
    """
    sizes = SHAPES[shape]
    partial = target.with_suffix(".partial")
    writer = gguf.GGUFWriter(partial, architecture)
    writer.add_name(f"random {architecture} {shape}")
    writer.add_context_length(sizes.context)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.feed_forward)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_key_length(sizes.head_width)
    writer.add_value_length(sizes.head_width)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_sliding_window(sizes.window)
    if vocabulary is None:
        tokens = add_trained_vocabulary(writer, vocabulary_size, CHATS[chat])
    else:
        tokens = copy_vocabulary(writer, vocabulary)
    writer.add_vocab_size(tokens)
    details(writer)
    for name, values, quantize in tensors(sizes, tokens, seed):
        if quantize:
            writer.add_tensor(name, gguf.quants.quantize(values, TYPES[kind]), raw_dtype=TYPES[kind])
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.replace(target)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    parser.add_argument("--type", choices=sorted(TYPES), default="q8_0")
    parser.add_argument("--vocabulary", type=Path, help="copy the tokenizer of this GGUF")
    parser.add_argument("--vocabulary-size", type=int, default=2048, help="of the trained tokenizer")
    parser.add_argument(
        "--chat", choices=sorted(CHATS), default="turns", help="chat template, with the trained tokenizer"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(
        arguments.target,
        shape=arguments.shape,
        kind=arguments.type,
        vocabulary=arguments.vocabulary,
        vocabulary_size=arguments.vocabulary_size,
        chat=arguments.chat,
        seed=arguments.seed,
    )
    print(f"{arguments.target}: {arguments.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
