"""Who runs, who waits, and what goes into the next batch. Pure: values in, values out, time passed in.

Lanes are served interactive > retrieval > background. Inside a lane the owner with the fewest running
requests comes first, then the oldest request. Waiting raises a request
(:func:`~model_host.batching.request.aged_lane`), so
nothing starves. Running background requests rest while somebody is being answered, but for every
:data:`BACKGROUND_TURN`-th step; they keep their cells. Prompts of one lane are read one after the other, the shortest
first, so that a short question does not wait for a long one; now and then a step is the oldest one's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from model_host.batching.request import SequenceState, aged_lane
from model_host.batching.slots import SlotTable, common_prefix

# Cells kept free for the first tokens of an answer when a request is admitted.
ANSWER_ROOM = 64
# While others are being answered, background requests take part in every so-many-th step …
BACKGROUND_TURN = 24
BACKGROUND_SHARE = 8  # … with one part in so many of its budget.
# Every so-many-th step reads of the prompt that came first, whatever its length: it gets on. Two prompts in one step
# would make the attention of both walk over the cells of both, now and later (see model_host/batching/batches.py).
OLDEST_TURN = 4
# A step that reads a prompt to its end reads no other, so that the answer can begin; unless it were smaller than this.
WORTH_A_STEP = 32
# A request waits for a running one that is about to have this many more tokens of its prompt in the cache.
WORTH_WAITING_FOR = 48


@dataclass(frozen=True, slots=True)
class Feed:
    """The next ``count`` pending tokens of ``sequence`` go into the batch; ``last`` asks for logits.

    ``draft``: tokens that may follow; they go in as well, with logits each, and stay only if they are sampled.
    """

    sequence: SequenceState
    count: int
    last: bool
    draft: tuple[int, ...] = ()


class Scheduler:
    """The waiting queue and the running set over one :class:`SlotTable`."""

    def __init__(
        self, slots: SlotTable, *, parallel: int, max_waiting: int, sequence_limit: int, drafts: int = 0
    ) -> None:
        self.slots = slots
        self.sequence_limit = sequence_limit  # tokens one sequence may reach
        self.waiting: list[SequenceState] = []
        self.running: list[SequenceState] = []
        self.restore: Callable[[SequenceState], None] | None = None  # looks for a snapshot of a prompt, once
        self._drafts = drafts  # guessed tokens in a step, all sequences together
        self._turn = 0
        self._parallel = parallel
        self._max_waiting = max_waiting

    @property
    def full(self) -> bool:
        """No further request may wait."""
        return len(self.waiting) >= self._max_waiting

    @property
    def has_place(self) -> bool:
        """A request that comes now would start at once, as far as places go."""
        return not self.waiting and len(self.running) < self._parallel

    def add(self, sequence: SequenceState) -> None:
        """Queue a request whose prompt is known to fit ``sequence_limit``."""
        self.waiting.append(sequence)

    def admit(self, now: float) -> list[SequenceState]:
        """Move requests from the queue into the running set as far as slots and cells allow."""
        admitted: list[SequenceState] = []
        for sequence in self.queue(now):
            places = self._places(sequence, now)
            if not places:
                break
            if self._prefix_is_coming(sequence):
                continue
            if self.restore is not None and not sequence.looked_up:
                sequence.looked_up = True
                self.restore(sequence)
            # Never more room than the whole cache could give, or a prompt near the limit would wait forever.
            cells = min(len(sequence.tokens) + ANSWER_ROOM, self.sequence_limit)
            prompt = sequence.tokens, sequence.shared, sequence.owner
            for loser in places:
                if self.slots.fits(*prompt, cells, besides=loser.slot if loser is not None else None):
                    break
            else:
                break  # strictly in order: a small request must not overtake a large one forever
            if loser is not None:
                self.preempt(loser)
            placed = self.slots.acquire(*prompt, cells)
            assert placed is not None
            sequence.slot, sequence.done = placed
            if sequence.admitted is None:
                sequence.admitted, sequence.cached = now, sequence.done
                admitted.append(sequence)
            self.waiting.remove(sequence)
            self.running.append(sequence)
        return admitted

    def plan(self, budget: int, now: float) -> list[Feed]:
        """The next batch of at most ``budget`` tokens: every decoding sequence, then prompts by priority.

        Makes room in the cache, preempting the least important sequence when it must.
        """
        self._turn += 1
        while True:
            feeds = self._feeds(budget, now)
            if self.slots.make_room(sum(feed.count for feed in feeds)):
                return self._with_drafts(feeds, budget)
            if len(self.running) == 1:
                return []  # the loop ends this sequence: the context is full
            self.preempt(self.least_important(now))

    def least_important(self, now: float) -> SequenceState:
        """The running sequence to give way first: lowest lane, then youngest."""
        return max(self.running, key=lambda s: self._rank(s, now))

    def preempt(self, sequence: SequenceState) -> None:
        """Back to the queue. Its tokens stay cached while cells last, so that it resumes where it was."""
        self._vacate(sequence)
        self.waiting.append(sequence)

    def remove(self, sequence: SequenceState) -> None:
        """The request is over, wherever it was."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        else:
            self._vacate(sequence)

    def forget(self, owner: str) -> None:
        """Drop what is cached of an owner. Requests of that owner go on and leave nothing behind."""
        self.slots.forget(owner)
        for sequence in (*self.waiting, *self.running):
            sequence.forgotten |= sequence.owner == owner

    def _vacate(self, sequence: SequenceState) -> None:
        self.running.remove(sequence)
        if sequence.slot is not None:
            # What steps of a search and background work leave behind is nobody's conversation: nothing continues it.
            keep = sequence.lane == "interactive"
            prompt = min(sequence.done, sequence.prompt_length)
            marks = replace(sequence.marks, branch=sequence.cached)
            self.slots.release(
                sequence.slot, prompt=prompt, marks=marks, keep=keep, forget=sequence.forgotten
            )
        sequence.slot, sequence.done = None, 0

    @property
    def streaming(self) -> bool:
        """Whether somebody is reading along while tokens come: nobody reads what a search needs on its way."""
        return any(s.decoding and s.lane == "interactive" for s in self.running)

    def _feeds(self, budget: int, now: float) -> list[Feed]:
        foreground = [s for s in self.running if s.lane != "background"]
        background = [s for s in self.running if s.lane == "background"]
        if not foreground:
            return self._share_out(background, budget, now)
        feeds = self._share_out(foreground, budget, now)
        if self._turn % BACKGROUND_TURN == 0:
            left = budget - sum(feed.count for feed in feeds)
            feeds += self._share_out(background, min(left, max(1, budget // BACKGROUND_SHARE)), now)
        return feeds

    def _share_out(self, sequences: list[SequenceState], budget: int, now: float) -> list[Feed]:
        """One token for whoever decodes, then the prompts: lane by lane, the shortest first, but see OLDEST_TURN.

        Reading one prompt after the other, and no more than one to its end in a step, lets the first of them decode
        while the next are read. A token costs about the same in a small step as in a large one.
        """
        feeds = []
        order = sorted(sequences, key=lambda s: (self._lane(s, now), s.pending, s.arrived))
        for sequence in order:
            if sequence.decoding and budget > 0:
                feeds.append(Feed(sequence, 1, last=True))
                budget -= 1
        reading = [s for s in order if not s.decoding]
        if reading and self._turn % OLDEST_TURN == 0:
            oldest = min(reading, key=lambda s: (self._lane(s, now), s.arrived))
            reading = [oldest, *(s for s in reading if s is not oldest)]
        read = 0
        for sequence in reading:
            count = min(sequence.pending, budget - read)
            if count > 0:
                feeds.append(Feed(sequence, count, last=count == sequence.pending))
                read += count
            if count == sequence.pending and read >= WORTH_A_STEP:
                break
        return feeds

    def _with_drafts(self, feeds: list[Feed], budget: int) -> list[Feed]:
        """Guesses take only what nobody else wants: room in the step and free cells."""
        used = sum(feed.count for feed in feeds)
        left = min(self._drafts, budget - used, self.slots.free - used)
        decoding = sum(feed.sequence.decoding for feed in feeds)
        if left <= 0 or not decoding:
            return feeds
        result = []
        for feed in feeds:
            sequence = feed.sequence
            if sequence.decoding:
                end = min(
                    self.sequence_limit - len(sequence.tokens), sequence.max_tokens - sequence.generated
                )
                limit = min(-(-left // decoding), end - 1)
                draft = sequence.drafter.propose(sequence.tokens, limit) if limit > 0 else []
                left, decoding = left - len(draft), decoding - 1
                feed = replace(feed, draft=tuple(draft))
            result.append(feed)
        return result

    def queue(self, now: float) -> list[SequenceState]:
        """Those that wait, the next one first."""
        busy: dict[str, int] = {}
        for sequence in self.running:
            busy[sequence.owner] = busy.get(sequence.owner, 0) + 1
        return sorted(self.waiting, key=lambda s: (self._lane(s, now), busy.get(s.owner, 0), s.arrived))

    def _places(self, sequence: SequenceState, now: float) -> list[SequenceState | None]:
        """Where it might go, the best first: a free place (None), or that of a running request of a lower lane.

        Both count with their age: otherwise two old background requests would take turns for ever.
        """
        lower = [one for one in self.running if self._lane(one, now) > self._lane(sequence, now)]
        lower.sort(key=lambda one: self._rank(one, now), reverse=True)
        return [None, *lower] if len(self.running) < self._parallel else [*lower]

    def _prefix_is_coming(self, sequence: SequenceState) -> bool:
        """Whether a running prompt is about to cache much more of this prompt than is cached now."""
        _, have = self.slots.find(sequence.tokens, sequence.shared, sequence.owner)
        for other in self.running:
            if other.done >= other.prompt_length:
                continue
            if other.lane == "background" != sequence.lane:
                continue  # it rests as long as this one is here
            limit = len(sequence.tokens) - 1
            if other.owner != sequence.owner:
                limit = min(limit, other.shared, sequence.shared)
            coming = common_prefix(other.tokens, sequence.tokens, limit)
            if coming > other.done and coming - have >= WORTH_WAITING_FOR:
                return True
        return False

    def _lane(self, sequence: SequenceState, now: float) -> float:
        return aged_lane(sequence.lane, sequence.arrived, now)

    def _rank(self, sequence: SequenceState, now: float) -> tuple[float, float]:
        """Smaller is more important."""
        return self._lane(sequence, now), sequence.arrived
