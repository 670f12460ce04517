"""A conversation outlives the model host: snapshots through the whole program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from tests.end_to_end.conftest import StartServer

TEXT = " ".join(f"The {number}th ferry leaves at dawn." for number in range(60))


def say(client: httpx2.Client, history: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """One exchange; the usage it reports."""
    history.append({"role": "user", "content": text})
    body = {"model": "default", "messages": history, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    reply = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    history.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
    usage: dict[str, Any] = reply["usage"]
    return usage


def files(data: Path) -> list[Path]:
    return list((data / "snapshots").glob("*/*.kv"))


def test_a_chat_goes_on_after_the_model_was_let_go(start_server: StartServer) -> None:
    server = start_server()
    history: list[dict[str, Any]] = []
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        first = say(client, history, TEXT)
        client.post("/admin/host/unload").raise_for_status()
        second = say(client, history, "And then?")
        assert second["prompt_tokens_details"]["cached_tokens"] >= first["prompt_tokens"]
        kv = server.health()["kv"]
        assert kv["snapshots_restored"] == 1
        assert kv["snapshot_bytes"] == sum(path.stat().st_size for path in files(server.data_dir)) > 0
        assert kv["shared_snapshot_bytes"] == 0
        assert "kv_snapshots_restored_total 1.0" in client.get("/metrics").text


def test_a_chat_is_left_where_it_was_not_saved_to_the_end(start_server: StartServer) -> None:
    """Another reply, an edited message and a new chat with the same system prompt."""
    server = start_server()
    system = {"role": "system", "content": TEXT}
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        say(client, [system], "Is there a ferry at noon?")
        for text in ("Is there a ferry at noon?", "Is there one at midnight?", "Hello."):
            client.post("/admin/host/unload").raise_for_status()
            usage = say(client, [system], text)
            assert usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"] < 40


def test_erasing_a_conversation_erases_its_snapshots(start_server: StartServer) -> None:
    server = start_server()
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for how in ("running", "let go"):
            name = client.post("/v1/conversations", json={}).raise_for_status().json()["id"]
            said = client.post(f"/v1/conversations/{name}/messages", json={"text": TEXT, "max_tokens": 8})
            said.raise_for_status()
            client.post("/admin/host/unload").raise_for_status()
            assert files(server.data_dir)
            if how == "running":
                client.post("/admin/host/warm").raise_for_status()
            client.delete(f"/v1/conversations/{name}").raise_for_status()
            assert files(server.data_dir) == []
