"""LoRA adapters through the whole program: chosen by name, side by side, after an unload, and broken ones."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server

ROOT = Path(__file__).resolve().parents[3]
TEXT = " ".join(f"The {number}th ferry leaves at dawn." for number in range(40))


def write(model: Path, target: Path, *flags: str) -> None:
    command = [sys.executable, str(ROOT / "models" / "random_lora.py"), str(model), str(target), *flags]
    subprocess.run(command, check=True, capture_output=True)


def ask(server: Server, model: str) -> tuple[str, int]:
    """The reply, and how much of the prompt was cached."""
    body = {"model": model, "messages": [{"role": "user", "content": TEXT}], "max_tokens": 24}
    reply = server.client.post("/v1/chat/completions", json=body | {"temperature": 0, "ignore_eos": True})
    made: dict[str, Any] = reply.raise_for_status().json()
    return made["choices"][0]["message"]["content"], made["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_replies_with_and_without_an_adapter(
    start_server: StartServer, tiny_model: Path, tmp_path: Path
) -> None:
    write(tiny_model, tmp_path / "owl.gguf")
    server = start_server(env={"HEARTH_MODEL__ADAPTERS": str(tmp_path / "owl.gguf")})
    (bare, first), (owl, second) = ask(server, "default"), ask(server, "default:owl")
    assert bare != owl and (first, second) == (0, 0)
    with ThreadPoolExecutor(4) as pool:
        names = ["default", "owl"] * 2
        assert [text for text, _ in pool.map(lambda name: ask(server, name), names)] == [bare, owl] * 2
    loaded = server.health()["model"]["loaded"]
    assert list(loaded["adapters"]) == ["owl"]
    server.client.post("/admin/host/unload").raise_for_status()
    assert [ask(server, name)[0] for name in ("owl", "default")] == [owl, bare]
    assert server.health()["kv"]["snapshots_restored"] == 2


def test_an_adapter_of_other_shapes_is_named_until_it_is_replaced(
    start_server: StartServer, tiny_model: Path, wide_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "owl.gguf"
    write(wide_model, path)
    server = start_server(env={"HEARTH_MODEL__ADAPTERS": str(path)})
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
    for _ in range(2):  # as the host says, and as it is remembered
        failed = server.client.post("/v1/chat/completions", json=body)
        error = json.loads(failed.text)["error"]
        assert (failed.status_code, error["code"]) == (503, "adapter_unusable")
        assert str(path) in error["message"] and "`model.adapters`" in error["message"]
    assert server.client.get("/readyz").status_code == 503
    write(tiny_model, path)
    assert server.client.get("/readyz").status_code == 200
    assert server.client.post("/v1/chat/completions", json=body | {"model": "owl"}).status_code == 200
