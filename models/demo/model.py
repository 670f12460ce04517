"""The Gemma 3 text architecture in plain PyTorch, as llama.cpp's `gemma3` graph computes it.

Norm weights are stored as offsets from one and folded (+1) at export. Every sixth layer attends globally,
the others through a sliding window with a rope base of their own.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    """Shape of a Gemma 3 text model; sizes are in units of one element, `window` and `context` in tokens."""

    vocab: int = 4096
    dim: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 640
    window: int = 512
    context: int = 4096
    rope_local: float = 10_000.0
    rope_global: float = 1_000_000.0
    eps: float = 1e-6
    pattern: int = 6

    def is_global(self, layer: int) -> bool:
        """Whether this layer sees the whole context instead of the sliding window."""
        return layer % self.pattern == self.pattern - 1

    def as_dict(self) -> dict[str, float | int]:
        """A plain dictionary for checkpoints."""
        return asdict(self)


class RMSNorm(nn.Module):
    """Root-mean-square norm with the weight stored as an offset from one."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).to(x.dtype)


def rope_tables(positions: Tensor, head_dim: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape [batch, 1, time, head_dim] for positions [batch, time] (NEOX order)."""
    inverse = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device) / head_dim)
    angles = positions[:, None, :, None].float() * inverse
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of x [batch, heads, time, head_dim]."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, size: int = 128) -> Tensor:
    """Attention in blocks of `size` queries over the keys up to the block's end; q [b, heads, t, d], k and v
    [b, kv_heads, t, d], bias [b, t, t] is 0 where attention is allowed and far below elsewhere.

    On a CPU faster with a mask than PyTorch's fused kernel, also because what lies after a block is left out.
    """
    b, h, t, d = q.shape
    kv = k.shape[1]
    g = h // kv
    q = (q * d**-0.5).view(b, kv, g, t, d)
    out = []
    for s in range(0, t, size):
        e = min(t, s + size)
        n = e - s
        scores = q[:, :, :, s:e].reshape(b, kv, g * n, d) @ k[:, :, :e].transpose(-1, -2)
        p = (scores.view(b, kv, g, n, e).float() + bias[:, None, None, s:e, :e]).softmax(-1).to(v.dtype)
        out.append((p.view(b, kv, g * n, e) @ v[:, :, :e]).view(b, kv, g, n, d))
    return torch.cat(out, 3).view(b, h, t, d)


class Block(nn.Module):
    """One layer: attention and GeGLU, each between a pre-norm and a post-norm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        c = config
        self.config = c
        self.wq = nn.Linear(c.dim, c.heads * c.head_dim, bias=False)
        self.wk = nn.Linear(c.dim, c.kv_heads * c.head_dim, bias=False)
        self.wv = nn.Linear(c.dim, c.kv_heads * c.head_dim, bias=False)
        self.wo = nn.Linear(c.heads * c.head_dim, c.dim, bias=False)
        self.gate = nn.Linear(c.dim, c.ffn, bias=False)
        self.up = nn.Linear(c.dim, c.ffn, bias=False)
        self.down = nn.Linear(c.ffn, c.dim, bias=False)
        self.attn_norm = RMSNorm(c.dim, c.eps)
        self.attn_post = RMSNorm(c.dim, c.eps)
        self.ffn_norm = RMSNorm(c.dim, c.eps)
        self.ffn_post = RMSNorm(c.dim, c.eps)
        self.q_norm = RMSNorm(c.head_dim, c.eps)
        self.k_norm = RMSNorm(c.head_dim, c.eps)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], bias: Tensor) -> Tensor:
        """x [batch, time, dim]; bias [batch, time, time] as in `attend`."""
        c = self.config
        b, t, _ = x.shape
        h = self.attn_norm(x)
        q = self.wq(h).view(b, t, c.heads, c.head_dim).transpose(1, 2)
        k = self.wk(h).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        v = self.wv(h).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        q = rotate(self.q_norm(q), *rope)
        k = rotate(self.k_norm(k), *rope)
        a = attend(q, k, v.to(q.dtype), bias)
        a = self.wo(a.transpose(1, 2).reshape(b, t, c.heads * c.head_dim))
        x = x + self.attn_post(a)
        h = self.ffn_norm(x)
        h = self.down(functional.gelu(self.gate(h), approximate="tanh") * self.up(h))
        return x + self.ffn_post(h)


class Gemma3(nn.Module):
    """Decoder with tied, scaled embeddings."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim, config.eps)
        nn.init.normal_(self.embed.weight, std=config.dim**-0.5)
        for name, p in self.named_parameters():
            if p.ndim == 2 and not name.startswith("embed"):
                nn.init.normal_(p, std=p.shape[1] ** -0.5)

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Normed final states [batch, time, dim]; mask [batch, time, time] holds causality and branches."""
        c = self.config
        x = self.embed(ids) * math.sqrt(c.dim)
        local = rope_tables(positions, c.head_dim, c.rope_local)
        wide = rope_tables(positions, c.head_dim, c.rope_global)
        near = (positions[:, :, None] - positions[:, None, :]) < c.window
        everywhere = torch.where(mask, 0.0, -1e9)
        nearby = torch.where(mask & near, 0.0, -1e9)
        for i, block in enumerate(self.blocks):
            g = c.is_global(i)
            x = block(x, wide if g else local, everywhere if g else nearby)
        return self.norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """Scores over the vocabulary for states [..., dim]."""
        return functional.linear(states, self.embed.weight)


def causal_mask(length: int) -> Tensor:
    """Plain causal mask [1, length, length] for one sequence."""
    return torch.ones(length, length, dtype=torch.bool).tril()[None]


def parameter_count(model: nn.Module) -> int:
    """Number of trainable values (tied embeddings counted once)."""
    return sum(p.numel() for p in model.parameters())
