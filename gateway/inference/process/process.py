"""A child process with pipes: spawn it, signal its group, reap it."""

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
EOF_SECONDS = 1.0  # wait for pipes that a process outside the group holds open


class HostProcess:
    """A child in its own process group, made with :meth:`spawn`. The caller must await :meth:`end`.

    ``exited`` gets the return code, as ``subprocess`` has it, when the child is reaped.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.last_words: str | None = None  # the last line on stderr, for error messages
        self._process = psutil.Process(popen.pid)
        self._cpu_seconds = 0.0  # at the last call of `working`
        self._oom_kills = oom_kills()
        self._transports: list[asyncio.ReadTransport | asyncio.WriteTransport] = []
        self._stderr: asyncio.Task[None] | None = None
        threading.Thread(target=self._wait, name=f"wait-{self.pid}", daemon=True).start()

    @classmethod
    async def spawn(
        cls, command: Sequence[str], environment: Mapping[str, str], line_limit: int
    ) -> HostProcess:
        """Start ``command``. Lines read from ``stdout`` are at most ``line_limit`` bytes.

        Raises ModelUnavailableError when the system refuses. Must run in the event loop's thread: Linux sends the
        parent-death signal when the *thread* that started the child ends.
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
        # StreamReaderProtocol is the public class with flow control; its reader is unused here.
        transport, flow = await loop.connect_write_pipe(lambda: protocol(asyncio.StreamReader()), popen.stdin)
        self._transports.append(transport)
        self.stdin = asyncio.StreamWriter(transport, flow, None, loop)
        self._stderr = asyncio.create_task(self._drain(stderr), name=f"stderr-{self.pid}")

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
                # If the log cannot be written, draining must continue, or the child would block.
                with contextlib.suppress(OSError, ValueError):
                    log.info("host_stderr", pid=self.pid, line=text)

    async def said_all(self) -> None:
        """After the child's end, wait up to :data:`EOF_SECONDS` for the rest of its stderr."""
        if self._stderr is not None:
            await asyncio.wait({self._stderr}, timeout=EOF_SECONDS)

    def working(self) -> bool:
        """Whether the child has used CPU time since the last call, or waits for a core or the disk."""
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
        """Whether SIGSTOP or a debugger has stopped the child."""
        return self._status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)

    def _status(self) -> str:
        try:
            return str(self._process.status())
        except psutil.Error:
            return psutil.STATUS_DEAD

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has killed any process for memory since the child started."""
        return oom_kills() > self._oom_kills

    def _wait(self) -> None:
        """In a thread of its own: wait for the child's end without reaping it."""
        # The zombie keeps the process ID, and with it the group's, from being reused until the group is killed below.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        try:
            self._loop.call_soon_threadsafe(self._reap)
        except RuntimeError:  # the event loop is closed, so nothing waits for `exited`
            self._signal(signal.SIGKILL)
            self._popen.wait()

    def _reap(self) -> None:
        self._signal(signal.SIGKILL)  # the processes that the child has started
        self.exited.set_result(self._popen.wait())

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL to the group, without waiting."""
        if not self.exited.done():
            self._signal(signal.SIGKILL)

    async def end(self, farewell: bytes | None, grace: float) -> int:
        """End the child and return its exit code.

        It gets the ``farewell`` line and the end of stdin, after half of ``grace`` (seconds) SIGTERM, and after the
        other half SIGKILL. Without a ``farewell`` it is killed at once.
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
        await asyncio.sleep(0)  # transports close in the next iteration of the event loop
        return code

    def _take_leave(self, farewell: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # a pipe that is broken already
            self.stdin.write(farewell)
            self.stdin.close()

    async def _gone_within(self, seconds: float) -> bool:
        await asyncio.wait({self.exited}, timeout=seconds)
        return self.exited.done()

    def discard(self) -> None:
        """Kill the group and close the pipes, without waiting; the thread reaps the child."""
        self.kill()
        for transport in self._transports:
            if not isinstance(transport, asyncio.WriteTransport):
                transport.close()
            elif transport.get_write_buffer_size() or not transport.is_closing():
                transport.abort()  # `close` would wait for a reader that is gone; asyncio rejects a second call
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._stderr is not None:
            self._stderr.cancel()
