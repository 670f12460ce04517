"""Hostile HTTP requests to a real `hearth start`: none may cause a 500, a hang, or the end of a process.

    python -m tests.end_to_end.fuzz.http [--requests 10000] [--seed 1] [--model MODEL.gguf] [--only NUMBER ...]

The routes are those of the OpenAPI document. Bodies are valid ones with mutations, damaged JSON, other media types and
headers; one request in eight is not HTTP. A request depends on the seed, its number, and what the server has stored of
earlier ones, so `--only` nearly always repeats one. Prints the number of replies by status, and each failure with its
request; exits with status 1 after a failure.
"""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_from_bytes, urlencode

from benchmarks.common import command_line, new_server
from tests.end_to_end.fuzz.values import GOOD, SHORT, STRINGS, damaged, hostile, mutated, value_of, written
from tests.end_to_end.server import Server

SIDE_BY_SIDE = 6
# A reply that takes longer is a hang; the server's own deadlines are shorter.
HANG_SECONDS = 120.0
SETTINGS = {
    "SERVER__HEADER_TIMEOUT_SECONDS": 2,
    "SERVER__BODY_TIMEOUT_SECONDS": 2,
    "ASK__ANSWER_TOKENS": 16,
    "ASK__DEADLINE_SECONDS": 60,
    "MEMORY__ANSWER_TOKENS": 8,
    "MEMORY__FACTS": "false",
    "MEMORY__TASKS": "false",
}
HEADERS = (
    "Accept: text/event-stream",
    "Accept: application/json",
    "Accept: text/plain;q=0, */*;q=nonsense",
    "Origin: http://evil.example",
    "Origin: null",
    "Host: evil.example",
    "Expect: 100-continue",
    "Expect: nonsense",
    "Connection: keep-alive, upgrade",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "Range: bytes=0-0,-1",
    "Content-Encoding: gzip",
    "X-Request-ID: a\x7fb",
    "X-Request-ID: " + "r" * 300,
    "Authorization: Bearer \xff\xfe",
    "Authorization: Basic",
    "X-Api-Key: hk_nothing",
    'X-Forwarded-For: 1.2.3.4, "x',
    "X-Forwarded-Proto: gopher",
    "Cookie: " + "c" * 8000,
    "X-Big: " + "y" * 40_000,
    "If-None-Match: *",
    "Sec-Fetch-Site: cross-site",
    "TE: trailers",
    "Content-Length: 3",
    "Transfer-Encoding: chunked",
    "Content-Language: \u202e",
)
TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "text/plain; charset=latin-1",
    "multipart/form-data",
    "application/x-www-form-urlencoded",
    "",
    "*/*",
    "application/json\x0b",
    "a" * 300,
)
GARBAGE: tuple[bytes, ...] = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\r\n" * 3,
    b"\n",
    b"\0" * 100,
    b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET  / HTTP/1.1\r\n\r\n",
    b"GET /healthz\r\n",
    b"\xff" * 5000,
    b"G" * 70_000,
    b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\n\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50,
    b"GET http://[ HTTP/1.1\r\nHost: [\r\n\r\n",
    b"GET /%zz%c1?%=& HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
)
# The first event of a reply that ends only with its client.
BEGUN = re.compile(rb"\nevent: (?:state|ready)\n")
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Operation(NamedTuple):
    """One method on one path of the OpenAPI document."""

    method: str
    path: str
    described: dict[str, Any]


