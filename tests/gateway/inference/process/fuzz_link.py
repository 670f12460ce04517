"""A million mutated events for the link of one child: `python -m tests.gateway.inference.process.fuzz_link`.

The link reads them from a process that is made up. Whatever they are, its reader must go on, each open request must end
once, and a good request must be answered in the end. Prints one JSON object: lines, seconds, and what became of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import structlog

from gateway.inference.process.failures import LifeEnd, stopped
from gateway.inference.process.launch import LaunchPlan
from gateway.inference.process.link import HostLink
from gateway.inference.process.process import HostProcess
from gateway.models.catalog import ResolvedModel
from model_host import protocol
from model_host.protocol import Event, ProtocolError, Terminal
from tests.model_host.mutation import Fields, line_of
from tests.waiting import PATIENCE

BATCH = 500  # lines that are there at once
OPEN = 16  # requests in a batch
LOGPROB = {
    "token": "a",
    "bytes": [97],
    "logprob": -1.5,
    "top": [{"token": "b", "bytes": [98], "logprob": -2}],
}
READY = {
    "event": "ready",
    "protocol": protocol.PROTOCOL_VERSION,
    "pid": 1,
    "model": "m",
    "architecture": "a",
    "description": "d",
    "parameters": 1,
    "size_bytes": 1,
    "vocabulary": 9,
    "n_ctx": 64,
    "n_ctx_train": 64,
    "n_parallel": 8,
    "threads": 1,
    "build": "b",
    "load_seconds": 0.5,
    "fingerprint": "f",
    "tools": True,
    "thread_plan": {"1": 2},
    "thread_speeds": {"1": {"2": 3.5}},
}
FINISHED = {
    "event": "finished",
    "id": "",
    "reason": "stop",
    "prompt_tokens": 1,
    "cached_tokens": 0,
    "seed": 1,
    "completion_tokens": 2,
    "queue_seconds": 0.1,
    "prefill_seconds": 0.1,
    "decode_seconds": 0.1,
}
STATS = {
    **dict.fromkeys(protocol.Stats.__struct_fields__, 1),
    "event": "stats",
    "id": "",
    "wait_seconds": None,
    "thread_plan": {"1": 2},
}
EVENTS: list[Fields] = [
    {"event": "loading", "progress": 0.5},
    READY,
    {"event": "queued", "id": "", "position": 1, "wait_seconds": 0.5},
    {"event": "started", "id": "", "prompt_tokens": 3, "cached_tokens": 1, "queue_seconds": 0.1},
    {"event": "prefill", "id": "", "done": 1, "total": 3},
    {"event": "delta", "id": "", "text": "hi", "tokens": 1},
    {"event": "delta", "id": "", "text": "é", "tokens": 1, "logprobs": [LOGPROB]},
    {"event": "tool_delta", "id": "", "index": 0, "call_id": "c", "name": "f", "arguments": "{}"},
    FINISHED,
    {"event": "failed", "id": "", "code": "internal", "message": "m", "retriable": True, "details": {"a": 1}},
    {"event": "failed", "id": None, "code": "bad_request", "message": "m"},
    {"event": "counted", "id": "", "counts": [1, 2], "tokens": [[1], [2, 3]]},
    {"event": "detokenized", "id": "", "text": "a", "pieces": [[97]]},
    {"event": "embedded", "id": "", "embeddings": ["AAAA"], "tokens": [1]},
    {"event": "cancelled", "id": "", "target": "", "found": False},
    {"event": "forgotten", "id": ""},
    STATS,
    {"event": "closing", "id": ""},
]


class MadeUpProcess:
    """What the link uses of a process. What is written to it goes nowhere."""

    def __init__(self) -> None:
        self.pid = 1
        self.stdout = asyncio.StreamReader(limit=protocol.MAX_LINE_BYTES)
        self.stdin = self
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.last_words = None

    def write(self, data: bytes) -> None:
        """Nobody reads it."""

    async def drain(self) -> None:
        """There is always room."""

    def discard(self) -> None:
        """There is nothing to release."""

    def working(self) -> bool:
        """It lives, as far as heartbeats can tell."""
        return True


class Fuzz:
    """One link, and what it is told."""

    def __init__(self, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.process = MadeUpProcess()
        model = ResolvedModel(name="fake", path=Path("m.gguf"), size_bytes=4, ram_bytes=1, context=64)
        plan = LaunchPlan((), {}, model, ("", 0, 0))
        process = cast("HostProcess", self.process)
        self.link = HostLink(process, plan, on_loading=self._loading, conclude=self._concluded)
        self._draw = random.Random(seed)
        self._batches = 0

    def _loading(self, fraction: float) -> None:
        assert 0 <= fraction <= 1
        self.counts["loading"] += 1

    def _concluded(self, ending: LifeEnd) -> None:
        # The link asks for an end after too many malformed lines. Here it is fed on.
        assert "could not be read from" not in ending.error.message, ending.error
        self.counts[f"concluded: {ending.kind}"] += 1

    async def batch(self, size: int) -> None:
        """Feed lines, then the good end of one more request."""
        self._batches += 1
        ends: Counter[str] = Counter()
        names = [f"r{self._batches}-{number}" for number in range(OPEN)]
        for name in names:
            self.link.requests.open(name, lambda name=name: ends.update([name]))  # type: ignore[misc]
        self.link.cancel(self._draw.choice(names))
        probe = asyncio.create_task(self.link.refresh_stats())
        await asyncio.sleep(0)
        good = f"good{self._batches}"
        request = self.link.requests.open(good, lambda: ends.update([good]))
        lines = [self._line([*names, *self.link._control, "", "unknown"]) for _ in range(size)]
        lines += [json.dumps(FINISHED | {"id": good}).encode()]
        self.process.stdout.feed_data(b"\n".join(lines) + b"\n")
        async with asyncio.timeout(PATIENCE):
            while not isinstance(event := await request.next_event(), protocol.Finished):
                self.counts[type(event).__name__] += 1
        self.link.requests.fail_all(stopped("asked").error)
        assert ends == Counter([*names, good])
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)

    def _line(self, names: list[str]) -> bytes:
        fields: Fields = json.loads(json.dumps(self._draw.choice(EVENTS)))
        for name in ("id", "target"):
            if fields.get(name) == "":
                fields[name] = self._draw.choice(names)
        line = line_of(fields, self._draw)
        try:
            event: Event = protocol.decode_event(line)
        except ProtocolError:
            self.counts["malformed"] += 1
        else:
            self.counts["terminal" if isinstance(event, Terminal) else "other events"] += 1
        return line


async def run(lines: int, seed: int) -> dict[str, Any]:
    """Fuzz one link with ``lines`` lines. Raises the first error."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    fuzz = Fuzz(seed)
    begun = time.monotonic()
    try:
        for start in range(0, lines, BATCH):
            await fuzz.batch(min(BATCH, lines - start))
    finally:
        fuzz.link.discard()
        structlog.configure(**before)
    return {"lines": lines, "seconds": round(time.monotonic() - begun, 1), **dict(fuzz.counts.most_common())}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(run(asked.lines, asked.seed))))


if __name__ == "__main__":
    main()
