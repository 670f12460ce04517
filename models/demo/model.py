"""The Gemma 3 text architecture in plain PyTorch, as llama.cpp's `gemma3` graph computes it.

Norm weights are stored as offsets from one and folded (+1) at export. Every sixth layer attends globally,
the others through a sliding window with a rope base of their own.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
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
    """The weight of a root-mean-square norm, stored as an offset from one; `normed` computes it."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))


# What lies between the products of matrices. Compiled for training, each of these is one pass over memory, and a
# step takes two thirds of the time; a whole layer takes minutes to compile and is not faster.


def normed(x: Tensor, weight: Tensor, eps: float, kind: torch.dtype) -> Tensor:
    """Root-mean-square norm of the last dimension, computed in float32, as `kind`."""
    y = x.float()
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * (1.0 + weight)).to(kind)


def added(x: Tensor, branch: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The residual stream x and the normed output of a layer's half."""
    return x + normed(branch, weight, eps, torch.float32)


def turned(x: Tensor, weight: Tensor, eps: float, scale: float, cos: Tensor, sin: Tensor) -> Tensor:
    """Norm, scale and rotary position embedding of x [batch, time, heads, head_dim]."""
    a, b = (normed(x, weight, eps, torch.float32) * scale).chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """GeGLU."""
    return (functional.gelu(gate.float(), approximate="tanh") * up.float()).to(up.dtype)


def weighed(scores: Tensor, bias: Tensor) -> Tensor:
    """Softmax of biased scores."""
    return (scores.float() + bias).softmax(-1).to(scores.dtype)


@dataclass(frozen=True)
class Passes:
    """The functions above, as they are or compiled."""

    normed: Callable[[Tensor, Tensor, float, torch.dtype], Tensor] = normed
    added: Callable[[Tensor, Tensor, Tensor, float], Tensor] = added
    turned: Callable[[Tensor, Tensor, float, float, Tensor, Tensor], Tensor] = turned
    gated: Callable[[Tensor, Tensor], Tensor] = gated
    weighed: Callable[[Tensor, Tensor], Tensor] = weighed

    @classmethod
    def compiled(cls) -> Passes | None:
        """For rows of few shapes; takes a minute at the first step. None where PyTorch cannot compile: without g++, or
        when it is installed under a path with blanks, from which it cannot link."""
        if shutil.which("g++") is None or " " in torch.__file__:
            return None
        each = [torch.compile(f, dynamic=False) for f in (normed, added, turned, gated)]
        return cls(*each, torch.compile(weighed, dynamic=True))


PLAIN = Passes()


def rope_tables(positions: Tensor, head_dim: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape [batch, time, 1, head_dim / 2] for positions [batch, time] (NEOX order)."""
    inverse = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device) / head_dim)
    angles = positions[:, :, None, None].float() * inverse
    return angles.cos(), angles.sin()


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, passes: Passes, size: int = 128) -> Tensor:
    """Attention in blocks of `size` queries over the keys up to the block's end; q [b, heads, t, d] is scaled, k and v
    [b, kv_heads, t, d], bias [b, t, t] is 0 where attention is allowed and far below elsewhere.

    On a CPU faster with a mask than PyTorch's fused kernel, also because what lies after a block is left out.
    """
    b, h, t, d = q.shape
    kv = k.shape[1]
    g = h // kv
    if q.is_cuda:
        k, v = (each.repeat_interleave(g, 1) for each in (k, v))
        return functional.scaled_dot_product_attention(q, k, v, bias[:, None].to(q.dtype), scale=1.0)
    q = q.view(b, kv, g, t, d)
    out = []
    for s in range(0, t, size):
        e = min(t, s + size)
        n = e - s
        scores = q[:, :, :, s:e].reshape(b, kv, g * n, d) @ k[:, :, :e].transpose(-1, -2)
        p = passes.weighed(scores.view(b, kv, g, n, e), bias[:, None, None, s:e, :e])
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
        self.attn_norm = RMSNorm(c.dim)
        self.attn_post = RMSNorm(c.dim)
        self.ffn_norm = RMSNorm(c.dim)
        self.ffn_post = RMSNorm(c.dim)
        self.q_norm = RMSNorm(c.head_dim)
        self.k_norm = RMSNorm(c.head_dim)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], bias: Tensor, passes: Passes) -> Tensor:
        """x [batch, time, dim]; bias [batch, time, time] as in `attend`."""
        c = self.config
        b, t, _ = x.shape
        kind = (
            torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        )
        h = passes.normed(x, self.attn_norm.weight, c.eps, kind)
        q = self.wq(h).view(b, t, c.heads, c.head_dim)
        k = self.wk(h).view(b, t, c.kv_heads, c.head_dim)
        v = self.wv(h).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        q = passes.turned(q, self.q_norm.weight, c.eps, c.head_dim**-0.5, *rope).transpose(1, 2)
        k = passes.turned(k, self.k_norm.weight, c.eps, 1.0, *rope).transpose(1, 2)
        a = attend(q, k, v, bias, passes)
        a = self.wo(a.transpose(1, 2).reshape(b, t, c.heads * c.head_dim))
        x = passes.added(x, a, self.attn_post.weight, c.eps)
        h = passes.normed(x, self.ffn_norm.weight, c.eps, kind)
        h = self.down(passes.gated(self.gate(h), self.up(h)))
        return passes.added(x, h, self.ffn_post.weight, c.eps)


class Gemma3(nn.Module):
    """Decoder with tied, scaled embeddings."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)
        nn.init.normal_(self.embed.weight, std=config.dim**-0.5)
        for name, p in self.named_parameters():
            if p.ndim == 2 and not name.startswith("embed"):
                nn.init.normal_(p, std=p.shape[1] ** -0.5)

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, passes: Passes = PLAIN) -> Tensor:
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
            x = block(x, wide if g else local, everywhere if g else nearby, passes)
        return normed(x, self.norm.weight, c.eps, x.dtype)

    def logits(self, states: Tensor) -> Tensor:
        """Scores over the vocabulary for states [..., dim]."""
        return functional.linear(states, self.embed.weight)


def causal_mask(length: int) -> Tensor:
    """Plain causal mask [1, length, length] for one sequence."""
    return torch.ones(length, length, dtype=torch.bool).tril()[None]


def parameter_count(model: nn.Module) -> int:
    """Number of trainable values (tied embeddings counted once)."""
    return sum(p.numel() for p in model.parameters())
