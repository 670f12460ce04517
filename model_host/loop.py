"""The batch loop: admit, plan a step, decode its batches, sample, emit."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from model_host import protocol
from model_host.batching.batches import Feed, Span, batches
from model_host.batching.estimate import QueueReporter
from model_host.batching.meter import Meter
from model_host.batching.pace import Pace
from model_host.batching.request import SequenceState, bad_grammar
from model_host.batching.scheduler import Scheduler
from model_host.emitter import EventEmitter
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.replies.argument_values import MalformedCallError
from model_host.snapshots.manager import SnapshotManager
from model_host.wire.intake import Intake
from model_host.wire.output import Output

SAVING_PAUSE_SECONDS = 0.05  # between two snapshots of an idle host, for the writer and for new requests
CLOSING_SECONDS = 8.0  # for the snapshots of a host that ends


class BatchModel(Protocol):
    """The engine, as the loop uses it."""

    def arm(self) -> None:
        """Clear an earlier abort; a later one stops the next :meth:`decode`."""

    def decode(self, spans: Sequence[Span], adapter: str) -> tuple[str, dict[int, int]]:
        """Decode a batch with an adapter. Returns the result and, by KV sequence, the first output row."""

    def step_size(self, budget: int) -> int:
        """The most efficient number of tokens near ``budget``."""

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to the text."""

    def ends(self, token: int) -> bool:
        """Whether the token ends a generation."""