class Fuzz:
    """Requests for one running server."""

    def __init__(self, server: Server, seed: int) -> None:
        document = server.client.get("/openapi.json").json()
        self._components = document["components"]["schemas"]
        self._operations = [
            Operation(method.upper(), path, described)
            for path, methods in document["paths"].items()
            for method, described in methods.items()
            for _ in range(3 if "requestBody" in described else 1)  # more can go wrong
        ]
        self._server = server
        self._port = int(server.url.rpartition(":")[2])
        self._seed = seed
        self._lock = threading.Lock()
        self.statuses: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, numbers: Iterable[int]) -> None:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for _ in pool.map(self.send, numbers):
                pass

    def send(self, number: int) -> None:
        chance = random.Random(f"{self._seed}:{number}")
        raw, ends = self._garbage(chance) if chance.random() < 0.125 else self._request(chance)
        try:
            reply = self._exchange(raw, ends)
        except OSError as error:  # the server may close on garbage before it has read all
            reply = b"" if isinstance(error, ConnectionError) else f"{type(error).__name__}: {error}".encode()
        statuses = _STATUS.findall(reply) or [b"none"]
        problem = ""
        if b"500" in statuses or b"an internal error occurred" in reply:
            problem = "an internal error"
        elif reply.startswith(b"TimeoutError"):
            problem = "a hang"
        elif self._server.process.poll() is not None:
            problem = "the gateway has ended"
        with self._lock:
            self.statuses.update(status.decode() for status in statuses)
            if problem:
                self.failures.append(f"request {number}: {problem}\n  {raw[:2000]!r}\n  -> {reply[:1000]!r}")

    def _exchange(self, raw: bytes, ends: bool) -> bytes:
        """Return the reply until the server closes the connection, or the beginning of an endless stream."""
        with socket.create_connection(("127.0.0.1", self._port), HANG_SECONDS) as connection:
            connection.sendall(raw)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            reply, until = b"", time.monotonic() + HANG_SECONDS
            while not BEGUN.search(reply) and (piece := connection.recv(65536)):
                reply += piece
                connection.settimeout(max(0.001, until - time.monotonic()))
            return reply

    def _garbage(self, chance: random.Random) -> tuple[bytes, bool]:
        """Return garbage, or the beginning of a request, and whether to end the output afterwards."""
        raw = chance.choice(GARBAGE)
        if chance.random() < 0.4:
            raw, _ = self._request(chance)
            raw = raw[: chance.randrange(1, len(raw))]
        if chance.random() < 0.4:
            spoilt = bytearray(raw)
            for _ in range(chance.choice([1, 3, 30])):
                spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
            raw = bytes(spoilt)
        return raw, chance.random() < 0.9

    def _request(self, chance: random.Random) -> tuple[bytes, bool]:
        operation = chance.choice(self._operations)
        method = operation.method
        if chance.random() < 0.04:
            method = chance.choice(["GET", "POST", "PUT", "HEAD", "OPTIONS", "get", "X"])
        media = operation.described.get("requestBody", {}).get("content", {})
        body = self._body(operation, media, chance) if media or chance.random() < 0.05 else b""
        lines = [f"{method} {self._target(operation, chance)} HTTP/1.1"]
        lines += [f"Host: 127.0.0.1:{self._port}", "Connection: close"]
        kind = chance.choice(TYPES) if chance.random() < 0.08 else next(iter(media), "application/json")
        lines += [f"Content-Type: {kind}"] if body or chance.random() < 0.05 else []
        lines += chance.sample(HEADERS, chance.choice([1, 1, 3])) if chance.random() < 0.15 else []
        if chance.random() < 0.1:
            lines.append("Transfer-Encoding: chunked")
            size = chance.choice([1, 7, 4096])
            pieces = [body[at : at + size] for at in range(0, min(len(body), 200 * size), size)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        elif body or method == "POST":
            wrong_by = chance.choice([-1, 1, 1000]) if chance.random() < 0.01 else 0
            lines.append(f"Content-Length: {len(body) + wrong_by}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body, False

    def _target(self, operation: Operation, chance: random.Random) -> str:
        path = re.sub(r"\{\w+\}", lambda _: quote(self._id(operation.path, chance), safe=""), operation.path)
        query = {}
        for each in operation.described["parameters"]:
            if each["in"] == "query" and (each["required"] or chance.random() < 0.5):
                good = chance.random() < 0.5
                value = value_of(each["schema"], self._components, chance) if good else hostile(chance)
                query[each["name"]] = str(value)[:2000]
        if chance.random() < 0.02:
            path += chance.choice(["/", "//", "%00", "?a=1&a=2", "#x", ";x", "/..", "\u202e"])
        return path + ("?" + urlencode(query, errors="replace") if query else "")

    def _id(self, path: str, chance: random.Random) -> str:
        """Mostly an id that exists."""
        if chance.random() < 0.25:
            text = chance.choice([text for text in STRINGS if 0 < len(text) < 1000])
            return text.encode("utf-8", "replace").decode()
        fact = {"key": f"k{chance.randrange(50)}", "text": "a text"}
        bodies = {"conversations": {}, "facts": fact, "tasks": {"title": "a task"}}
        kind = path.split("/")[2]
        if kind not in bodies:
            return "default"
        reply = self._server.client.post(f"/v1/{kind}", json=bodies[kind])
        if reply.is_error:  # the number of tasks per day is limited
            return str(self._server.client.get(f"/v1/{kind}?limit=1").json()["data"][0]["id"])
        return str(reply.json()["id"])

    def _body(self, operation: Operation, media: dict[str, Any], chance: random.Random) -> bytes:
        if "application/json" not in media or chance.random() < 0.02:
            return quote_from_bytes(written(hostile(chance)), safe='{}[]":, ').encode()
        if chance.random() < 0.6 and operation.path in GOOD:
            body = chance.choice(GOOD[operation.path])
        else:
            body = value_of(media["application/json"]["schema"], self._components, chance)
        short = next((fields for end, fields in SHORT.items() if operation.path.endswith(end)), {})
        body = {**body, **short} if isinstance(body, dict) else body
        if chance.random() < 0.85:
            body = mutated(body, chance)
            if isinstance(body, dict):
                unbounded = "options" in short and not isinstance(body.get("options"), dict)
                body |= short if unbounded or chance.random() < 0.9 else {}
        text = written(body)
        return damaged(text, chance) if chance.random() < 0.1 else text


def judge(server: Server, fuzz: Fuzz) -> list[str]:
    """Return the problems of the server after all requests, and the failures."""
    problems = []
    health = server.health()
    if health["host"]["restarts"] or health["host"]["problem"]:
        problems.append(f"the model host has died: {json.dumps(health['host'])}")
    chat = {"messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 8}
    reply = server.client.post("/v1/chat/completions", json=chat, timeout=HANG_SECONDS)
    if reply.status_code != 200:
        problems.append(f"a chat is no longer answered: {reply.text}")
    if server.client.get("/readyz").status_code != 200:
        problems.append("the server is not ready")
    log = server.log.read_text(errors="replace")
    bad = r"^.*(?:unexpected error|Traceback|could not be recorded|Exception in).*$"
    found = sorted(set(re.findall(bad, log, re.MULTILINE)))
    return problems + [f"in the log: {line[:500]}" for line in found[:20]] + fuzz.failures


def fuzz(model: Path | str, numbers: Sequence[int], seed: int) -> list[str]:
    """Send the requests of these numbers to a new server; return what went wrong."""
    with new_server(model, **SETTINGS) as server:
        made = Fuzz(server, seed)
        for start in range(0, len(numbers), 1000):
            made.run(numbers[start : start + 1000])
            counts = ", ".join(f"{status}: {count}" for status, count in sorted(made.statuses.items()))
            print(f"{min(start + 1000, len(numbers))} requests; {counts}; {len(made.failures)} failures")
        return judge(server, made)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="hearth-demo")
    parser.add_argument("--only", type=int, nargs="+", help="only the requests of these numbers")
    asked = parser.parse_args()
    problems = fuzz(asked.model, asked.only or range(asked.requests), asked.seed)
    print("\n".join(problems) or "no 500, no hang, and all processes are well")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
