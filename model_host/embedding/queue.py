"""Decides which texts are embedded next, without clock or model.

Lanes are served interactive > retrieval > background, and waiting raises a request. A batch has texts of only one lane,
so that a short question is never in a batch with a long import. Inside a lane the owner with the fewest tokens served
goes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from model_host.batching.request import aged_lane
from model_host.protocol import Lane


@dataclass(slots=True, eq=False)
class Job:
    """An open ``embed`` request. The first ``len(vectors)`` of its texts are done."""

    id: str
    lane: Lane
    owner: str
    texts: list[list[int]]  # tokens of each
    normalize: bool
    dimensions: int
    arrived: float  # monotonic seconds
    vectors: list[bytes] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return len(self.vectors) == len(self.texts)


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of ``job`` in a batch."""

    job: Job
    tokens: list[int]


class EmbedQueue:
    """Open jobs. A batch has at most ``sequences`` texts and ``budget`` tokens, or one text that is longer."""

    def __init__(self, *, budget: int, sequences: int) -> None:
        self.jobs: list[Job] = []
        self._budget = budget
        self._sequences = sequences
        self._served: dict[str, int] = {}  # tokens by owner with open jobs

    def add(self, job: Job) -> None:
        """Queue a job whose texts all fit the model. A new owner starts with the lowest count of tokens served."""
        if job.owner not in self._served:
            self._served[job.owner] = min(self._served.values(), default=0)
        self.jobs.append(job)

    def remove(self, job: Job) -> None:
        self.jobs.remove(job)
        if all(other.owner != job.owner for other in self.jobs):
            del self._served[job.owner]

    def plan(self, now: float) -> list[Piece]:
        """Return the next batch: texts of each job in their order; empty when no job is open."""
        order = sorted(self.jobs, key=lambda job: self._rank(job, now))
        pieces: list[Piece] = []
        room = self._budget
        for job in order:
            if aged_lane(job.lane, job.arrived, now) != aged_lane(order[0].lane, order[0].arrived, now):
                break
            for tokens in job.texts[len(job.vectors) :]:
                if pieces and (len(tokens) > room or len(pieces) == self._sequences):
                    return pieces
                pieces.append(Piece(job, tokens))
                room -= len(tokens)
        return pieces

    def advance(self, piece: Piece, vector: bytes) -> None:
        """Add a computed vector to its job."""
        piece.job.vectors.append(vector)
        self._served[piece.job.owner] += len(piece.tokens)

    def _rank(self, job: Job, now: float) -> tuple[int, int, float]:
        return aged_lane(job.lane, job.arrived, now), self._served[job.owner], job.arrived