class BatchLoop:
    """Runs until the intake closes. Owns the scheduler; everything here happens in one thread."""

    def __init__(
        self,
        model: BatchModel,
        scheduler: Scheduler,
        intake: Intake[SequenceState],
        output: Output,
        *,
        chunk: int,
        snapshots: SnapshotManager | None,
    ) -> None:
        self.prefilling: frozenset[str] = frozenset()  # ids whose prompts are in the current batch
        self.yielding = False  # the current batch prefills background requests only: others may abort it
        self.meter = Meter()
        self._model = model
        self._scheduler = scheduler
        self._intake = intake
        self._output = output
        self._pace = Pace(chunk)
        self._chunk = chunk
        self._queue = QueueReporter(scheduler, self.meter)
        self._snapshots = snapshots
        if snapshots is not None:
            scheduler.restore = snapshots.restore
        self._last_step = time.monotonic()  # when it ended
        self._unchecked = False  # slots have changed since they were last checked
        self._emitter = EventEmitter(output)

    def run(self) -> None:
        """Serve until shutdown or end of input; then end every open request as cancelled."""
        while self._intake.closing is None:
            self.step()
        self._close()

    def step(self) -> None:
        """One turn of the loop. Blocks only when there is nothing to run."""
        self._take_in()
        self._admit()
        for batch in batches(self._plan()):
            if not self._compute(batch):
                break
        self._emitter.flush()

    # ------------------------------------------------------------------ intake

    def _take_in(self) -> None:
        scheduler = self._scheduler
        idle = not (scheduler.waiting or scheduler.running)
        for sequence in self._wait_idle() if idle else self._intake.take(wait=False):
            if (ticket := self._output.ticket(sequence.id)) is not None:
                sequence.forgotten = ticket.forgotten
            if scheduler.full:
                self._end(sequence, self._queue.refusal(sequence.id, time.monotonic()))
            else:
                scheduler.add(sequence)
        for sequence in [*scheduler.waiting, *scheduler.running]:
            if self._output.gone(sequence.id):
                self._finish(sequence, "cancelled")
        while self._intake.stats_asked:
            request_id = self._intake.stats_asked.popleft()
            self._output.finish(request_id, self._stats(request_id))
        while self._intake.forget_asked:
            asked = self._intake.forget_asked.popleft()
            scheduler.forget(asked.owner)
            if self._snapshots is not None:
                self._snapshots.forget(asked.owner, partial(self._forgotten, asked.id))
            else:
                self._forgotten(asked.id, None)

    def _forgotten(self, request_id: str, problem: OSError | None) -> None:
        """Called by the snapshot writer's thread once it has deleted the files."""
        event: protocol.Event = protocol.Forgotten(request_id)
        if problem is not None:
            message = f"saved text may still be on the disk: {problem}"
            event = protocol.Failed(request_id, "not_erased", message[:1000], retriable=True)
        self._output.finish(request_id, event)

    def _wait_idle(self) -> list[SequenceState]:
        """Sleep until there is work. After some idle time, save the slots worth it, one at a time."""
        if self._unchecked:
            self._unchecked = False
            if problem := self._scheduler.slots.repair():
                print(f"the KV cache was dropped: {problem}", file=sys.stderr, flush=True)  # noqa: T201
        snapshots = self._snapshots
        if snapshots is None or not snapshots.pending():
            return self._intake.take(wait=True)
        left = self._last_step + snapshots.quiet_seconds - time.monotonic()
        if left <= 0:
            snapshots.save_next()
        return self._intake.take(wait=True, seconds=max(left, SAVING_PAUSE_SECONDS))

    # ------------------------------------------------------------------ one step

    def _admit(self) -> None:
        now = time.monotonic()
        for sequence in self._scheduler.admit(now):
            self.meter.cached_tokens += sequence.cached
            waited = round(now - sequence.arrived, 6)
            self._emitter.emit(protocol.Started(sequence.id, sequence.prompt_length, sequence.cached, waited))
        for event in self._queue.changes(now):
            self._emitter.emit(event)

    def _plan(self) -> list[Feed]:
        running = self._scheduler.running
        decoding = sum(sequence.decoding for sequence in running)
        budget = self._pace.budget(streaming=self._scheduler.streaming, decoding=decoding)
        prefill = self._model.step_size(budget - decoding)
        feeds = self._scheduler.plan(min(self._chunk, prefill + decoding), time.monotonic())
        if not feeds and running:
            self._finish(running[0], "length")  # it runs alone, and no cell is free
        return feeds

    def _compute(self, feeds: list[Feed]) -> bool:
        """Decode one batch and sample from it; False when it was not computed."""
        result, rows = self._decode(feeds)
        self._last_step = time.monotonic()
        self._unchecked = True
        if result == "done":
            self._advance(feeds, rows)
            self._emitter.send_due(self._scheduler)
            self._emitter.flush()
        elif result == "no_room":
            self._shrink()
        return result == "done"

    def _decode(self, feeds: list[Feed]) -> tuple[str, dict[int, int]]:
        started = time.monotonic()
        self.prefilling = frozenset(feed.sequence.id for feed in feeds if feed.count > 1)
        self.yielding = bool(self.prefilling) and all(feed.sequence.lane == "background" for feed in feeds)
        self._model.arm()
        try:
            # Requests and cancellations that came before `arm` could not abort this batch.
            if self.yielding and any(work.lane != "background" for work in self._intake.ready()):
                return "aborted", {}
            if self._intake.closing is not None or any(self._output.gone(feed.sequence.id) for feed in feeds):
                return "aborted", {}
            spans, adapter = [feed.span() for feed in feeds], feeds[0].sequence.adapter
            result, rows = self._model.decode(spans, adapter)
        except Exception as error:
            for feed in feeds:
                self._fail(feed.sequence, "internal", f"decoding failed: {error}"[:500], retriable=True)
            self._scheduler.slots.drop_cached()
            return "failed", {}
        finally:
            self.prefilling = frozenset()
            self.yielding = False
        if result == "done":
            prefill = sum(feed.count for feed in feeds if feed.count > 1)
            decode = sum(feed.count for feed in feeds if feed.count == 1)
            seconds = time.monotonic() - started
            self.meter.count(prefill, decode, seconds)
            self._pace.measured(prefill, seconds)
        return result, rows

    def _advance(self, feeds: list[Feed], rows: dict[int, int]) -> None:
        now = time.monotonic()
        for feed in feeds:
            sequence = feed.sequence
            assert sequence.slot is not None
            fed = sequence.tokens[sequence.done : sequence.done + feed.count]
            self._scheduler.slots.append(sequence.slot, fed, sequence.shared)
            row = rows.get(sequence.slot.id, 0)
            if sequence.scoring:
                row = self._score(feed, row)
            sequence.done += feed.count
            if feed.last:
                self._sample_feed(feed, row, now)
            elif sequence.done < sequence.prompt_length:
                self._emitter.emit(protocol.Prefill(sequence.id, sequence.done, sequence.prompt_length))

    def _score(self, feed: Feed, row: int) -> int:
        """Report the log-probabilities that the feed's logits, from ``row`` on, give; returns its last row."""
        sequence, start = feed.sequence, feed.sequence.scored
        assert start is not None and sequence.logprobs is not None
        end = min(sequence.done + feed.count + 1, sequence.prompt_length)
        found = []
        for at in range(start, end):
            alternatives = sequence.logprobs if at else 0
            before = max(0, at - 1 - sequence.done)
            found.append(sequence.sampler.logprob(row + before, sequence.tokens[at], alternatives))
        if not start:
            found[0] = replace(found[0], logprob=0.0)
        if found:
            sequence.scored = end
            self._emitter.emit(protocol.PromptLogprobs(sequence.id, found, first=not start))
        return row + feed.count - 1

    def _sample_feed(self, feed: Feed, row: int, now: float) -> None:
        """Sample after the last token, and after each draft token while the one before it was accepted."""
        sequence, slot = feed.sequence, feed.sequence.slot
        assert slot is not None
        if not sequence.max_tokens:
            self._finish(sequence, "length")
            return
        accepted = 0
        while self._sample(sequence, row + accepted, now) and accepted < len(feed.draft):
            if sequence.tokens[-1] != feed.draft[accepted]:
                break
            self._scheduler.slots.append(slot, sequence.tokens[-1:], sequence.shared)
            sequence.done += 1
            accepted += 1
        if feed.draft:
            self._scheduler.slots.cut(slot)
            sequence.drafter.judge(len(feed.draft), accepted)
            self.meter.count_drafts(len(feed.draft), accepted)

    def _sample(self, sequence: SequenceState, row: int, now: float) -> bool:
        """Sample a token; False when it ended the request."""
        try:
            room = self._scheduler.sequence_limit - len(sequence.tokens)
            token = sequence.reply.forced()
            if token is None:
                token = sequence.sampler.sample(row, min(room, sequence.max_tokens - sequence.generated))
            wanted = sequence.logprobs
            logprob = None if wanted is None else sequence.sampler.logprob(row, token, wanted)
        except GrammarError as error:
            self._end(sequence, bad_grammar(sequence.id, error, sequence.shaper))
            return False
        except Exception as error:
            self._fail(sequence, "internal", f"sampling failed: {type(error).__name__}: {error}"[:500])
            return False
        sequence.first_token = sequence.first_token or now
        self.meter.completion_tokens += 1
        if self._model.ends(token) and (instead := sequence.reply.instead_of_end()) is not None:
            token = instead
        elif self._model.ends(token):
            self._finish(sequence, "length" if sequence.sampler.closed else "stop")
            return False
        sequence.tokens.append(token)
        sequence.unreported += 1
        try:
            self._emitter.show(sequence, sequence.reply.push(token, self._model.piece(token), logprob))
        except Exception as error:
            self._fail_reply(sequence, error)
            return False
        if sequence.reply.constrained:
            sequence.sampler.constrain()
        limit = self._scheduler.sequence_limit
        if sequence.reply.complete:
            self._finish(sequence, "stop")
        elif sequence.generated >= sequence.max_tokens or len(sequence.tokens) >= limit:
            self._finish(sequence, "length")
        else:
            return True
        return False

    def _shrink(self) -> None:
        """Free cells: llama.cpp found no room although our accounting says there is some."""
        scheduler = self._scheduler
        if scheduler.slots.drop_cached():
            return
        if len(scheduler.running) > 1:
            scheduler.preempt(scheduler.least_important(time.monotonic()))
        else:
            self._fail(scheduler.running[0], "out_of_memory", "the KV cache has no room left", retriable=True)

    # ------------------------------------------------------------------ ends

    def _finish(self, sequence: SequenceState, reason: protocol.FinishReason) -> None:
        reply = sequence.reply
        if reason != "cancelled":
            try:
                self._emitter.show(sequence, reply.finish(ended=reason == "stop"))
            except Exception as error:
                self._fail_reply(sequence, error)
                return
            if reply.stop_string is not None:
                reason = "stop"
            elif reason == "stop" and reply.calls:
                reason = "tool_calls"
        self._queue.ended(sequence.generated)
        now = time.monotonic()
        admitted = sequence.admitted if sequence.admitted is not None else now
        first = sequence.first_token if sequence.first_token is not None else now
        self._end(
            sequence,
            protocol.Finished(
                id=sequence.id,
                reason=reason,
                prompt_tokens=sequence.prompt_length,
                cached_tokens=sequence.cached,
                completion_tokens=sequence.generated,
                queue_seconds=round(admitted - sequence.arrived, 6),
                prefill_seconds=round(first - admitted, 6),
                decode_seconds=round(now - first, 6),
                seed=sequence.sampler.seed,
                stop_string=reply.stop_string,
            ),
        )

    def _fail(
        self, sequence: SequenceState, code: protocol.FailureCode, message: str, *, retriable: bool = False
    ) -> None:
        self._end(sequence, protocol.Failed(sequence.id, code, message, retriable))

    def _fail_reply(self, sequence: SequenceState, error: Exception) -> None:
        if isinstance(error, MalformedCallError):
            self._fail(sequence, "bad_tool_call", str(error)[:500], retriable=True)
        else:  # a defect, which must not end the other requests
            self._fail(sequence, "internal", f"the reply cannot be read: {error!r}"[:500])

    def _end(self, sequence: SequenceState, event: protocol.Event) -> None:
        if sequence in self._scheduler.waiting or sequence in self._scheduler.running:
            self._scheduler.remove(sequence)
        sequence.sampler.close()
        self.meter.requests += 1
        self._emitter.send(sequence)
        self._emitter.flush()  # the text goes before the terminal event
        self._output.finish(sequence.id, event)

    def _close(self) -> None:
        for sequence in [*self._scheduler.waiting, *self._scheduler.running, *self._intake.take(wait=False)]:
            self._finish(sequence, "cancelled")
        self._emitter.flush()
        if self._snapshots is not None:
            self._snapshots.finish(CLOSING_SECONDS)
        self._output.close(self._intake.closing)

    def _stats(self, request_id: str) -> protocol.Stats:
        scheduler, snapshots = self._scheduler, self._snapshots
        return self.meter.stats(
            request_id,
            waiting=len(scheduler.waiting),
            running=len(scheduler.running),
            kv_used=scheduler.slots.used,
            kv_size=scheduler.slots.size,
            wait_seconds=self._queue.wait_of_next(time.monotonic()),
            snapshots_saved=snapshots.saved if snapshots is not None else 0,
            snapshots_restored=snapshots.restored if snapshots is not None else 0,
        )
