"""What used cells of other sequences cost whoever runs: CPU time of one thread, by number of idle cells.

    python benchmarks/idle_cells.py MODEL.gguf [--cells 0,2048,4096,8192,12288] [--rounds 3]

A prompt of 1,000 tokens and decoded tokens after it, beside sequences that nobody continues. CPU time of one thread is
used because it hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway.benchmarking.machine import this_machine
from model_host import bindings

bindings.import_light()

from model_host.engine import Engine, Span  # noqa: E402 - after the light import

_CHUNK = 512
_PROMPT = 1000
_DECODED = 16
_IDLE_LENGTH = 2048  # tokens of an idle sequence


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--cells", default="0,2048,4096,8192,12288")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    counts = [int(count) for count in asked.cells.split(",")]
    sequences = max(counts) // _IDLE_LENGTH + 1
    engine = Engine(
        asked.model.resolve(),
        context=max(counts) + 2 * _PROMPT,
        sequences=sequences,
        outputs=sequences,
        chunk=_CHUNK,
        threads=1,
        progress=lambda _: True,
    )
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in counts}
    for _ in range(asked.rounds):
        for count in counts:
            for sequence in range(sequences):
                engine.trim(sequence, 0)
            for sequence in range(1, count // _IDLE_LENGTH + 1):
                _read(engine, sequence, _IDLE_LENGTH)
            found[count].append(_costs(engine))
    print(f"{this_machine()}; {asked.model.stem}; a host keeps {engine.idle_cells} idle cells.\n")
    print("| idle cells | reading, ms a token | decoding, ms a token |\n|---|---|---|")
    first = [statistics.median(costs[part] for costs in found[counts[0]]) for part in (0, 1)]
    for count, costs in found.items():
        now = [statistics.median(each[part] for each in costs) for part in (0, 1)]
        cells = [f"{now[part]:.2f} ({now[part] / first[part]:.2f}×)" for part in (0, 1)]
        print(f"| {count:,} | {' | '.join(cells)} |")


def _costs(engine: Engine) -> tuple[float, float]:
    """Milliseconds of CPU a token of reading and of decoding."""
    reading = _timed(lambda: _read(engine, 0, _PROMPT)) / _PROMPT
    decoding = [
        _timed(lambda at=_PROMPT + step: engine.decode([Span(0, at, _tokens(1), 1)]))  # type: ignore[misc]
        for step in range(_DECODED)
    ]
    return reading, statistics.median(decoding)


def _read(engine: Engine, sequence: int, length: int) -> None:
    for start in range(0, length, _CHUNK):
        result, _ = engine.decode([Span(sequence, start, _tokens(min(_CHUNK, length - start)), 1)])
        assert result == "done", result


def _tokens(count: int) -> list[int]:
    return [random.randrange(300, 1000) for _ in range(count)]


def _timed(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return 1000 * (time.process_time() - before)


if __name__ == "__main__":
    main()
