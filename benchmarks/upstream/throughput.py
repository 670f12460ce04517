"""Throughput and cached tokens of gateways over one, two, … simulated hosts of fixed speed.

With ``--gateway-each`` there are as many gateways as hosts; each gateway uses all hosts, and each client one gateway.
``HEARTH_STORE__URL`` in the environment is the PostgreSQL database of all of them.
Each client holds one conversation after another: it sends the whole history each time, as clients of OpenAI's API do.

    .venv/bin/python -m benchmarks.upstream.throughput --hosts 1 2
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any

import httpx2
import psutil

from benchmarks.common import ROOT, command_line, new_server
from benchmarks.peer_servers import free_port, running

_SYSTEM = " ".join(f"rule{number}" for number in range(200))
_QUESTION = 60  # tokens


@contextmanager
def hosts(count: int, prefill: float, decode: float, cache: int) -> Iterator[list[str]]:
    """Yield the addresses of running hosts."""
    with ExitStack() as stack:
        urls = []
        for number in range(count):
            port = free_port()
            command = [sys.executable, "-m", "benchmarks.upstream.simulated_host", "--port", str(port)]
            command += ["--prefill", str(prefill), "--decode", str(decode), "--cache", str(cache)]
            log = ROOT / "build" / f"simulated-{number}.log"
            log.parent.mkdir(exist_ok=True)
            stack.enter_context(running(command, log, port, "/v1/models", {"PYTHONPATH": str(ROOT)}))
            urls.append(f"http://127.0.0.1:{port}")
        yield urls


class Load:
    """Counts what the clients get."""

    def __init__(self, urls: list[str], turns: int, reply: int) -> None:
        limits = httpx2.Limits(max_connections=None)
        self._gateways = [httpx2.AsyncClient(base_url=url, timeout=300, limits=limits) for url in urls]
        self._turns = turns
        self._reply = reply
        self.requests = self.prompt = self.cached = self.written = 0

    async def client(self, number: int, until: float) -> None:
        gateway = self._gateways[number % len(self._gateways)]
        conversation = 0
        while time.monotonic() < until:
            conversation += 1
            messages: list[dict[str, Any]] = [{"role": "system", "content": _SYSTEM}]
            for turn in range(self._turns):
                words = " ".join(f"q{number}.{conversation}.{turn}.{word}" for word in range(_QUESTION))
                messages.append({"role": "user", "content": words})
                body = {"messages": messages, "max_tokens": self._reply}
                reply = await gateway.post("/v1/chat/completions", json=body)
                if reply.status_code != 200:
                    raise SystemExit(f"{reply.status_code}: {reply.text}")
                found = reply.json()
                if time.monotonic() >= until:
                    return
                messages.append(found["choices"][0]["message"])
                usage = found["usage"]
                self.requests += 1
                self.prompt += usage["prompt_tokens"]
                self.cached += usage["prompt_tokens_details"]["cached_tokens"]
                self.written += usage["completion_tokens"]

    async def run(self, clients: int, seconds: float) -> None:
        async with AsyncExitStack() as stack:
            for gateway in self._gateways:
                await stack.enter_async_context(gateway)
                await gateway.post("/admin/host/warm")
            until = time.monotonic() + seconds
            await asyncio.gather(*(self.client(number, until) for number in range(clients)))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--gateway-each", action="store_true")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--reply", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--prefill", type=float, default=2000.0)
    parser.add_argument("--decode", type=float, default=100.0)
    parser.add_argument("--cache", type=int, default=200_000)
    given = parser.parse_args()
    print(f"{given.clients} clients, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        "hosts  requests  tokens/s  ratio  prompt tokens  cached  CPU ms of gateways a request, start included"
    )
    first = 0.0
    for count in given.hosts:
        with hosts(count, given.prefill, given.decode, given.cache) as urls, ExitStack() as stack:
            upstream = {"UPSTREAM__URLS": ",".join(urls), "UPSTREAM__MODEL": "simulated"}
            if store := os.environ.get("HEARTH_STORE__URL"):
                upstream["STORE__URL"] = store
            gateways = [
                stack.enter_context(new_server("simulated", **upstream))
                for _ in range(count if given.gateway_each else 1)
            ]
            load = Load([each.url for each in gateways], given.turns, given.reply)
            asyncio.run(load.run(given.clients, given.seconds))
            spent = sum(sum(psutil.Process(each.process.pid).cpu_times()[:2]) for each in gateways)
        rate = load.written / given.seconds
        first = first or rate
        share = load.cached / load.prompt
        print(
            f"{count:5}  {load.requests:8}  {rate:8.1f}  {rate / first:5.2f}  {load.prompt:13}  {share:6.1%}  "
            f"{1000 * spent / load.requests:6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
