"""Readiness, heartbeats and inherited sockets, as a service manager sees them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.server.systemd import Notifier, inherited_socket
from gateway.store.keys import create_key
from tests.waiting import until

# What a service manager does between fork and exec: descriptors from 3 on, and the process they are meant for.
AS_MANAGER = """
import fcntl, os, sys
given = [int(n) for n in sys.argv[1].split(",")]
high = [fcntl.fcntl(each, fcntl.F_DUPFD, 100) for each in given]
for number, each in enumerate(high, 3):
    os.dup2(each, number, inheritable=True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(given))}
os.execv(sys.executable, [sys.executable, "-m", "gateway.cli.main", *sys.argv[2:]])
"""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket that a service manager reads notifications from."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield listening


def heard(manager: socket.socket) -> list[str]:
    """What came since the last look, the oldest first."""
    messages = []
    manager.setblocking(False)
    try:
        while True:
            messages.append(manager.recv(4096).decode())
    except BlockingIOError:
        return messages
    finally:
        manager.settimeout(20)


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


def test_messages(manager: socket.socket) -> None:
    given = environment(manager, WATCHDOG_USEC="500000", WATCHDOG_PID=str(os.getpid()))
    notifier = Notifier(given)
    assert given == {}, "a child must not speak for its parent"
    assert notifier.watchdog_seconds == 0.5
    notifier.ready("listening")
    notifier.stopping()
    assert heard(manager) == ["READY=1\nSTATUS=listening", "STOPPING=1\nSTATUS=finishing open requests"]


def test_abstract_addresses() -> None:
    name = f"hearth-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        Notifier({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert listening.recv(100).startswith(b"STOPPING=1")


def test_nobody_listens() -> None:
    Notifier({}).ready("x")
    with capture_logs() as logs:
        Notifier({"NOTIFY_SOCKET": "/nowhere/notify"}).ready("x")
    assert [entry["event"] for entry in logs] == ["notify_failed"]


@pytest.mark.parametrize("more", [{"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": ""}])
async def test_a_watchdog_that_is_not_ours(manager: socket.socket, more: dict[str, str]) -> None:
    notifier = Notifier(environment(manager, **{"WATCHDOG_USEC": "1000", **more}))
    async with notifier.heartbeat(Supervision()):
        await asyncio.sleep(0.05)
    assert heard(manager) == []


async def test_only_a_living_event_loop_pings(manager: socket.socket) -> None:
    async with Notifier(environment(manager, WATCHDOG_USEC="40000")).heartbeat(Supervision()):
        beats: list[str] = []

        def three() -> bool:
            beats.extend(heard(manager))
            return len(beats) >= 3

        await until(three)
        assert set(beats) == {"WATCHDOG=1"}
        time.sleep(0.3)  # the loop is stuck  # noqa: ASYNC251
        assert heard(manager) == []
        await until(lambda: heard(manager) != [])
    heard(manager)
    await asyncio.sleep(0.1)
    assert heard(manager) == []


async def test_a_heart_that_fails_beats_on(manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Notifier):
        failures = 3

        def _send(self, message: str) -> None:
            if self.failures:
                self.failures -= 1
                raise MemoryError
            super()._send(message)

    supervision = Supervision()
    async with Failing(environment(manager, WATCHDOG_USEC="40000")).heartbeat(supervision):
        await until(lambda: "WATCHDOG=1" in heard(manager))
        [task] = supervision.health()
        assert (task.name, task.state, task.restarts) == ("watchdog", "running", 3)
    [task] = supervision.health()
    assert task.state == "stopped"


def test_without_a_manager_there_is_no_socket() -> None:
    assert inherited_socket({}) is None
    for_another = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x"}
    assert inherited_socket(for_another) is None
    assert for_another == {}
    assert inherited_socket({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "0"}) is None


def start(data: Path, model: Path, given: list[int], **variables: str) -> subprocess.Popen[str]:
    """`hearth start` as a service manager starts it, with these descriptors."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    settings = {
        "XDG_CONFIG_HOME": str(data / "xdg"),
        "HEARTH_DATA_DIR": str(data),
        "HEARTH_MODEL__THREADS": "1",
    }
    numbers = ",".join(map(str, given))
    command = [sys.executable, "-c", AS_MANAGER, numbers]
    return subprocess.Popen(
        [*command, "start", "--port", "1", "--model", str(model)],
        pass_fds=given,
        env=clean | settings | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_passed_socket_is_served_and_everything_is_told(
    manager: socket.socket, tmp_path: Path, tiny_model: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as passed:
        port = passed.getsockname()[1]
        process = start(
            tmp_path / "data",
            tiny_model,
            [passed.fileno()],
            NOTIFY_SOCKET=manager.getsockname(),
            WATCHDOG_USEC="2000000",
        )
        with process:
            told = ""
            while not told.startswith("READY=1"):
                told = manager.recv(4096).decode()
            assert told == f"READY=1\nSTATUS=listening on http://127.0.0.1:{port}"
            # The address in the settings (port 1) is not used.
            health = httpx2.get(f"http://127.0.0.1:{port}/admin/health").json()
            assert health["host"]["state"] == "stopped"
            process.send_signal(signal.SIGTERM)
            while not told.startswith("STOPPING=1"):
                told = manager.recv(4096).decode()
            process.communicate(timeout=30)
        assert process.returncode == 0
        # The manager's end stays open: what connects now waits for the next start.
        socket.create_connection(("127.0.0.1", port), 5).close()


def test_a_passed_public_socket_needs_a_key(tmp_path: Path, tiny_model: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as passed:
        with start(tmp_path / "data", tiny_model, [passed.fileno()]) as process:
            _, errors = process.communicate(timeout=30)
        assert (process.returncode, "no API key exists" in errors) == (78, True), errors
        with opened_database(tmp_path / "data" / "hearth.db") as database:
            database.write_sync(lambda connection: create_key(connection, "me", "admin"))
        with start(tmp_path / "data", tiny_model, [passed.fileno()]) as process:
            assert process.stdout is not None
            assert "listening on http://0.0.0.0:" in process.stdout.readline()
            port = passed.getsockname()[1]
            assert httpx2.get(f"http://127.0.0.1:{port}/v1/models").status_code == 401
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


CASES = """
import os, socket
from gateway.base.errors import ConfigurationError
from gateway.base.supervised import Supervision
from gateway.server.systemd import inherited_socket

def refused(given, count="1"):
    os.dup2(given.fileno(), 3)
    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count}
    try:
        inherited_socket(environment)
    except ConfigurationError as error:
        return error.message

kept = os.open(os.devnull, os.O_RDONLY)  # descriptor 3: what is made below gets higher ones
print(refused(socket.create_server(("127.0.0.1", 0)), "2"))
print(refused(open(os.devnull)))
print(refused(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
print(refused(socket.socket()))
"""


def test_what_cannot_be_served_is_refused_by_name() -> None:
    done = subprocess.run([sys.executable, "-c", CASES], capture_output=True, text=True, check=True)
    two, file, udp, silent = done.stdout.splitlines()
    assert two.startswith("the service manager passed 2 sockets")
    assert "not a socket (" in file
    for each in (udp, silent):
        assert "does not listen on TCP; the socket unit needs ListenStream=ADDRESS:PORT" in each
