"""Sends mutated requests to a real host: `python -m tests.model_host.fuzz_protocol [--lines 1000000] [--seed 1]`.

Each line with a fresh id must get exactly one terminal event, every other line a `failed` without an id, and in the end
the host must still serve. Prints one JSON object: lines, seconds, and the number of each terminal event or code.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from model_host import protocol
from tests.model_host.driver import ROOT, TERMINAL, HostProcess
from tests.model_host.mutation import Fields, line_of

BATCH = 400  # lines sent at once
PATIENCE = 120.0  # seconds without any event while answers are missing
OVERSIZED = 100_000  # one line in this many is over the limit
FLAGS = (
    "--context",
    "128",
    "--parallel",
    "8",
    "--max-waiting",
    "64",
    "--snapshot-after",
    "0",
)
OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1]}},
    "required": ["a"],
}
TOOL = {"name": "f", "description": "does", "parameters": OBJECT}


def request(draw: random.Random, number: int) -> Fields:
    """A valid request of any kind."""
    made: Fields = {"op": draw.choice(list(KINDS)), "id": f"f{number}"}
    fields = draw.choice(KINDS[made["op"]])
    if made["op"] == "generate":
        made["max_tokens"] = draw.choice((1, 1, 2, 8))
    made |= json.loads(json.dumps(fields))
    if made["op"] == "cancel":
        made["target"] = f"f{max(0, number - draw.randrange(400))}"
    if "owner" in made:
        made["owner"] = draw.choice(("", "a", "b", "漢"))
    return made


USER = [{"role": "user", "content": "hi"}]
CALLED = [
    *USER,
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": [1, None]}}],
    },
    {"role": "tool", "content": "r", "tool_call_id": "c", "name": "f"},
]
SAMPLING = {
    "temperature": 1.5,
    "top_k": 3,
    "top_p": 0.9,
    "min_p": 0.1,
    "repeat_penalty": 1.2,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "penalty_last_n": 8,
    "seed": 7,
}
KINDS: dict[str, list[Fields]] = {
    "generate": [
        {"prompt": "x", "owner": ""},
        {
            "prompt": "a b c",
            "sampling": SAMPLING,
            "stop": ["b", "cd"],
            "lane": "background",
            "ignore_eos": True,
        },
        {"messages": [{"role": "system", "content": [{"text": "s", "shared": True}]}, *USER], "owner": "a"},
        {"messages": CALLED, "tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False},
        {
            "messages": USER,
            "tools": [TOOL | {"strict": True}],
            "tool_choice": "function:f",
            "lane": "retrieval",
        },
        {"prompt": "x", "json_schema": OBJECT},
        {"prompt": "x", "grammar": 'root ::= "a" | "b" root', "logprobs": 2},
    ],
    "count": [
        {"texts": ["a", "<end_of_turn>", "漢 😀"]},
        {"texts": ["a b"], "return_tokens": True},
        {"messages": CALLED, "tools": [TOOL]},
    ],
    "detokenize": [{"tokens": [5, 6, 7]}, {"tokens": [300, 2], "return_pieces": True}],
    "embed": [{"texts": ["a"], "normalize": False, "dimensions": 8}, {"tokens": [[1, 2]], "owner": "b"}],
    "cancel": [{"target": ""}],
    "forget": [{"owner": "a"}],
    "stats": [{}],
    "shutdown": [{}],
}


class Host(HostProcess):
    """A host process whose events are taken one by one."""

    def __init__(self, model: Path, *flags: str) -> None:
        self._taken: deque[dict[str, Any]] = deque()
        super().__init__(model, *FLAGS, *flags, wait_ready=False)

    def take(self, event: dict[str, Any]) -> None:
        self._taken.append(event)

    def event(self) -> dict[str, Any]:
        """Wait for the next event, which must be valid. Raises AssertionError with the end of the host's log."""
        self.wait(lambda: self._taken or self.bad_lines, PATIENCE)
        assert not self.bad_lines
        return self._taken.popleft()


