"""Gemma 3 and Llama in plain PyTorch, as llama.cpp's graphs compute them; :func:`lora.load` sets the matrices.

Residual streams are float32, products of matrices `Config.kind`. Norm weights are stored as offsets from one.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    """Shape of a model; sizes are in units of one element, `window` in tokens."""

    vocab: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int
    rope_global: float
    eps: float
    kind: torch.dtype
    rope_local: float = 10_000.0
    pattern: int = (
        6  # every so many layers of Gemma 3, one sees the whole context instead of the sliding window
    )


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
    """One layer: attention and a gated unit, each after a norm."""

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

    def split(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of h [batch, time, dim] as [batch, time, heads, head_dim]."""
        c = self.config
        sizes = ((self.wq, c.heads), (self.wk, c.kv_heads), (self.wv, c.kv_heads))
        q, k, v = (matrix(h).unflatten(-1, (heads, c.head_dim)) for matrix, heads in sizes)
        return q, k, v


class GemmaBlock(Block):
    """GeGLU, and a norm behind each half."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.attn_post = RMSNorm(config.dim)
        self.ffn_post = RMSNorm(config.dim)
        self.q_norm = RMSNorm(config.head_dim)
        self.k_norm = RMSNorm(config.head_dim)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], bias: Tensor, passes: Passes) -> Tensor:
        """x [batch, time, dim]; bias [batch, time, time] as in `attend`."""
        c = self.config
        q, k, v = self.split(passes.normed(x, self.attn_norm.weight, c.eps, c.kind))
        q = passes.turned(q, self.q_norm.weight, c.eps, c.head_dim**-0.5, *rope).transpose(1, 2)
        k = passes.turned(k, self.k_norm.weight, c.eps, 1.0, *rope).transpose(1, 2)
        a = attend(q, k, v.transpose(1, 2), bias, passes)
        x = passes.added(x, self.wo(a.transpose(1, 2).flatten(2)), self.attn_post.weight, c.eps)
        h = passes.normed(x, self.ffn_norm.weight, c.eps, c.kind)
        h = self.down(passes.gated(self.gate(h), self.up(h)))
        return passes.added(x, h, self.ffn_post.weight, c.eps)


class LlamaBlock(Block):
    """SwiGLU."""

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], bias: Tensor, passes: Passes) -> Tensor:
        """x [batch, time, dim]; bias [batch, time, time] as in `attend`."""
        c = self.config
        q, k, v = self.split(passes.normed(x, self.attn_norm.weight, c.eps, c.kind))
        q, k = (self.turned(each, *rope).transpose(1, 2) for each in (q, k))
        a = attend(q * c.head_dim**-0.5, k, v.transpose(1, 2), bias, passes)
        x = x + self.wo(a.transpose(1, 2).flatten(2))
        h = passes.normed(x, self.ffn_norm.weight, c.eps, c.kind)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))

    @staticmethod
    def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotary position embedding of x [batch, time, heads, head_dim], whose pairs are neighbours in a GGUF."""
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)


class Model(nn.Module):
    """Decoder with tied embeddings."""

    block: type[Block]

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.blocks = nn.ModuleList(self.block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, passes: Passes = PLAIN) -> Tensor:
        """Normed final states [batch, time, dim]; mask [batch, time, time] holds causality and branches."""
        raise NotImplementedError


class Gemma3(Model):
    """Its embeddings are scaled, and most layers see a sliding window with a rope base of their own."""

    block = GemmaBlock

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, passes: Passes = PLAIN) -> Tensor:
        c = self.config
        x = self.embed(ids).float() * math.sqrt(c.dim)
        near = (positions[:, :, None] - positions[:, None, :]) < c.window
        local = rope_tables(positions, c.head_dim, c.rope_local), torch.where(mask & near, 0.0, -1e9)
        wide = rope_tables(positions, c.head_dim, c.rope_global), torch.where(mask, 0.0, -1e9)
        for i, block in enumerate(self.blocks):
            x = block(x, *(wide if i % c.pattern == c.pattern - 1 else local), passes)
        return normed(x, self.norm.weight, c.eps, c.kind)


class Llama(Model):
    """SmolLM2's architecture."""

    block = LlamaBlock

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, passes: Passes = PLAIN) -> Tensor:
        c = self.config
        x = self.embed(ids).float()
        rope, bias = rope_tables(positions, c.head_dim, c.rope_global), torch.where(mask, 0.0, -1e9)
        for block in self.blocks:
            x = block(x, rope, bias, passes)
        return normed(x, self.norm.weight, c.eps, c.kind)
