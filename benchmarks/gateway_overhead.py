"""Measure the overhead of the gateway: one short chat through HTTP, and the same request to a bare model host.

    python benchmarks/gateway_overhead.py MODEL.gguf [--requests 200]

Both sides take turns on the same machine and model, so that other programs slow both. Printed: the median of each side
and of the differences.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks.common import BareHost, command_line, new_server
from gateway.evaluation.measures import quantile
from tests.end_to_end.server import Server

MESSAGES = [{"role": "user", "content": "hello there, how are you?"}]


def direct(host: BareHost) -> float:
    """Return milliseconds from writing the request to reading its end."""
    begun = time.perf_counter()
    host.send("generate", messages=MESSAGES, max_tokens=1, sampling={"temperature": 0})
    host.until("finished")
    return (time.perf_counter() - begun) * 1000


def through_gateway(server: Server) -> float:
    body = {"model": "default", "messages": MESSAGES, "max_tokens": 1, "temperature": 0}
    begun = time.perf_counter()
    server.client.post("/v1/chat/completions", json=body).raise_for_status()
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=200)
    asked = parser.parse_args()
    model = asked.model.resolve()
    with new_server(model) as server:
        host = BareHost(model, "--threads", "1")
        for _ in range(10):
            direct(host)
            through_gateway(server)
        pairs = [(direct(host), through_gateway(server)) for _ in range(asked.requests)]
        host.close()
    differences = [through - bare for bare, through in pairs]
    print(f"requests                {len(pairs)} pairs")
    print(f"bare host, median       {statistics.median(bare for bare, _ in pairs):.2f} ms")
    print(f"through gateway, median {statistics.median(through for _, through in pairs):.2f} ms")
    print(
        f"difference, median      {statistics.median(differences):.2f} ms (10th to 90th percentile "
        f"{quantile(differences, 0.1):.2f} to {quantile(differences, 0.9):.2f} ms)"
    )


if __name__ == "__main__":
    main()
