"""Socket activation, readiness and watchdog of a service manager: sd_listen_fds(3) and sd_notify(3)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager

import structlog

from gateway.base.errors import ConfigurationError
from gateway.base.supervised import Supervision

log = structlog.get_logger(__name__)

_FIRST_DESCRIPTOR = 3
_MICROSECONDS = 1_000_000
# A manager that does not read its socket must not block the event loop for long.
_SEND_SECONDS = 1.0


def inherited_socket(environment: MutableMapping[str, str] | None = None) -> socket.socket | None:
    """The listening TCP socket that the service manager opened for this process, or None; the caller closes it.

    Removes the variables from ``environment``, so that no child inherits them. Raises ConfigurationError for more than
    one socket, or one that is not a listening TCP socket.
    """
    environment = os.environ if environment is None else environment
    owner, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if owner != str(os.getpid()) or count in ("", "0"):
        return None
    if count != "1":
        raise _unusable(f"{count} sockets; the socket unit needs exactly one ListenStream=")
    try:
        os.set_inheritable(_FIRST_DESCRIPTOR, False)
        inherited = socket.socket(fileno=_FIRST_DESCRIPTOR)
    except OSError as error:
        raise _unusable(f"a descriptor that is not a socket ({error.strerror})") from None
    tcp = inherited.family in (socket.AF_INET, socket.AF_INET6) and inherited.type == socket.SOCK_STREAM
    if not (tcp and inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
        inherited.close()
        raise _unusable(
            "a socket that does not listen on TCP; the socket unit needs ListenStream=ADDRESS:PORT"
        )
    return inherited


def _unusable(what: str) -> ConfigurationError:
    return ConfigurationError(f"the service manager passed {what}", code="bad_inherited_socket")


class Notifier:
    """Reports the state of this process to the service manager, if there is one.

    Removes ``NOTIFY_SOCKET`` and the watchdog's variables from ``environment``.
    """

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        address = environment.pop("NOTIFY_SOCKET", "")
        # "@" represents the zero byte of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        interval = environment.pop("WATCHDOG_USEC", "")
        owner = environment.pop("WATCHDOG_PID", str(os.getpid()))
        mine = owner == str(os.getpid()) and interval.isdecimal()
        self.watchdog_seconds = int(interval) / _MICROSECONDS if mine else 0.0

    def ready(self, status: str) -> None:
        """The service accepts requests; ``status`` is a line for `systemctl status`."""
        self._send(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        self._send("STOPPING=1\nSTATUS=finishing open requests")

    @asynccontextmanager
    async def heartbeat(self, supervision: Supervision) -> AsyncIterator[None]:
        """Ping the watchdog twice per interval.

        A stuck event loop sends no pings, so the service manager restarts the service.
        """
        if not (self._address and self.watchdog_seconds):
            yield
            return
        pause = self.watchdog_seconds / 2
        task = supervision.start("watchdog", lambda: self._beat(pause), longest_wait=pause)
        try:
            yield
        finally:
            await task.close()

    async def _beat(self, seconds: float) -> None:
        while True:
            self._send("WATCHDOG=1")
            await asyncio.sleep(seconds)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_SEND_SECONDS)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            log.warning("notify_failed", message=message.partition("\n")[0], problem=str(error))
