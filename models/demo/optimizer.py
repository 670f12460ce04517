"""Muon for the matrices of the layers, AdamW for the rest.

Muon: the momentum of each matrix is replaced by its nearest semi-orthogonal matrix (five Newton-Schulz steps,
coefficients of Keller Jordan's public description) before the step.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn


def orthogonalize(g: Tensor, steps: int = 5) -> Tensor:
    """Approximate U Vᵀ of a stack of matrices [n, rows, cols]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[1] > g.shape[2]
    x = g.mT if tall else g
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
    for _ in range(steps):
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    x = x.float()
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Orthogonalized momentum over two-dimensional parameters; equal shapes are stepped as one stack."""

    def __init__(
        self, params: list[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            shapes: defaultdict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    shapes[p.shape].append(p)
            for shape, params in shapes.items():
                pushed = []
                for p in params:
                    state = self.state[p]
                    if "buffer" not in state:
                        state["buffer"] = torch.zeros_like(p)
                    buffer = state["buffer"].mul_(group["momentum"]).add_(p.grad)
                    pushed.append(p.grad + group["momentum"] * buffer)
                update = orthogonalize(torch.stack(pushed))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for p, u in zip(params, update, strict=True):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(u, alpha=-group["lr"] * scale)


def optimizers(model: nn.Module, muon_lr: float, adam_lr: float) -> list[torch.optim.Optimizer]:
    """Muon over the layers' matrices and AdamW over embeddings and norms."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and not n.startswith("embed")]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or n.startswith("embed")]
    return [
        Muon(matrices, muon_lr, decay=0.01),
        torch.optim.AdamW(rest, adam_lr, betas=(0.9, 0.98), weight_decay=0.0),
    ]
