"""The real program with a chat model and an embedding model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server, alive
from tests.gateway.wiki.dumps.export import export, page
from tests.waiting import eventually

PAGES = {
    "Car": "A car drives on a road.\n== Engine ==\nPetrol burns in the engine.",
    "Boat": "A boat floats on water.",
    "Plane": "A plane flies in the air.",
}


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """With an imported wiki, as `hearth import-wiki` leaves it: without any vector."""
    folder = tmp_path / "data0"  # where start_server puts its first server
    dump = tmp_path / "dump.xml"
    dump.write_bytes(export(*(page(title, text) for title, text in PAGES.items())))
    hearth(folder, "import-wiki", str(dump), "--quiet")
    return folder


def hearth(data_dir: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "gateway.cli.main", *arguments, "--data-dir", str(data_dir)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean, timeout=60)
    return done.stdout


def embedding(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.health()["embedding"]
    return found


def up_to_date(server: Server) -> bool:
    index = embedding(server)["index"]
    wiki = index["counts"].get("wiki", {"done": 0, "total": 1})
    return bool(index["state"] == "idle" and wiki["done"] == wiki["total"])


def test_vectors_are_made_once_and_survive(
    start_server: StartServer, data_dir: Path, tiny_embedding_model: Path, tiny_model: Path
) -> None:
    env = {"HEARTH_EMBEDDING__MODEL": str(tiny_embedding_model), "HEARTH_EMBEDDING__THREADS": "1"}
    server = start_server(env=env)
    eventually(lambda: up_to_date(server), "the wiki did not get its vectors")
    told = embedding(server)
    assert told["index"]["counts"]["wiki"] == {"done": 3, "failed": 0, "total": 3}
    text = hearth(data_dir, "status")
    assert "embedding:  tiny-embedding, ready" in text
    assert "vectors:    wiki 3 of 3" in text

    # Two hosts, and either may die without the other.
    server.client.post("/admin/host/warm").raise_for_status()
    chat, second = server.host_pid(), embedding(server)["host"]["pid"]
    assert chat is not None
    assert chat != second
    os.kill(second, signal.SIGKILL)
    eventually(lambda: embedding(server)["host"]["pid"] is None, "the dead host was not noticed")
    assert alive(chat)
    reply = server.client.post("/api/embed", json={"model": "default", "input": "again"})
    assert len(reply.json()["embeddings"][0]) == 64
    libraries = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "vec0" in libraries
    assert "numpy" not in libraries
    server.stop()

    again = Server(data_dir, tiny_model, env=env)
    try:
        eventually(lambda: up_to_date(again), "the wiki lost its vectors")
        assert embedding(again)["host"]["state"] == "stopped", "nothing is missing, so nothing is started"
        question = {"question": "Petrol burns in the engine."}
        again.client.post("/ask", json=question)
        assert embedding(again)["host"]["state"] == "ready", "a search asks for its vector"
    finally:
        again.stop()


def test_a_project_is_searched_by_meaning_too(
    start_server: StartServer, tmp_path: Path, minilm: Path
) -> None:
    root = tmp_path / "garage"
    root.mkdir()
    (root / "stock.py").write_text(
        'def acquire(car):\n    """Buy an automobile from a dealer."""\n\n'
        'def paint(wall):\n    """Give a wall another colour."""\n'
    )
    (root / "guide.md").write_text("# Opening hours\n\nWe are closed on Sundays.\n")
    hearth(tmp_path / "data0", "context", "add", str(root))
    server = start_server(env={"HEARTH_EMBEDDING__MODEL": str(minilm)})

    def first(words: str) -> str:
        reply = server.client.get("/v1/projects/garage/search", params={"q": words})
        found = reply.raise_for_status().json()["data"]
        return f"{found[0]['path']}:{found[0]['line']}" if found else ""

    eventually(lambda: first("purchasing vehicles") == "stock.py:1", "the code was not found by meaning")
    eventually(lambda: first("weekend shop visit") == "guide.md:1", "the document was not found by meaning")


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"HEARTH_WIKI__SEARCH": "vectors"}, 'embedding.model is ""'),
        ({"HEARTH_EMBEDDING__MODEL": "embeddinggemma"}, "hearth pull embeddinggemma"),
    ],
)
def test_a_search_that_cannot_work_is_refused_at_the_start(
    tmp_path: Path, tiny_model: Path, env: dict[str, str], said: str
) -> None:
    command = [sys.executable, "-m", "gateway.cli.main", "start", "--port", "0", "--data-dir", str(tmp_path)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    done = subprocess.run(
        [*command, "--model", str(tiny_model)], capture_output=True, text=True, env=clean | env, timeout=60
    )
    assert done.returncode == 78
    assert said in done.stderr
