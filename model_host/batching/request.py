"""A generation as the scheduler sees it: plain values, no model code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from model_host.batching.drafts import Drafter
from model_host.batching.slots import Marks, Slot
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.protocol import Failed, Lane, TokenLogprob
from model_host.replies.reply import DeltaBuffer, Reply

LANE_RANK: dict[Lane, int] = {"interactive": 0, "retrieval": 1, "background": 2}
AGING_SECONDS = 20.0


def aged_lane(lane: Lane, arrived: float, now: float) -> int:
    """Rank of a request's lane, smaller first. Waiting raises it by one lane every :data:`AGING_SECONDS`."""
    return max(0, LANE_RANK[lane] - int(max(0.0, now - arrived) / AGING_SECONDS))


class Sampler(Protocol):
    """Samples the tokens of one sequence; holds the state of its penalties, grammar and random numbers."""

    seed: int
    closed: bool  # the limit of tokens made it end the text

    def sample(self, row: int, left: int) -> int:
        """The next token, the first of ``left``, from output row ``row`` of the last batch."""
        ...

    def constrain(self) -> None:
        """Apply a lazy grammar from the next token on."""

    def logprob(self, row: int, token: int, top: int) -> TokenLogprob:
        """The log-probabilities of ``token`` and of the ``top`` likeliest tokens in output row ``row``."""
        ...

    def close(self) -> None:
        """Free what the sampler holds outside Python."""


@dataclass(slots=True, eq=False)
class SequenceState:
    """One request on its way through the batch loop.

    ``tokens`` is the prompt followed by what was generated. The first ``done`` of them are in the KV cache, the others
    are pending: exactly one while the sequence decodes, many while it prefills, and many again after a preemption.
    """

    id: str
    lane: Lane
    owner: str
    tokens: list[int]
    shared: int  # leading tokens that come from shared text only
    max_tokens: int
    sampler: Sampler
    reply: Reply
    arrived: float  # monotonic seconds
    adapter: str = ""  # the LoRA adapter that computes it; "": none
    logprobs: int | None = None  # alternatives to report for each token; None: report nothing
    # Leading tokens of the prompt that need no log-probability any more; None: no token needs one.
    scored: int | None = None
    marks: Marks = field(default_factory=Marks)
    shaper: str = "grammar"  # the field of the request that its grammar comes from
    prompt_length: int = 0
    slot: Slot | None = None
    done: int = 0
    cached: int = 0
    looked_up: bool = False  # a snapshot of its prompt was looked for
    unreported: int = 0  # tokens sampled since the last delta
    buffer: DeltaBuffer = field(default_factory=DeltaBuffer)
    position: int | None = None  # in the queue, as last reported
    admitted: float | None = None
    first_token: float | None = None
    forgotten: bool = False  # its owner was erased meanwhile: it leaves nothing behind
    drafter: Drafter = field(default_factory=Drafter)

    def __post_init__(self) -> None:
        self.prompt_length = len(self.tokens)

    @property
    def pending(self) -> int:
        """Tokens that are not in the KV cache yet."""
        return len(self.tokens) - self.done

    @property
    def findable(self) -> list[int]:
        """The tokens whose beginning may come from the cache: there are no logits for what is cached."""
        return self.tokens[: max(1, self.scored or 0)] if self.scoring else self.tokens

    @property
    def scoring(self) -> bool:
        """Whether log-probabilities of tokens of the prompt are missing."""
        return self.scored is not None and self.scored < self.prompt_length

    @property
    def generated(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def decoding(self) -> bool:
        """Whether it takes one token per step; False while it prefills."""
        return self.pending == 1 and self.done > 0


def bad_grammar(request_id: str, error: GrammarError, field: str) -> Failed:
    """The failure of a request whose grammar, made from the request's ``field``, cannot be used."""
    return Failed(request_id, "bad_grammar", str(error)[:1000], details={"field": field})
