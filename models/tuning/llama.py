"""The Llama architecture in plain PyTorch, as llama.cpp's `llama` graph computes it: SmolLM2's."""

from __future__ import annotations

import torch
from model import PLAIN, Config, Passes, RMSNorm, attend, normed, rope_tables
from torch import Tensor, nn
from torch.nn import functional


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of x [batch, time, heads, head_dim], whose pairs are neighbours in a GGUF."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)


class LlamaBlock(nn.Module):
    """One layer: attention and SwiGLU, each after a norm; its matrices are set by :func:`lora.load`."""

    wq: nn.Module
    wk: nn.Module
    wv: nn.Module
    wo: nn.Module
    gate: nn.Module
    up: nn.Module
    down: nn.Module

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.attn_norm = RMSNorm(config.dim)
        self.ffn_norm = RMSNorm(config.dim)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], bias: Tensor, passes: Passes) -> Tensor:
        """x [batch, time, dim]; bias [batch, time, time] as in `attend`."""
        c = self.config
        b, t, _ = x.shape
        h = passes.normed(x, self.attn_norm.weight, c.eps, torch.bfloat16)
        q = turned(self.wq(h).view(b, t, c.heads, c.head_dim), *rope).transpose(1, 2) * c.head_dim**-0.5
        k = turned(self.wk(h).view(b, t, c.kv_heads, c.head_dim), *rope).transpose(1, 2)
        v = self.wv(h).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        a = attend(q, k, v, bias, passes).transpose(1, 2).reshape(b, t, c.heads * c.head_dim)
        x = x + self.wo(a)
        h = passes.normed(x, self.ffn_norm.weight, c.eps, torch.bfloat16)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Decoder with tied embeddings; its residual stream is float32 and its products are bfloat16."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, passes: Passes = PLAIN) -> Tensor:
        """Normed final states [batch, time, dim]; mask [batch, time, time] holds causality and branches."""
        c = self.config
        x = self.embed(ids).float()
        rope = rope_tables(positions, c.head_dim, c.rope_global)
        bias = torch.where(mask, 0.0, -1e9)
        for block in self.blocks:
            x = block(x, rope, bias, passes)
        return normed(x, self.norm.weight, c.eps, torch.bfloat16)
