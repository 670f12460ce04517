"""Run the gateway: socket, signals, shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import structlog
from starlette.applications import Starlette
from uvicorn import Config, Server

from gateway.api.streaming.streams import Drain
from gateway.base.errors import ConfigurationError
from gateway.base.private import exposed
from gateway.config.settings import ServerSettings, Settings
from gateway.server.app import create_app
from gateway.server.connection import GuardedProtocol
from gateway.server.systemd import Notifier, inherited_socket
from gateway.telemetry import logs

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 256
_MAX_HEAD_BYTES = 32 * 1024
_KEEP_ALIVE_SECONDS = 15
# From the last events of streams that are stopped until their connections are closed.
_FLUSH_SECONDS = 2.0

log = structlog.get_logger(__name__)


def run(settings: Settings, on_listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, let open requests finish within the grace period, and return.

    A socket from the service manager replaces ``server.host`` and ``server.port``. ``on_listening`` is called with the
    server's URL once it accepts connections. Raises ConfigurationError (address not available, public without a key,
    unusable database or model name).
    """
    logs.configure(settings.log)
    if remedy := exposed(settings.data_dir):
        log.warning(remedy)
    notifier = Notifier()
    with inherited_socket() or contextlib.nullcontext() as passed:
        if passed is not None:
            settings = listening_on(settings, passed)
        asyncio.run(serve(settings, create_app(settings), on_listening, sock=passed, notifier=notifier))


async def serve(
    settings: Settings,
    app: Starlette,
    on_listening: Callable[[str], None],
    *,
    sock: socket.socket | None = None,
    notifier: Notifier | None = None,
) -> None:
    """Run ``app`` with its lifespan in this event loop, on ``sock`` or a new socket; see :func:`run`."""
    notifier = notifier or Notifier({})
    server = GatewayServer(settings, app, on_listening, notifier)
    with server.stop_signals(), sock or listening_socket(settings.server) as listening:
        # uvicorn would swallow the errors of the lifespan.
        async with notifier.heartbeat(app.state.supervision), app.router.lifespan_context(app):
            await server.serve(sockets=[listening])


class GatewayServer(Server):
    """uvicorn with our connections and signals, and a shutdown that ends all streams."""

    def __init__(
        self,
        settings: Settings,
        app: Starlette,
        on_listening: Callable[[str], None],
        notifier: Notifier | None = None,
    ) -> None:
        limits = settings.server
        grace = limits.shutdown_grace_seconds
        super().__init__(
            Config(
                app,
                http=partial(GuardedProtocol, limits),  # type: ignore[arg-type]
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                forwarded_allow_ips=limits.trusted_proxies,
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=grace + _FLUSH_SECONDS,  # type: ignore[arg-type]
            )
        )
        self._grace_seconds = grace
        self._on_listening = on_listening
        self._notifier = notifier or Notifier({})
        self._host = limits.host
        self._drain: Drain = app.state.drain

    def stop(self) -> None:
        """Stop accepting and let open requests finish; a second call ends them now."""
        if self.should_exit:
            self._drain.stop()
        self.should_exit = True

    @contextlib.contextmanager
    def stop_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT call :meth:`stop`, including those that are pending."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        try:
            yield
        finally:
            for number in _STOP_SIGNALS:
                loop.remove_signal_handler(number)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # uvicorn's own handlers would raise the signal again after a clean shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if sockets:
            url = url_of(self._host, sockets[0])
            self._on_listening(url)
            self._notifier.ready(f"listening on {url}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._notifier.stopping()
        self._drain.begin()
        end = asyncio.get_running_loop().call_later(self._grace_seconds, self._drain.stop)
        try:
            await super().shutdown(sockets)
        finally:
            end.cancel()
            self._drain.stop()


def listening_socket(settings: ServerSettings) -> socket.socket:
    """A bound, listening socket; the caller closes it. Raises ConfigurationError."""
    host = settings.host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        return without_delay(listening)
    except OSError as error:
        stop = "stop the program that uses it, or " if error.errno == errno.EADDRINUSE else ""
        raise ConfigurationError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; "
            f"{stop}choose another --host or --port",
            code="address_unavailable",
        ) from error


def listening_on(settings: Settings, passed: socket.socket) -> Settings:
    """``settings`` with the address of an inherited socket, so that checks see the real address."""
    host, port = without_delay(passed).getsockname()[:2]
    return msgspec.structs.replace(
        settings, server=msgspec.structs.replace(settings.server, host=host, port=port)
    )


def without_delay(listening: socket.socket) -> socket.socket:
    """Set TCP_NODELAY for the accepted connections.

    asyncio sets it only on sockets with an explicit protocol. Without it, each reply waits 40 ms for the client's
    delayed acknowledgement (measured).
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(host: str, sock: socket.socket) -> str:
    name = host.strip("[]")
    return f"http://{f'[{name}]' if ':' in name else name}:{sock.getsockname()[1]}"
