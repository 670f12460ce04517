"""What is connected to: a resolver that the tests answer for, and a hook where sockets connect."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

# Stands for the internet: the hook leads it to the server of this file.
PUBLIC = "8.8.8.8"
_FILE = Path(__file__).with_name("private_addresses.txt")
_OWN = ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12")
_OWN += ("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3")
# All IPv6 but the internet's part of it, and what stands for IPv4 inside that part.
_PUBLIC6, _TUNNELS6 = "2000::/3", ("2001::/32", "2002::/16")


class Hostile(NamedTuple):
    """A line of the list. ``meant``: as a configured address it may be contacted, by its own spelling."""

    url: str
    meant: bool
    leads_to: list[str]


def hostile(port: int) -> list[Hostile]:
    """The list, for a socket that listens at ``port``."""
    found = []
    for line in _FILE.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            url, _, addresses = line.removeprefix("meant ").partition(" -> ")
            found.append(
                Hostile(url.replace("{port}", str(port)), line.startswith("meant "), addresses.split())
            )
    return found


def is_private(address: str) -> bool:
    """By networks written out here, so that the product's own idea of it is not asked."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return any(found in ipaddress.ip_network(network) for network in _OWN)
    outside = found not in ipaddress.ip_network(_PUBLIC6)
    return outside or any(found in ipaddress.ip_network(network) for network in _TUNNELS6)


class Watch:
    """All connections of this process: none leaves the machine, and attempts at private addresses are recorded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.private: list[str] = []
        self.public = 0
        self.names: dict[str, list[str]] = {}  # a second answer after "|", for a repeated look-up
        self.redirects: list[str] = []  # what the server answers with, in turn; the last one again and again
        self._listeners: list[socket.socket] = []
        self._resolve, self._connect = socket.getaddrinfo, socket.socket.connect
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)
        monkeypatch.setattr(socket.socket, "connect", lambda sock, to: self._opened(sock, to))
        monkeypatch.setattr(socket.socket, "connect_ex", lambda sock, to: self._opened(sock, to) or 0)

    def _getaddrinfo(self, host: str | bytes, port: Any, *args: Any, **more: Any) -> Any:
        """Names of the test; numbers as the system's own resolver reads them; nothing else."""
        name = (host.decode() if isinstance(host, bytes) else str(host)).rstrip(".").lower()
        if name in ("localhost", "wiki.localhost"):
            name = "127.0.0.1"
        addresses = self.names.get(name)
        if addresses is None:
            return self._resolve(name, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        if "|" in addresses:
            self.names[name] = addresses[addresses.index("|") + 1 :]
            addresses = addresses[: addresses.index("|")]
        found = [
            self._resolve(each, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST) for each in addresses
        ]
        return [entry for entries in found for entry in entries]

    def _opened(self, sock: socket.socket, to: Any) -> Any:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return self._connect(sock, to)
        if to[0] == PUBLIC:
            self.public += 1
            return self._connect(sock, ("127.0.0.1", self.server_port))
        if not is_private(to[0]):
            raise ConnectionRefusedError(111, f"the test has no way to {to[0]}")
        self.private.append(to[0])
        if not ipaddress.ip_address(to[0].partition("%")[0]).is_loopback:
            raise ConnectionRefusedError(111, "a private address")
        return self._connect(sock, to)

    def knocked(self) -> bool:
        """Whether anybody connected to the sockets that listen on loopback."""
        return bool(select.select(self._listeners, [], [], 0)[0])

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        """Sockets on both loopback addresses, at one port, that nobody is to connect to."""
        with contextlib.ExitStack() as stack:
            v4 = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = v4.getsockname()[1]
            v6 = stack.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6))
            self._listeners = [v4, v6]
            yield port

    @contextlib.contextmanager
    def internet(self) -> Iterator[None]:
        """The server behind every public address: it redirects, with any bytes as the address."""
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
            self.server_port = listener.getsockname()[1]
            thread = threading.Thread(target=self._serve, args=(listener,))
            thread.start()
            yield
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock, contextlib.suppress(OSError):
                head = b""
                while b"\r\n\r\n" not in head and (more := sock.recv(65536)):
                    head += more
                to = self.redirects.pop(0) if len(self.redirects) > 1 else self.redirects[0]
                sock.sendall(
                    b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: "
                    + to.encode()
                    + b"\r\n\r\n"
                )


def named(url: str) -> str:
    """The host as it is in the names of :class:`Watch`."""
    return re.sub(r"\.$", "", urlsplit(url).hostname or "")
