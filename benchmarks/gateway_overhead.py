"""What the gateway adds to a request: one short chat through HTTP against the same request to the bare host.

    python benchmarks/gateway_overhead.py MODEL.gguf [--requests 200]

Both sides run in turn, request by request, on the same machine and the same model, so that a busy machine
slows both. Printed: median seconds of each side and of the differences.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bare_host import BareHost
from tests.end_to_end.server import Server

MESSAGES = [{"role": "user", "content": "hello there, how are you?"}]


def direct(bare: BareHost) -> float:
    """Seconds from writing the request to reading its end."""
    begun = time.perf_counter()
    bare.send("generate", messages=MESSAGES, max_tokens=1, sampling={"temperature": 0})
    bare.until("finished")
    return time.perf_counter() - begun


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=200)
    arguments = parser.parse_args()
    model = arguments.model.resolve()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", model)
        bare = BareHost(model, "--threads", "1")
        body = {"model": "default", "messages": MESSAGES, "max_tokens": 1, "temperature": 0}

        def through_gateway() -> float:
            started = time.perf_counter()
            server.client.post("/v1/chat/completions", json=body).raise_for_status()
            return time.perf_counter() - started

        for _ in range(10):
            direct(bare)
            through_gateway()
        pairs = [(direct(bare), through_gateway()) for _ in range(arguments.requests)]
        bare.close()
        server.stop()
    differences = sorted(through - direct for direct, through in pairs)
    print(f"requests                {len(pairs)} pairs")
    print(f"bare host, median       {statistics.median(p[0] for p in pairs) * 1000:.2f} ms")
    print(f"through gateway, median {statistics.median(p[1] for p in pairs) * 1000:.2f} ms")
    print(
        f"difference, median      {statistics.median(differences) * 1000:.2f} ms"
        f" (10th to 90th percentile {differences[len(differences) // 10] * 1000:.2f}"
        f" to {differences[len(differences) * 9 // 10] * 1000:.2f} ms)"
    )


if __name__ == "__main__":
    main()
