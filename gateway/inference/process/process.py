"""A child process with pipes: spawn, signal its group, reap it. Knows nothing of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

import psutil
import structlog

from gateway.base.errors import ModelUnavailableError
from gateway.inference.process.memory import oom_kills

log = structlog.get_logger(__name__)

STDERR_LINE_BYTES = 4096  # longer lines are logged in pieces
EOF_SECONDS = 1.0  # for pipes that somebody outside the group still holds open


class HostProcess:
    """A child in its own process group. Make one with :meth:`spawn`; whoever does must await :meth:`end`.

    ``exited`` is done, with the return code as ``subprocess`` gives it, once the child is reaped.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.last_words: str | None = None  # the last line on stderr, for error messages
        self._process = psutil.Process(popen.pid)
        self._cpu_seconds = 0.0  # used when `working` was last asked
        self._oom_kills = oom_kills()
        self._transports: list[asyncio.ReadTransport | asyncio.WriteTransport] = []
        self._stderr: asyncio.Task[None] | None = None
        threading.Thread(target=self._wait, name=f"wait-{self.pid}", daemon=True).start()

    @classmethod
    async def spawn(
        cls, command: Sequence[str], environment: Mapping[str, str], line_limit: int
    ) -> HostProcess:
        """Start ``command``. Lines read from ``stdout`` are at most ``line_limit`` bytes.

        Raises ModelUnavailableError when the system refuses. Runs in the event loop's own thread on purpose:
        Linux sends a parent-death signal when the *thread* that started the child ends.
        """
        pipe = subprocess.PIPE
        try:
            popen = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds, and see above
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailableError(
                f"the model host cannot be started: {error}", retry_after=1.0
            ) from None
        process = cls(popen)
        try:
            await process._connect(popen, line_limit)
        except BaseException:
            process.discard()
            raise
        return process

    async def _connect(self, popen: subprocess.Popen[bytes], line_limit: int) -> None:
        loop = self._loop

        def protocol(reader: asyncio.StreamReader) -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(reader)

        self.stdout = asyncio.StreamReader(limit=line_limit)
        stderr = asyncio.StreamReader(limit=STDERR_LINE_BYTES)
        out, _ = await loop.connect_read_pipe(lambda: protocol(self.stdout), popen.stdout)
        self._transports.append(out)
        err, _ = await loop.connect_read_pipe(lambda: protocol(stderr), popen.stderr)
        self._transports.append(err)
        # StreamReaderProtocol is the public class with flow control; its reader stays unused here.
        transport, flow = await loop.connect_write_pipe(lambda: protocol(asyncio.StreamReader()), popen.stdin)
        self._transports.append(transport)
        self.stdin = asyncio.StreamWriter(transport, flow, None, loop)
        self._stderr = asyncio.create_task(self._drain(stderr), name=f"stderr-{self.pid}")

    # ------------------------------------------------------------------------------------- stderr

    async def _drain(self, stderr: asyncio.StreamReader) -> None:
        """Read stderr to its end, so that the child never blocks on a full pipe."""
        rest = b""
        while chunk := await stderr.read(STDERR_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) >= STDERR_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            self._keep(lines)
        self._keep([rest])

    def _keep(self, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self.last_words = text
                # A log that cannot be written must not end the draining: the child would block.
                with contextlib.suppress(OSError, ValueError):
                    log.info("host_stderr", pid=self.pid, line=text)

    async def said_all(self) -> None:
        """Wait until ``last_words`` are the last ones of a child that has ended, at most :data:`EOF_SECONDS`."""
        if self._stderr is not None:
            await asyncio.wait({self._stderr}, timeout=EOF_SECONDS)

    # ------------------------------------------------------------------------------------- signs of life

    def working(self) -> bool:
        """Whether the child has computed since this was last asked, or wants a core or the disk just now."""
        before = self._cpu_seconds
        with contextlib.suppress(psutil.Error):
            times = self._process.cpu_times()
            self._cpu_seconds = times.user + times.system
        return self._cpu_seconds > before or self._status() in (
            psutil.STATUS_RUNNING,
            psutil.STATUS_DISK_SLEEP,
        )

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP or a debugger holds the child."""
        return self._status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)

    def _status(self) -> str:
        try:
            return str(self._process.status())
        except psutil.Error:
            return psutil.STATUS_DEAD

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed something for memory while the child lived."""
        return oom_kills() > self._oom_kills

    # --------------------------------------------------------------------------------- end of life

    def _wait(self) -> None:
        """In a thread of its own: wait for the child's end without reaping it."""
        # The zombie keeps the process id, and with it the group's, from being given to somebody else until
        # the group is killed below.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        try:
            self._loop.call_soon_threadsafe(self._reap)
        except RuntimeError:  # the event loop is gone: nobody waits for `exited` any more
            self._signal(signal.SIGKILL)
            self._popen.wait()

    def _reap(self) -> None:
        self._signal(signal.SIGKILL)  # whatever the child started
        self.exited.set_result(self._popen.wait())

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """KILL to the group, without waiting."""
        if not self.exited.done():
            self._signal(signal.SIGKILL)

    async def end(self, farewell: bytes | None, grace: float) -> int:
        """End the child within ``grace`` seconds plus a moment and return its exit code.

        With a ``farewell`` line it is asked first: the line and closed stdin for half of the grace time, TERM for
        the other half, then KILL. Without one it is killed right away.
        """
        if farewell is not None and not self.exited.done():
            self._take_leave(farewell)
            if not await self._gone_within(grace / 2):
                self._signal(signal.SIGTERM)
                await self._gone_within(grace / 2)
        self.kill()
        code = await asyncio.shield(self.exited)
        await self.said_all()
        self.discard()
        await asyncio.sleep(0)  # transports close in the next round of the event loop
        return code

    def _take_leave(self, farewell: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # a pipe that is broken already
            self.stdin.write(farewell)
            self.stdin.close()

    async def _gone_within(self, seconds: float) -> bool:
        await asyncio.wait({self.exited}, timeout=seconds)
        return self.exited.done()

    def discard(self) -> None:
        """Kill what still runs and close the pipes, without waiting; the thread reaps."""
        self.kill()
        for transport in self._transports:
            if not isinstance(transport, asyncio.WriteTransport):
                transport.close()
            elif transport.get_write_buffer_size() or not transport.is_closing():
                transport.abort()  # `close` would wait for a reader that is gone; twice is an error in asyncio
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._stderr is not None:
            self._stderr.cancel()
