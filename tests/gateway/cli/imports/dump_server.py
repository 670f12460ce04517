"""A file server on loopback: Range and If-Range as nginx does them, and switches to misbehave."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.serving import served_by
from tests.waiting import PATIENCE


@dataclass
class FileServer:
    """One file at every path below ``/dump``. Switches are set and requests are read by tests."""

    data: bytes
    etag: str = '"v1"'
    modified: str = ""
    url: str = ""
    status: int = 200
    ignore_range: bool = False
    wrong_part: bool = False
    cut_after: list[int] = field(default_factory=list)  # each GET takes one: bytes sent before it drops
    hold: threading.Event | None = None  # a GET sends half and waits for it
    halfway: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str | None, str | None]] = field(default_factory=list)  # Range, If-Range
    statuses: list[int] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: FileServer

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # clients are killed here
            super().handle()

    def do_GET(self) -> None:
        files = self.files
        if self.path.startswith("/moved"):
            self._reply(302, b"", Location="/dump.xml")
            return
        wanted, version = self.headers.get("Range"), self.headers.get("If-Range")
        files.requests.append((wanted, version))
        if files.status != 200:
            self._reply(files.status, b"no")
            return
        same = version is None or version in (files.etag, files.modified)
        if wanted is None or files.ignore_range or not same:
            self._send(200, 0)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(files.data):
            self._reply(416, b"", **{"Content-Range": f"bytes */{len(files.data)}"})
        else:
            self._send(206, start + files.wrong_part)

    def _send(self, status: int, start: int) -> None:
        files, rest = self.files, self.files.data[start:]
        headers = {"ETag": files.etag, "Last-Modified": files.modified}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{len(files.data) - 1}/{len(files.data)}"
        self._head(status, len(rest), headers)
        if files.cut_after:
            rest = rest[: files.cut_after.pop(0)]
            self.close_connection = True
        if files.hold is not None:
            self.wfile.write(rest[: len(rest) // 2])
            self.wfile.flush()
            files.halfway.set()
            files.hold.wait(PATIENCE)
            self.close_connection = True
            return
        self.wfile.write(rest)

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self._head(status, len(body), headers)
        self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.files.statuses.append(status)
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()


@contextlib.contextmanager
def serving(files: FileServer) -> Iterator[FileServer]:
    with served_by(_Handler, files=files) as files.url:
        yield files
        if files.hold is not None:
            files.hold.set()
