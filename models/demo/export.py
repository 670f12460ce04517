"""Write Gemma 3 weights as a GGUF file that llama.cpp loads as `gemma3`, and read them back to train them further."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import gguf
import numpy as np
import torch
from model import Config
from numpy.typing import NDArray
from tokenizer import BOS, END_TURN, EOS, FIRST_BYTE, FIRST_PIECE, PAD, TURN, UNK, Vocabulary

Floats = NDArray[np.float32]
FileType = Literal["F32", "F16", "Q8_0"]

CHAT_TEMPLATE = (
    "{{ bos_token }}{% set ns = namespace(lead='') %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{% set ns.lead = message['content'] | trim + '\n\n' %}{% else %}"
    "{% set role = 'model' if message['role'] == 'assistant' else 'user' %}"
    "{{ '<start_of_turn>' + role + '\n' + ns.lead + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% set ns.lead = '' %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)

# llama.cpp's tensor name, the name here, and whether it is a norm (+1 is folded in).
_LAYER = (
    ("attn_q", "wq", False),
    ("attn_k", "wk", False),
    ("attn_v", "wv", False),
    ("attn_output", "wo", False),
    ("ffn_gate", "gate", False),
    ("ffn_up", "up", False),
    ("ffn_down", "down", False),
    ("attn_norm", "attn_norm", True),
    ("post_attention_norm", "attn_post", True),
    ("ffn_norm", "ffn_norm", True),
    ("post_ffw_norm", "ffn_post", True),
    ("attn_q_norm", "q_norm", True),
    ("attn_k_norm", "k_norm", True),
)


def _types(count: int) -> list[int]:
    kinds = [gguf.TokenType.NORMAL] * count
    for i in (PAD, EOS, BOS, TURN, END_TURN):
        kinds[i] = gguf.TokenType.CONTROL
    kinds[UNK] = gguf.TokenType.UNKNOWN
    for i in range(FIRST_BYTE, FIRST_PIECE):
        kinds[i] = gguf.TokenType.BYTE
    return [int(k) for k in kinds]


def write_gemma3_gguf(
    path: Path,
    *,
    config: Config,
    tensors: Mapping[str, Floats],
    tokenizer: Vocabulary,
    name: str,
    file_type: FileType = "Q8_0",
) -> None:
    """Write a model of any Gemma 3 shape.

    `tensors` are named as in `model.Gemma3.state_dict()` (float32, norms as offsets from one). Matrices are stored
    as `file_type` (Q8_0 needs row sizes divisible by 32), norms as F32. `tokenizer` must have `config.vocab` pieces,
    arranged as `tokenizer.py` does: specials, 256 bytes, then text.
    """
    if len(tokenizer.pieces) != config.vocab:
        raise ValueError(f"the tokenizer has {len(tokenizer.pieces)} pieces, the model {config.vocab}")
    w = gguf.GGUFWriter(str(path), "gemma3")
    w.add_name(name)
    w.add_license("Apache-2.0")
    w.add_description(
        "A small model trained from scratch on generated text; it shows what hearth does, it knows nothing."
    )
    w.add_file_type({"F32": 0, "F16": 1, "Q8_0": 7}[file_type])
    w.add_context_length(config.context)
    w.add_embedding_length(config.dim)
    w.add_block_count(config.layers)
    w.add_feed_forward_length(config.ffn)
    w.add_head_count(config.heads)
    w.add_head_count_kv(config.kv_heads)
    w.add_key_length(config.head_dim)
    w.add_value_length(config.head_dim)
    w.add_layer_norm_rms_eps(config.eps)
    w.add_rope_freq_base(config.rope_global)
    w.add_float32("gemma3.rope.freq_base_swa", config.rope_local)
    w.add_sliding_window(config.window)
    w.add_vocab_size(config.vocab)
    w.add_tokenizer_model("llama")
    w.add_token_list([p.encode() for p in tokenizer.pieces])
    w.add_token_scores(tokenizer.scores)
    w.add_token_types(_types(config.vocab))
    w.add_bos_token_id(BOS)
    w.add_eos_token_id(END_TURN)
    w.add_eot_token_id(END_TURN)
    w.add_unk_token_id(UNK)
    w.add_pad_token_id(PAD)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    w.add_add_space_prefix(False)
    w.add_chat_template(CHAT_TEMPLATE)

    def put(target: str, source: str, norm: bool) -> None:
        values = np.ascontiguousarray(tensors[source], dtype=np.float32)
        if norm:
            w.add_tensor(target, values + 1.0)
        elif file_type == "Q8_0":
            kind = gguf.GGMLQuantizationType.Q8_0
            w.add_tensor(target, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            w.add_tensor(target, values.astype(np.float16 if file_type == "F16" else np.float32))

    put("token_embd.weight", "embed.weight", norm=False)
    put("output_norm.weight", "norm.weight", norm=True)
    for i in range(config.layers):
        for target, source, norm in _LAYER:
            put(f"blk.{i}.{target}.weight", f"blocks.{i}.{source}.weight", norm)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def read_gemma3_gguf(path: Path) -> tuple[Config, dict[str, torch.Tensor]]:
    """Shape and weights of a file that `write_gemma3_gguf` wrote, as float32; what Q8_0 rounded away stays away."""
    reader = gguf.GGUFReader(str(path))

    def number(key: str) -> int:
        return int(reader.fields[f"gemma3.{key}"].contents())

    found = {t.name: t for t in reader.tensors}

    def get(name: str, norm: bool) -> torch.Tensor:
        t = found[name]
        values = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        return torch.from_numpy(values.reshape([int(n) for n in t.shape][::-1]) - float(norm))

    config = Config(
        vocab=int(found["token_embd.weight"].shape[1]),
        dim=number("embedding_length"),
        layers=number("block_count"),
        heads=number("attention.head_count"),
        kv_heads=number("attention.head_count_kv"),
        head_dim=number("attention.key_length"),
        ffn=number("feed_forward_length"),
        window=number("attention.sliding_window"),
        context=number("context_length"),
    )
    tensors = {
        "embed.weight": get("token_embd.weight", norm=False),
        "norm.weight": get("output_norm.weight", norm=True),
    }
    for i in range(config.layers):
        for target, source, norm in _LAYER:
            tensors[f"blocks.{i}.{source}.weight"] = get(f"blk.{i}.{target}.weight", norm)
    return config, tensors


def main() -> None:
    """Export a checkpoint of `train.py`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--type", choices=("F32", "F16", "Q8_0"), default="Q8_0")
    parser.add_argument(
        "--weights",
        choices=("auto", "model", "average"),
        default="auto",
        help="auto: the last weights of a run that decayed its rates to zero, else the running average",
    )
    parser.add_argument(
        "--blend",
        nargs=2,
        metavar=("GGUF", "SHARE"),
        help="average with so much of an earlier file's weights",
    )
    args = parser.parse_args()
    state = torch.load(args.checkpoint, weights_only=True, map_location="cpu")
    which = args.weights
    if which == "auto":
        which = "model" if state["decayed"] else "average"
    config, weights = Config(**state["config"]), state[which]
    if args.blend:
        shape, earlier = read_gemma3_gguf(Path(args.blend[0]))
        if shape != config:
            parser.error(f"{args.blend[0]} has another shape: {shape}")
        weights = {k: v.lerp(earlier[k], float(args.blend[1])) for k, v in weights.items()}
    write_gemma3_gguf(
        args.out,
        config=config,
        tensors={k: v.float().numpy() for k, v in weights.items()},
        tokenizer=Vocabulary.load(args.vocabulary),
        name="hearth demo",
        file_type=args.type,
    )
    print(f"{args.out}: {args.out.stat().st_size} bytes, {which} weights after {state['tokens']} tokens")


if __name__ == "__main__":
    main()
