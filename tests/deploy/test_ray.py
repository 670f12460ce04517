"""The application of deploy/ray in a real cluster of one machine, with a gateway in front of it.

Ray is no package of the locks; `pip install 'ray[serve]'` into the environment of the tests makes them run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from benchmarks.peer_servers import free_port
from tests.end_to_end.server import Server, alive
from tests.waiting import PATIENCE, eventually

pytest.importorskip("ray.serve", reason="needs the package ray[serve]")

ROOT = Path(__file__).parents[2]
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "temperature": 0}
LONG = CHAT | {"max_tokens": 8000, "min_tokens": 8000, "stream": True}


class Cluster:
    """A cluster in a folder of its own, whose application ends a replica one second after its last request."""

    def __init__(self, model: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # the paths of its sockets must be short
        pulled = self.folder / "data" / "models" / "someone" / "demo" / "demo.gguf"
        pulled.parent.mkdir(parents=True)
        pulled.symlink_to(ROOT / "models" / "demo" / "hearth-demo.gguf")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        config = {
            "http_options": {"host": "127.0.0.1", "port": port},
            "applications": [
                {
                    "name": "hearth",
                    "import_path": "deploy.ray.app:app",
                    "args": {"max_replicas": 2},
                }
            ],
        }
        (self.folder / "serve.yaml").write_text(json.dumps(config))
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "RAY_"))}
        env |= {"HOME": str(self.folder), "RAY_TMPDIR": str(self.folder), "PYTHONPATH": str(ROOT)}
        env |= {"RAY_USAGE_STATS_ENABLED": "0", "HEARTH_DATA_DIR": str(self.folder / "data")}
        env |= {
            "HEARTH_MODEL__NAME": model,
            "HEARTH_MODEL__THREADS": "1",
            "HEARTH_MODEL__IDLE_SECONDS": "1",
        }
        env |= {"HEARTH_MODEL__DRAFTS": "0"}  # so that a long reply takes long
        command = [
            Path(sys.executable).with_name("serve"),
            "run",
            "--address",
            "local",
            self.folder / "serve.yaml",
        ]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        eventually(self._is_up, f"the cluster did not start: {self.folder / 'log'}")

    def _is_up(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            return httpx2.get(f"{self.url}/-/routes").json() == {"/": "hearth"}
        except (httpx2.TransportError, ValueError):
            return False

    def hosts(self) -> list[psutil.Process]:
        """The model hosts of its replicas."""
        data = str(self.folder / "data")
        found = psutil.process_iter(["cmdline"])
        return [each for each in found if any(data in part for part in each.info["cmdline"] or ())]

    def stop(self) -> None:
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        eventually(lambda: not any(alive(each.pid) for each in family), "processes are left behind")
        assert self.hosts() == []
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster("someone/demo:demo.gguf")
    yield made
    made.stop()


@pytest.fixture
def front(cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    env = {"HEARTH_UPSTREAM__URLS": cluster.url, "HEARTH_UPSTREAM__MODEL": "hearth-demo"}
    server = Server(tmp_path / "front", "hearth-demo", env=env)
    yield server
    server.stop()


@contextmanager
def streamed(server: Server) -> Iterator[Iterator[str]]:
    """The data of a long reply's events but the first one, which a gateway sends while it waits."""
    with server.client.stream("POST", "/v1/chat/completions", json=LONG) as reply:
        assert reply.status_code == 200, reply.read()
        lines = (line for line in reply.iter_lines() if line.startswith("data: "))
        assert '"role"' in next(lines)
        yield lines


def test_a_request_starts_a_replica_that_ends_when_idle(cluster: Cluster, front: Server) -> None:
    replies = [front.client.post("/v1/chat/completions", json=CHAT) for _ in range(2)]
    assert [each.status_code for each in replies] == [200, 200], replies[0].text
    [host] = cluster.hosts()
    eventually(lambda: not cluster.hosts(), "the replica did not end")
    assert not alive(host.pid)
    again = front.client.post("/v1/chat/completions", json=CHAT)
    assert again.json()["choices"][0]["message"] == replies[0].json()["choices"][0]["message"]


def test_a_client_that_leaves_ends_its_generation(cluster: Cluster, front: Server) -> None:
    def generating() -> int:
        return int(httpx2.get(f"{cluster.url}/admin/health").json()["host"]["open_requests"])

    with streamed(front) as events:
        next(events)
        assert generating() == 1
    eventually(lambda: generating() == 0, "it still generates")
    assert front.client.post("/v1/chat/completions", json=CHAT).status_code == 200


def test_a_replica_killed_in_the_middle_of_a_stream(cluster: Cluster, front: Server) -> None:
    with streamed(front) as events:
        next(events)
        [host] = cluster.hosts()
        replica = host.parent()
        assert replica is not None
        replica.kill()
        error, end = list(events)[-2:]
        assert "try again" in error
        assert end == "data: [DONE]"
    eventually(lambda: not alive(host.pid), "its model host lives on")
    answered = front.client.post("/v1/chat/completions", json=CHAT)
    assert answered.status_code == 200, answered.text


def test_what_must_be_kept_is_refused(cluster: Cluster) -> None:
    assert httpx2.post(f"{cluster.url}/v1/conversations", json={}).status_code == 404
