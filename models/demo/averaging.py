"""Several training processes of one thread each, on other batches, whose weights are averaged now and then.

Local SGD (Stich 2018, arXiv 1805.09767): with matrices as small as these, two processes get far more done than two
threads of one, and they need to meet only seldom. The states of the optimizers are not averaged.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

EVERY = 16  # steps between two averages
_PATIENCE = timedelta(hours=3)  # a machine may pause one of the processes for long


class Averager:
    """The meeting of `processes` processes; one alone meets itself after every step."""

    def __init__(self, rank: int, processes: int, store: Path) -> None:
        """`store` is a file of this run that does not exist yet when the first process gets here."""
        self.processes = processes
        if processes > 1:
            dist.init_process_group(
                "gloo", init_method=f"file://{store}", rank=rank, world_size=processes, timeout=_PATIENCE
            )

    def due(self, step: int) -> bool:
        """Whether the processes meet before this step of their call."""
        return self.processes == 1 or step % EVERY == 0

    @torch.no_grad()
    def mean(self, model: nn.Module, numbers: list[float]) -> list[float]:
        """Give every process the mean of the weights; returns that of the numbers."""
        if self.processes == 1:
            return numbers
        weights = list(model.parameters())
        flat = torch.cat([*(w.flatten().cpu() for w in weights), torch.tensor(numbers)])
        dist.all_reduce(flat)
        flat /= self.processes
        for weight, part in zip(
            weights, flat.split([w.numel() for w in weights] + [len(numbers)]), strict=False
        ):
            weight.copy_(part.view_as(weight))
        return [float(n) for n in flat[-len(numbers) :]]
