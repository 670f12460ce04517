"""Choose the requests that run and the tokens of the next step. Pure: times are passed in.

Lanes are served interactive > retrieval > background. Within a lane the owner with the fewest running requests comes
first, then the oldest request. Waiting raises a request's lane (:func:`~model_host.batching.request.aged_lane`), so
nothing starves. While foreground requests run, running background requests keep their cells but take part only in every
:data:`BACKGROUND_TURN`-th step. Prompts of one lane prefill one after the other, the shortest first, so that a short
question does not wait for a long one; every :data:`OLDEST_TURN`-th step goes to the oldest.

Requests of different LoRA adapters cannot be decoded together, so the adapters in use take turns of
:data:`ADAPTER_SECONDS` (docs/decisions/0042-adapters.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from model_host.batching.batches import Feed
from model_host.batching.request import SequenceState, aged_lane
from model_host.batching.slots import SlotTable, common_prefix

# Cells kept free for the first tokens of an answer when a request is admitted.
ANSWER_ROOM = 64
# Beside others, background requests get a BACKGROUND_SHARE-th of the budget of every BACKGROUND_TURN-th step.
BACKGROUND_TURN = 24
BACKGROUND_SHARE = 8
# Every OLDEST_TURN-th step prefills the oldest prompt, whatever its length, so that it progresses. Two prompts in one
# step would make the attention of both visit the cells of both, now and later (model_host/batching/batches.py).
OLDEST_TURN = 4
# A step that completes a prompt prefills no other one, so that the answer can begin, unless the step would have fewer
# prompt tokens than this.
WORTH_A_STEP = 32
# Switching adapters can take llama.cpp as long as a step, so each adapter keeps its turn for this long.
ADAPTER_SECONDS = 0.25
# A request waits for a running one that is about to cache this many more tokens of its prompt.
WORTH_WAITING_FOR = 48


class Scheduler:
    """The waiting queue and the running set over one :class:`SlotTable`."""

    def __init__(
        self, slots: SlotTable, *, parallel: int, max_waiting: int, sequence_limit: int, drafts: int = 0
    ) -> None:
        self.slots = slots
        self.sequence_limit = sequence_limit  # most tokens of one sequence
        self.waiting: list[SequenceState] = []
        self.running: list[SequenceState] = []
        self.restore: Callable[[SequenceState], None] | None = None  # restores a snapshot of a prompt, if any
        self._drafts = drafts  # most draft tokens of a step, all sequences together
        self._spare = drafts  # output rows that the step still has, beyond one for each sequence
        self._turn = 0
        self._adapter = ""  # whose turn it is
        self._adapter_until = 0.0
        self._adapters_ran: dict[str, float] = {}  # when each had its last step
        self._parallel = parallel
        self._max_waiting = max_waiting

    @property
    def full(self) -> bool:
        return len(self.waiting) >= self._max_waiting

    @property
    def has_place(self) -> bool:
        """Whether a new request would start at once if its prompt fits the cache."""
        return not self.waiting and len(self.running) < self._parallel

    def add(self, sequence: SequenceState) -> None:
        """Queue a request whose prompt fits ``sequence_limit``."""
        self.waiting.append(sequence)

    def admit(self, now: float) -> list[SequenceState]:
        """Start waiting requests as far as slots and cells allow. Returns those that start for the first time."""
        admitted: list[SequenceState] = []
        for sequence in self.queue(now):
            places = self._places(sequence, now)
            if not places:
                break
            if self._prefix_is_coming(sequence):
                continue
            if self.restore is not None and not sequence.looked_up and not sequence.scoring:
                sequence.looked_up = True
                self.restore(sequence)
            # Never more than the whole cache has, or a prompt near the limit would wait forever.
            cells = min(len(sequence.tokens) + ANSWER_ROOM, self.sequence_limit)
            prompt = sequence.findable, sequence.shared, sequence.owner, cells, sequence.adapter
            for loser in places:
                if self.slots.fits(*prompt, besides=loser.slot if loser is not None else None):
                    break
            else:
                break  # strictly in order: a small request must not overtake a large one forever
            if loser is not None:
                self.preempt(loser)
            placed = self.slots.acquire(*prompt)
            assert placed is not None
            sequence.slot, sequence.done = placed
            if sequence.admitted is None:
                sequence.admitted, sequence.cached = now, sequence.done
                admitted.append(sequence)
            self.waiting.remove(sequence)
            self.running.append(sequence)
        return admitted

    def plan(self, budget: int, now: float) -> list[Feed]:
        """The next step of at most ``budget`` tokens: every decoding sequence, then prompts by priority.

        Frees cells for it, preempting the least important sequence if needed. Empty when the only one has no room.
        """
        self._turn += 1
        while True:
            self._spare = self._drafts
            feeds = self._feeds(budget, now)
            if self.slots.make_room(sum(feed.count for feed in feeds)):
                return self._with_drafts(feeds, budget)
            if len(self.running) == 1:
                return []  # the context is full: the loop ends this sequence
            self.preempt(self.least_important(now))

    def least_important(self, now: float) -> SequenceState:
        """The running sequence to preempt first: the lowest lane, then the youngest."""
        return max(self.running, key=lambda s: self._rank(s, now))

    def preempt(self, sequence: SequenceState) -> None:
        """Return a running sequence to the queue. Its tokens stay cached while cells last, for it to resume."""
        self._vacate(sequence)
        self.waiting.append(sequence)

    def remove(self, sequence: SequenceState) -> None:
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        else:
            self._vacate(sequence)

    def forget(self, owner: str) -> None:
        """Drop an owner's cached slots. Open requests of that owner go on and leave nothing behind."""
        self.slots.forget(owner)
        for sequence in (*self.waiting, *self.running):
            sequence.forgotten |= sequence.owner == owner

    def _vacate(self, sequence: SequenceState) -> None:
        self.running.remove(sequence)
        if sequence.slot is not None:
            # Nothing continues the prompts of retrieval steps and background work, so they are not worth a snapshot.
            keep = sequence.lane == "interactive"
            prompt = min(sequence.done, sequence.prompt_length)
            marks = replace(sequence.marks, branch=sequence.cached)
            self.slots.release(
                sequence.slot, prompt=prompt, marks=marks, keep=keep, forget=sequence.forgotten
            )
        sequence.slot, sequence.done = None, 0

    @property
    def streaming(self) -> bool:
        """Whether an interactive request decodes; the other lanes have no readers."""
        return any(s.decoding and s.lane == "interactive" for s in self.running)

    def _feeds(self, budget: int, now: float) -> list[Feed]:
        foreground = [s for s in self.running if s.lane != "background"]
        background = [s for s in self.running if s.lane == "background"]
        if not foreground:
            return self._share_out(self._in_turn(background, now), budget, now)
        feeds = self._share_out(self._in_turn(foreground, now), budget, now)
        if self._turn % BACKGROUND_TURN == 0:
            left = budget - sum(feed.count for feed in feeds)
            feeds += self._share_out(background, min(left, max(1, budget // BACKGROUND_SHARE)), now)
        return feeds

    def _in_turn(self, sequences: list[SequenceState], now: float) -> list[SequenceState]:
        """Those of the adapter whose turn it is; a turn ends early if nothing is left of it."""
        adapters = {sequence.adapter for sequence in sequences}
        if len(adapters) > 1 and (self._adapter not in adapters or now >= self._adapter_until):
            self._adapter = min(adapters, key=lambda adapter: self._adapters_ran.get(adapter, 0.0))
            self._adapter_until = now + ADAPTER_SECONDS
        elif len(adapters) == 1:
            (self._adapter,) = adapters
        self._adapters_ran[self._adapter] = now
        return [sequence for sequence in sequences if sequence.adapter == self._adapter]

    def _share_out(self, sequences: list[SequenceState], budget: int, now: float) -> list[Feed]:
        """One token for each decoding sequence, then the prompts: lane by lane, the shortest first.

        Prefilling one prompt after the other, and completing at most one per step, lets the first of them decode while
        the next prefill. A token costs about the same in a small step as in a large one.
        """
        feeds = []
        order = sorted(sequences, key=lambda s: (self._lane(s, now), s.pending, s.arrived))
        for sequence in order:
            if sequence.decoding and budget > 0:
                feeds.append(Feed(sequence, 1, last=True))
                budget -= 1
        prompts = [s for s in order if not s.decoding]
        if prompts and self._turn % OLDEST_TURN == 0:
            oldest = min(prompts, key=lambda s: (self._lane(s, now), s.arrived))
            prompts = [oldest, *(s for s in prompts if s is not oldest)]
        used = 0
        for sequence in prompts:
            count = min(sequence.pending, budget - used)
            if sequence.scoring:
                count = min(count, 1 + self._spare)
                self._spare -= max(0, count - 1)
            if count > 0:
                feeds.append(Feed(sequence, count, last=count == sequence.pending))
                used += count
            if count == sequence.pending and used >= WORTH_A_STEP:
                break
        return feeds

    def _with_drafts(self, feeds: list[Feed], budget: int) -> list[Feed]:
        """Add draft tokens as far as the step has room and cells are free."""
        used = sum(feed.count for feed in feeds)
        left = min(self._spare, budget - used, self.slots.free - used)
        decoding = sum(feed.sequence.decoding for feed in feeds)
        if left <= 0 or not decoding:
            return feeds
        result = []
        for feed in feeds:
            sequence = feed.sequence
            if sequence.decoding:
                room = min(
                    self.sequence_limit - len(sequence.tokens), sequence.max_tokens - sequence.generated
                )
                limit = min(-(-left // decoding), room - 1)
                draft = sequence.drafter.propose(sequence.tokens, limit) if limit > 0 else []
                left, decoding = left - len(draft), decoding - 1
                feed = replace(feed, draft=tuple(draft))
            result.append(feed)
        return result

    def queue(self, now: float) -> list[SequenceState]:
        """The waiting requests, the next one first."""
        if not self.waiting:  # as in most steps
            return []
        busy = Counter(sequence.owner for sequence in self.running)
        return sorted(self.waiting, key=lambda s: (self._lane(s, now), busy[s.owner], s.arrived))

    def _places(self, sequence: SequenceState, now: float) -> list[SequenceState | None]:
        """Slots that it may take, the best first: a free one (None), or that of a request of a lower lane.

        Lanes are aged on both sides: otherwise two old background requests would preempt each other forever.
        """
        lower = [one for one in self.running if self._lane(one, now) > self._lane(sequence, now)]
        lower.sort(key=lambda one: self._rank(one, now), reverse=True)
        return [None, *lower] if len(self.running) < self._parallel else [*lower]

    def _prefix_is_coming(self, sequence: SequenceState) -> bool:
        """Whether a running prompt is about to cache much more of this prompt than is cached now."""
        _, have = self.slots.find(sequence.findable, sequence.shared, sequence.owner, sequence.adapter)
        for other in self.running:
            if other.done >= other.prompt_length or other.adapter != sequence.adapter:
                continue
            if other.lane == "background" != sequence.lane:
                continue  # it hardly progresses beside this one
            limit = len(sequence.findable) - 1
            if other.owner != sequence.owner:
                limit = min(limit, other.shared, sequence.shared)
            coming = common_prefix(other.tokens, sequence.tokens, limit)
            if coming > other.done and coming - have >= WORTH_WAITING_FOR:
                return True
        return False

    def _lane(self, sequence: SequenceState, now: float) -> float:
        return aged_lane(sequence.lane, sequence.arrived, now)

    def _rank(self, sequence: SequenceState, now: float) -> tuple[float, float]:
        """Lane and age; smaller is more important."""
        return self._lane(sequence, now), sequence.arrived