class Fuzz:
    """Sends batches and accounts for every answer."""

    def __init__(self, host: Host, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._host = host
        self._draw = random.Random(seed)
        self._number = 0
        self._known: set[str] = set()

    def batch(self, size: int) -> None:
        """Send lines, and wait for the answer to each."""
        owed: dict[str, bytes] = {}
        nameless = 0
        lines = []
        for _ in range(size):
            line, name = self._line()
            lines.append(line)
            if name is not None:
                owed[name] = line
            elif line.strip():
                nameless += 1
        last = f"batch{self._number}"
        owed[last] = b""
        lines.append(b'{"op":"stats","id":"%s"}\n' % last.encode())
        self._host.raw(b"\n".join(lines))
        ended: set[str] = set()
        while owed or nameless:
            event = self._next(owed)
            name, kind = event.get("id"), event["event"]
            if name is None:
                nameless -= 1
                assert kind == "failed" and nameless >= 0, event
            else:
                assert name in owed, f"{event} although its request has ended: {name in ended}"
                if kind in TERMINAL:
                    ended.add(name)
                    line = owed.pop(name)
                    assert event.get("code") != "internal", (event, line)
            if kind in TERMINAL:
                self.counts[event.get("code", kind)] += 1

    def _next(self, owed: dict[str, bytes]) -> dict[str, Any]:
        try:
            return self._host.event()
        except AssertionError as problem:
            raise AssertionError(f"{problem}; owed: {list(owed.items())[:3]!r:.3000}") from None

    def _line(self) -> tuple[bytes, str | None]:
        """A line, and the id that its answer must have."""
        while True:
            self._number += 1
            if self._draw.randrange(OVERSIZED) == 0:
                return b"x" * protocol.MAX_LINE_BYTES, None
            line = line_of(request(self._draw, self._number), self._draw)
            if len(line) >= protocol.MAX_LINE_BYTES:
                return line, None
            try:
                message = protocol.decode_request(line)
            except protocol.ProtocolError as error:
                name = error.request_id
            else:
                name = message.id
                if isinstance(message, protocol.Shutdown):
                    continue
            if name is None or name not in self._known:
                self._known.update([name] if name is not None else [])
                return line, name


def run(
    model: Path, lines: int, seed: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Fuzz one host. Raises AssertionError on a wrong, missing or surplus answer."""
    with tempfile.TemporaryDirectory() as folder:
        host = Host(model, "--snapshots", folder)
        try:
            while host.event()["event"] != "ready":
                pass
            fuzz = Fuzz(host, seed)
            begun = time.monotonic()
            for start in range(0, lines, BATCH):
                fuzz.batch(min(BATCH, lines - start))
                if start % (BATCH * 250) == 0:
                    progress(f"{start} lines, {time.monotonic() - begun:.0f} s")
            seconds = time.monotonic() - begun
            host.raw(b'{"op":"generate","id":"alive","prompt":"x","max_tokens":1}\n')
            while (event := host.event())["event"] != "finished":
                assert event["event"] != "failed", event
            host.raw(b'{"op":"shutdown","id":"end"}\n')
            while host.event()["event"] != "closing":
                pass
            assert host.process.wait(PATIENCE) == 0
            assert b"Traceback" not in host.stop_reading(), host.stderr[-3000:]
        finally:
            host.kill()
    return {"lines": lines, "seconds": round(seconds, 1), **dict(fuzz.counts.most_common())}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chat", choices=("turns", "hermes", "gemma"), default="hermes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        script = [sys.executable, "models/random_gemma.py", str(model), "--chat", asked.chat]
        subprocess.run([*script, "--vocabulary-size", "512"], check=True, cwd=ROOT, capture_output=True)
        print(json.dumps(run(model, asked.lines, asked.seed, partial(print, file=sys.stderr, flush=True))))


if __name__ == "__main__":
    main()
