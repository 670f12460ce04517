"""Commands that talk with something that is no hearth server say so in one line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from tests.gateway.cli.conftest import Run

JSON, HTML, EVENTS = "application/json", "text/html", "text/event-stream"


@contextmanager
def answering(replies: Sequence[bytes]) -> Iterator[str]:
    """The address of a server that answers each request with the last of these replies, and hangs up."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # closed
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(replies[-1])

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def http(kind: str, body: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


@pytest.mark.parametrize(
    "reply",
    [
        http(HTML, "<html></html>"),
        http(JSON, "[]"),
        http(JSON, "{}"),
        http(EVENTS, "event: delta\ndata: nonsense\n\n"),
        http(HTML, "", "302 Found"),
        http(JSON, "\x00", "500 Oh"),
    ],
)
def test_another_server_is_told_apart(hearth: Run, reply: bytes) -> None:
    with answering([reply]) as url:
        for command in ("status", "ask hi", "chat", "facts", "generate hi"):
            done = hearth(*command.split(), "--url", url, stdin="hello\n")
            assert done.returncode == 1, (command, done.stderr)
            said = "is it a hearth server?" if b"500" not in reply else "answered with status 500"
            last = done.stderr.strip().splitlines()[-1]
            assert last.startswith("hearth: ") and said in last, (command, done.stderr)
            assert "Traceback" not in done.stderr


def test_bytes_that_are_no_http_and_no_tls(hearth: Run) -> None:
    with answering([b"\x00\xff\xfenonsense\r\n\r\n"]) as url:
        plain = hearth("ask", "hi", "--url", url)
        assert (plain.returncode, "the connection to" in plain.stderr) == (75, True), plain.stderr
        secure = hearth("ask", "hi", "--url", url.replace("http:", "https:"))
        assert (secure.returncode, "no secure connection to" in secure.stderr) == (75, True), secure.stderr
