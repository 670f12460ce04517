"""A hub on loopback: HEAD with the hub's headers, GET with Range, and switches to misbehave."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.serving import served_by
from tests.waiting import PATIENCE

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Hub:
    """``files`` maps ``owner/repo/path`` to content. Counters and switches are read and set by tests."""

    files: dict[str, bytes]
    url: str = ""
    checksums: dict[str, str] = field(default_factory=dict)  # announced instead of the true ones
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)  # file to status and X-Error-Code
    # Bytes that a GET sends before its connection drops. Each GET takes one of them.
    cut_after: list[int] = field(default_factory=list)
    ignore_range: bool = False
    slow: threading.Event | None = None  # GETs send a little, then wait for it
    ranges: list[str | None] = field(default_factory=list)  # Range header of each GET
    tokens: list[str | None] = field(default_factory=list)

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self.files[name]).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        hub = self.hub
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        name = f"{match[1]}/{match[3]}" if match else self.path
        hub.tokens.append(self.headers.get("Authorization"))
        if name in hub.refusals or name not in hub.files:
            status, code = hub.refusals.get(name, (404, "EntryNotFound"))
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = hub.files[name]
        if not body:
            self.send_response(200)
            self.common(name, len(data))
            self.end_headers()
            return
        self.send_file(name, data)

    def common(self, name: str, length: int) -> None:
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("X-Linked-Size", str(len(self.hub.files[name])))
        self.send_header("X-Linked-Etag", f'"{self.hub.checksums.get(name, self.hub.sha256(name))}"')
        self.send_header("ETag", '"weak-of-the-redirect"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))

    def send_file(self, name: str, data: bytes) -> None:
        hub, wanted = self.hub, self.headers.get("Range")
        hub.ranges.append(wanted)
        start = 0
        if wanted and not hub.ignore_range:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.common(name, len(data) - start)
        self.end_headers()
        rest = data[start:]
        if hub.cut_after:
            self.wfile.write(rest[: hub.cut_after.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            return
        if hub.slow is not None:
            self.wfile.write(rest[: len(rest) // 2])
            self.wfile.flush()
            hub.slow.wait(PATIENCE)
            self.close_connection = True
            return
        self.wfile.write(rest)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    with served_by(Handler, hub=hub) as hub.url:
        yield hub
        if hub.slow is not None:
            hub.slow.set()
