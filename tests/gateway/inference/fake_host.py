"""A model host without a model: a real child process that speaks the protocol and misbehaves on demand."""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from model_host import protocol
from model_host.protocol import (
    Cancel,
    Cancelled,
    Closing,
    Count,
    Counted,
    Delta,
    Failed,
    Finished,
    Forget,
    Forgotten,
    Generate,
    GetStats,
    Loading,
    Ping,
    Pong,
    Ready,
    Request,
    Shutdown,
    Started,
    Stats,
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--load-seconds", type=float, default=0.0)
    parser.add_argument("--delta-seconds", type=float, default=0.002)
    parser.add_argument("--deltas", type=int, default=5, help="of a generation without max_tokens")
    parser.add_argument("--starts", type=Path, help="append the process id at each start")
    parser.add_argument("--environment", type=Path, help="write the environment as JSON")
    parser.add_argument("--grandchild", type=Path, help="start a process that ignores TERM, write its id")
    parser.add_argument("--crash-if", type=Path, help="crash at start while this file exists")
    parser.add_argument("--killed-at-start", action="store_true", help="die as if somebody had sent KILL")
    parser.add_argument("--crash-after", type=int, help="crash after this many deltas of one request")
    parser.add_argument(
        "--exit-after", type=int, help="say why and exit after this many deltas of one request"
    )
    parser.add_argument("--fail-load", help="report this failure code instead of loading")
    parser.add_argument("--fail-generate", help="answer every generation with this failure code")
    parser.add_argument("--hang-on-load", action="store_true")
    parser.add_argument("--stall", action="store_true", help="no deltas, no end, no answer to stats")
    parser.add_argument(
        "--lose-stats", type=int, default=0, help="number of requests for stats to leave unanswered"
    )
    parser.add_argument("--mute", action="store_true", help="answer no ping")
    parser.add_argument("--stuck", action="store_true", help="say that one step has taken since the start")
    parser.add_argument("--ignore-cancel", action="store_true")
    parser.add_argument("--save-at-end", type=Path, help="write this file before ending in order")
    parser.add_argument("--stubborn", action="store_true", help="ignore shutdown, closed stdin and TERM")
    parser.add_argument(
        "--leave-open",
        type=Path,
        help="start a process elsewhere that keeps stdout open, and put its pid here",
    )
    parser.add_argument("--close-output", action="store_true", help="close stdout at the first generation")
    parser.add_argument("--garbage", type=Path, help="write this file's bytes after each `started`")
    parser.add_argument(
        "--oversized", action="store_true", help="write a line over the limit at a generation"
    )
    parser.add_argument("--mangle", help="replace the event of this tag by a line that does not parse")
    parser.add_argument(
        "--measured", action="store_true", help="report measured threads, then CPU contention"
    )
    parser.add_argument(
        "--timed",
        action="store_true",
        help="say of each request: 400 tokens read in 4.2 s, 81 written in 9 s",
    )
    parser.add_argument("--protocol", type=int, default=protocol.PROTOCOL_VERSION)
    return parser.parse_args()


class FakeHost:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.inbox: queue.Queue[Request | None] = queue.Queue()
        self.running: dict[str, tuple[Generate, int]] = {}  # deltas already sent
        self.requests = 0
        self.begun = time.monotonic()

    def emit(self, event: protocol.Event) -> None:
        line = protocol.encode(event)
        if self.options.mangle and f'"event":"{self.options.mangle}"'.encode() in line:
            line = line.replace(b'"event"', b'"evnt"')
        self.write(line)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def read(self) -> None:
        for line in sys.stdin.buffer:
            request = protocol.decode_request(line)
            if isinstance(request, Ping):
                self.pong(request)
            else:
                self.inbox.put(request)
        self.inbox.put(None)

    def pong(self, request: Ping) -> None:
        if not self.options.mute:
            busy = time.monotonic() - self.begun if self.options.stuck else 0.0
            self.emit(Pong(request.id, busy))

    def load(self) -> None:
        print("fake host: loading", file=sys.stderr, flush=True)
        if self.options.crash_if and self.options.crash_if.exists():
            print("fake host: giving up", file=sys.stderr, flush=True)
            os._exit(3)
        if self.options.fail_load:
            self.emit(Failed(None, self.options.fail_load, "the fake host was told to fail"))
            os._exit(1)
        for step in range(1, 5):
            time.sleep(self.options.load_seconds / 4)
            self.emit(Loading(step / 4))
        while self.options.hang_on_load:
            time.sleep(60)
        self.emit(
            Ready(
                protocol=self.options.protocol,
                pid=os.getpid(),
                model="fake",
                architecture="none",
                description="no model",
                parameters=0,
                size_bytes=0,
                vocabulary=0,
                n_ctx=2048,
                n_ctx_train=4096,
                n_parallel=8,
                threads=1,
                build="0",
                load_seconds=self.options.load_seconds,
                fingerprint="fake",
                thread_plan={1: 1, 64: 2} if self.options.measured else {},
                thread_speeds={1: {1: 100.0, 2: 90.0}, 64: {1: 400.0, 2: 700.0}}
                if self.options.measured
                else {},
            )
        )

    def serve(self) -> None:
        ended = False
        while True:
            try:
                request = self.inbox.get(timeout=self.options.delta_seconds if self.running else 1.0)
                if request is None or isinstance(request, Shutdown):
                    ended = not self.options.stubborn
                if request is not None:
                    self.handle(request)
            except queue.Empty:
                self.step()
            if ended:
                for request_id in list(self.running):
                    self.finish(request_id, "cancelled")
                if self.options.save_at_end:
                    time.sleep(0.3)
                    self.options.save_at_end.write_bytes(b"a conversation")
                return

    def handle(self, request: Request) -> None:
        if isinstance(request, Generate):
            self.generate(request)
        elif isinstance(request, Count):
            self.requests += 1
            texts = (
                request.texts
                if request.texts is not None
                else [f"{m.content}" for m in request.messages or []]
            )
            counts = [len(text.split()) for text in texts]
            self.emit(Counted(request.id, counts if request.texts is not None else [sum(counts)]))
        elif isinstance(request, Cancel):
            found = request.target in self.running
            self.emit(Cancelled(request.id, request.target, found))
            if found and not self.options.ignore_cancel:
                self.finish(request.target, "cancelled")
        elif isinstance(request, GetStats) and self.options.lose_stats:
            self.options.lose_stats -= 1
        elif isinstance(request, GetStats) and not self.options.stall:
            self.emit(self.stats(request.id))
        elif isinstance(request, Forget):
            self.emit(Forgotten(request.id))
        elif isinstance(request, Shutdown) and not self.options.stubborn:
            self.emit(Closing(request.id))

    def generate(self, request: Generate) -> None:
        self.requests += 1
        if self.options.fail_generate:
            self.emit(
                Failed(
                    request.id, self.options.fail_generate, "told to fail", details={"tokens": 9, "limit": 8}
                )
            )
            return
        if self.options.oversized:
            self.write(b"x" * (protocol.MAX_LINE_BYTES + 10))
        if self.options.close_output:
            os.close(1)
            return
        self.emit(Started(request.id, 3, 1, 0.0))
        if self.options.garbage:
            self.write(self.options.garbage.read_bytes())
        self.running[request.id] = (request, 0)

    def step(self) -> None:
        if self.options.stall:
            return
        for request_id, (request, sent) in list(self.running.items()):
            if sent == (request.max_tokens or self.options.deltas):
                self.finish(request_id, "length")
                continue
            self.emit(Delta(request_id, f"w{sent} ", 1))
            self.running[request_id] = (request, sent + 1)
            if self.options.crash_after == sent + 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.options.exit_after == sent + 1:
                print("fake host: the preparer thread failed", file=sys.stderr, flush=True)
                os._exit(1)

    def finish(self, request_id: str, reason: protocol.FinishReason) -> None:
        _, sent = self.running.pop(request_id)
        timed = self.options.timed
        self.emit(
            Finished(
                id=request_id,
                reason=reason,
                prompt_tokens=400 if timed else 3,
                cached_tokens=0 if timed else 1,
                completion_tokens=81 if timed else sent,
                prefill_seconds=4.2 if timed else 0.0,
                decode_seconds=9.0 if timed else 0.0,
                seed=1,
            )
        )

    def stats(self, request_id: str) -> Stats:
        return Stats(
            id=request_id,
            waiting=0,
            running=len(self.running),
            kv_used=0,
            kv_size=2048,
            requests=self.requests,
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
            steps=0,
            prefill_tokens_per_second=0.0,
            decode_tokens_per_second=0.0,
            uptime_seconds=time.monotonic() - self.begun,
            rss_bytes=0,
            thread_plan={1: 1, 64: 1} if self.options.measured else {},
        )


def prepare(options: argparse.Namespace) -> None:
    if options.starts:
        with options.starts.open("a") as file:
            print(os.getpid(), file=file)
    if options.killed_at_start:
        os.kill(os.getpid(), signal.SIGKILL)
    if options.environment:
        options.environment.write_text(json.dumps(dict(os.environ)))
    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.stubborn else lambda *_: os._exit(0))
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    if options.grandchild:
        options.grandchild.write_text(str(subprocess.Popen(sleeper).pid))
    if options.leave_open:
        options.leave_open.write_text(str(subprocess.Popen(sleeper, start_new_session=True).pid))


def main() -> None:
    options = arguments()
    prepare(options)
    host = FakeHost(options)
    threading.Thread(target=host.read, daemon=True).start()
    host.load()
    host.serve()
    sys.stderr.flush()
    os._exit(0)  # the reading thread still sits in stdin


if __name__ == "__main__":
    main()
