"""HTTP servers on loopback, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def served_by(handler: type[BaseHTTPRequestHandler], **attributes: object) -> Iterator[str]:
    """The URL of a server whose handlers have these attributes, and do not log."""
    silent = {"log_message": lambda *args: None}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), silent | attributes))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
