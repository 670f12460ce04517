"""A step that reads a prompt while others decode: as one batch, and as two.

    python benchmarks/mixed_steps.py MODEL.gguf [--rounds 4]

Printed: milliseconds of both, medians, and their ratio. Use a model of 270M parameters or so: the larger the model, the
less its attention weighs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model_host import bindings

bindings.import_light()

from model_host.engine import Engine, Span  # noqa: E402

SITUATIONS = ((1, 850), (2, 850), (7, 150))  # conversations that decode, tokens of each
READ_BEFORE = (0, 512)  # tokens of the prompt
_CHUNK = 512
_VOCABULARY = 5000


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    engine = Engine(
        asked.model,
        context=16_384,
        sequences=8,
        outputs=8,
        chunk=_CHUNK,
        threads=asked.threads,
        progress=lambda _: True,
    )
    print("| decoding | read before | tokens | one batch, ms | two, ms | ratio |\n|---|---|---|---|---|---|")
    for count, length in SITUATIONS:
        for before in READ_BEFORE:
            for tokens in (126, 128 - count, 128, _CHUNK - count):
                one, two = _compare(engine, count, length, before, tokens, asked.rounds)
                print(
                    f"| {count} of {length} | {before} | {tokens} | {one:.0f} | {two:.0f} | {one / two:.2f} |",
                    flush=True,
                )


def _compare(
    engine: Engine, count: int, length: int, before: int, tokens: int, rounds: int
) -> tuple[float, float]:
    """Milliseconds of one batch and of two, medians."""
    reader = count
    for sequence in range(count):
        _fill(engine, sequence, length)
    _fill(engine, reader, before)
    decoding = [Span(sequence, length, [5], 1) for sequence in range(count)]
    reading = [Span(reader, before, _tokens(tokens, 9), 1)]

    def timed(work: Callable[[], object]) -> float:
        for span in (*decoding, *reading):
            engine.trim(span.sequence, span.start)
        started = time.perf_counter()
        work()
        return (time.perf_counter() - started) * 1e3

    def apart() -> None:
        engine.decode(decoding)
        engine.decode(reading)

    one, two = [], []
    for _ in range(rounds):
        one.append(timed(lambda: engine.decode([*decoding, *reading])))
        two.append(timed(apart))
    for sequence in range(count + 1):
        engine.trim(sequence, 0)
    return statistics.median(one), statistics.median(two)


def _fill(engine: Engine, sequence: int, length: int) -> None:
    for start in range(0, length, _CHUNK):
        engine.decode([Span(sequence, start, _tokens(min(_CHUNK, length - start), sequence + start), 1)])


def _tokens(count: int, seed: int) -> list[int]:
    return [100 + (seed * 31 + i * 7) % (_VOCABULARY - 100) for i in range(count)]


if __name__ == "__main__":
    main()
