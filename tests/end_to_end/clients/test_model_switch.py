"""The chat model is switched while the server runs: real server, real children, conversations go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from gateway.cli.common.files import opened_database
from gateway.store.keys import create_key
from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server


def post(server: Server, path: str, **body: Any) -> dict[str, Any]:
    reply = server.client.post(path, json=body)
    assert reply.is_success, reply.text
    return dict(reply.json())


def test_a_conversation_goes_on_with_another_model(
    start_server: StartServer, tiny_model: Path, demo_model: str
) -> None:
    server = start_server(env={"HEARTH_MODEL__CONTEXT": "4096", "HEARTH_MEMORY__ANSWER_TOKENS": "64"})
    path = f"/v1/conversations/{post(server, '/v1/conversations')['id']}"
    for number in range(30):
        text = f"On day {number} of the journey we saw {number * 7} boats near the harbour of Hoi An. " * 6
        post(server, f"{path}/messages", text=text, reply=False)
    tiny = post(server, f"{path}/messages", text="How many boats?", max_tokens=8)
    before = server.client.get(f"{path}/context").json()

    switched = post(server, "/admin/model", model=demo_model)
    assert (switched["model"]["name"], switched["previous"]) == (demo_model, tiny_model.stem)
    reply = post(server, f"{path}/messages", text="And the day after?", max_tokens=8)
    after = server.client.get(f"{path}/context").json()
    assert server.client.get(path).json()["model"] == demo_model
    # The other vocabulary counts the same text anew, and nothing is lost.
    assert tiny["accepted"]["seq"] + 2 == reply["accepted"]["seq"]
    tokens = [
        next(block["tokens"] for block in context["blocks"] if block["name"] == "core")
        for context in (before, after)
    ]
    assert tokens[0] != tokens[1]
    assert after["total"] <= after["limit"]
    assert server.client.get("/v1/models").json()["data"][0]["id"] == demo_model
    health = server.health()
    assert (health["model"]["name"], health["switching_to"]) == (demo_model, None)


def test_a_model_that_is_unknown_or_damaged_changes_nothing(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    server.client.post("/admin/host/warm")
    pid, name = server.host_pid(), server.health()["model"]["name"]
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF, but not for long")
    for model, status, says in (
        ("gemma-9", 400, "unknown model `gemma-9`"),
        ("gemma-4-e2b", 400, "hearth pull gemma-4-e2b"),
        ("embeddinggemma", 400, "choose a chat model"),
        (str(tmp_path / "none.gguf"), 400, "there is no model file"),
        (str(bad), 503, "cannot be loaded"),
    ):
        reply = server.client.post("/admin/model", json={"model": model})
        assert (reply.status_code, says in reply.json()["error"]["message"]) == (status, True), reply.text
    assert (server.host_pid(), server.health()["model"]["name"]) == (pid, name)


def test_only_an_admin_switches_and_the_command_line_does(start_server: StartServer, demo_model: str) -> None:
    server = start_server()
    with opened_database(server.data_dir / "hearth.db") as database:
        keys = {
            role: database.write_sync(lambda c, role=role: create_key(c, role, role))[1]
            for role in ("user", "admin")
        }

    def use(role: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway.cli.main", "models", "use", demo_model]
        command += ["--url", server.url, "--key", keys[role]]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused, done = use("user"), use("admin")
    assert refused.returncode == 1 and "admin" in refused.stderr, refused.stderr
    assert (done.returncode, done.stdout) == (0, f"{demo_model} answers now (before: tiny)\n"), done.stderr
