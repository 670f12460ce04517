"""A Gemma 3 or Llama from its GGUF, frozen, with LoRA adapters on the matrices of every layer."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from model import Config, Gemma3, Llama, Model
from torch import Tensor, nn
from torch.nn import functional

TEMPLATE = Path(__file__).resolve().parent.parent / "gemma_turns.jinja"
# Names of a layer's matrices and norms in GGUF, and here.
_MATRICES = {
    "attn_q": "wq", "attn_k": "wk", "attn_v": "wv", "attn_output": "wo",
    "ffn_gate": "gate", "ffn_up": "up", "ffn_down": "down",
}  # fmt: skip
_NORMS = {
    "attn_norm": "attn_norm", "post_attention_norm": "attn_post", "ffn_norm": "ffn_norm",
    "post_ffw_norm": "ffn_post", "attn_q_norm": "q_norm", "attn_k_norm": "k_norm",
}  # fmt: skip


def as_q4_0(weight: Tensor) -> Tensor:
    """The values of a float32 matrix as Q4_0 stores them: blocks of 32 with one scale. As `gguf.quants` rounds."""
    blocks = weight.view(-1, 32)
    largest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = largest / -8
    inverse = torch.where(scale == 0, 0, 1 / scale)
    steps = (blocks * inverse + 8.5).trunc().clamp(0, 15) - 8
    return (scale.half().float() * steps).view_as(weight)


class Lora(nn.Module):
    """A frozen matrix and the low-rank change that is trained.

    ``rounded``: compute with the sum as Q4_0 rounds it, the type of the merged model. The gradient passes the rounding
    as if it were not there. Costs the full product of a and b, so it is for a GPU, where a step has many tokens.
    """

    def __init__(self, weight: Tensor, rank: int, alpha: float, rounded: bool, kind: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight if rounded else weight.to(kind), requires_grad=False)
        self.a = nn.Parameter(torch.randn(rank, weight.shape[1]) * weight.shape[1] ** -0.5)
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank))
        self.scale = alpha / rank
        self.rounded = rounded
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.kind)
        if self.rounded:
            whole = self.weight + self.scale * (self.b @ self.a)
            whole = whole + (as_q4_0(whole.detach()) - whole).detach()
            return functional.linear(x, whole.to(x.dtype))
        low = functional.linear(x, self.a.to(x.dtype))
        return functional.linear(x, self.weight) + functional.linear(low, (self.b * self.scale).to(x.dtype))


def load(path: Path, rank: int, alpha: float, rounded: bool, device: str) -> Model:
    """The base of a GGUF, dequantized, with adapters that change nothing yet."""
    # Without instructions for bfloat16, a core multiplies it some ten times as slowly as float32.
    fast = device != "cpu" or torch.cpu._is_avx512_bf16_supported()
    kind = torch.bfloat16 if fast else torch.float32
    reader = gguf.GGUFReader(path)
    tensors = {each.name: each for each in reader.tensors}
    architecture = str(reader.fields["general.architecture"].contents())

    def size(key: str, otherwise: int = 0) -> int:
        field = reader.fields.get(f"{architecture}.{key}")
        return int(field.contents()) if field else otherwise

    def get(name: str) -> Tensor:
        each = tensors[name]
        values = gguf.quants.dequantize(each.data, each.tensor_type).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(values.reshape([int(n) for n in each.shape][::-1])))

    dim, heads = size("embedding_length"), size("attention.head_count")
    config = Config(
        vocab=int(tensors["token_embd.weight"].shape[1]), dim=dim, layers=size("block_count"), heads=heads,
        kv_heads=size("attention.head_count_kv"), head_dim=size("attention.key_length", dim // heads),
        window=size("attention.sliding_window"), rope_global=size("rope.freq_base"),
        eps=float(reader.fields[f"{architecture}.attention.layer_norm_rms_epsilon"].contents()), kind=kind,
    )  # fmt: skip
    with torch.device("meta"):
        model = {"gemma3": Gemma3, "llama": Llama}[architecture](config)
    model.embed = nn.Embedding.from_pretrained(get("token_embd.weight").to(kind), freeze=True)
    model.norm.weight = nn.Parameter(get("output_norm.weight") - 1, requires_grad=False)
    for i, block in enumerate(model.blocks):
        for name, attribute in _MATRICES.items():
            setattr(block, attribute, Lora(get(f"blk.{i}.{name}.weight"), rank, alpha, rounded, kind))
        for name, attribute in _NORMS.items():
            if (key := f"blk.{i}.{name}.weight") in tensors:  # Llama has two of them
                getattr(block, attribute).weight = nn.Parameter(get(key) - 1, requires_grad=False)
    return model.to(device)


def adapter(model: nn.Module) -> dict[str, nn.Parameter]:
    """What is trained, by name."""
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def read_adapter(path: Path, values: dict[str, nn.Parameter]) -> None:
    """Set ``values`` to those of an adapter that :func:`write_adapter` wrote with the same rank."""
    given = {each.name: each for each in gguf.GGUFReader(path).tensors}
    for key, value in values.items():
        each = given[_name(key)]
        data = np.asarray(each.data, np.float32).reshape([int(n) for n in each.shape][::-1])
        value.data.copy_(torch.from_numpy(data))


def _name(key: str) -> str:
    """The tensor's name in GGUF for a parameter's."""
    _, layer, attribute, part = key.split(".")
    names = {here: name for name, here in _MATRICES.items()}
    return f"blk.{layer}.{names[attribute]}.weight.lora_{part}"


def write_adapter(path: Path, base: Path, values: dict[str, Tensor], rank: int, alpha: float) -> None:
    """A GGUF that llama.cpp loads beside the base."""
    fields = gguf.GGUFReader(base).fields
    architecture = str(fields["general.architecture"].contents())
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    # These describe the merged model (`model_host/engine/merge.py`). The base of Gemma has no chat template.
    if architecture == "gemma3":
        writer.add_name("Gemma 3 270M, adapted for hearth")
        writer.add_license("gemma")
        writer.add_chat_template(TEMPLATE.read_text("utf-8"))
    else:
        writer.add_name("SmolLM2 135M Instruct, adapted for hearth")
        writer.add_license("apache-2.0")
    for key, value in values.items():
        writer.add_tensor(_name(key), value.detach().float().cpu().numpy().astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
